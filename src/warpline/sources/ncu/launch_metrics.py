"""The device and the launch of a kernel, from its metrics; a report and a CSV page name them alike."""

from __future__ import annotations

from collections.abc import Mapping

from warpline.sources.ncu.model import Dimensions, Reading


def device_name(metrics: Mapping[str, Reading]) -> str:
    """The name of the device; empty if it was not recorded."""
    name = "device__attribute_display_name"
    return str(metrics[name].value) if name in metrics else ""


def chip(metrics: Mapping[str, Reading]) -> str:
    """`sm_90`; empty if it was not recorded."""
    major, minor = (_whole(metrics, f"device__attribute_compute_capability_{part}") for part in ("major", "minor"))
    return f"sm_{major}{minor}" if major is not None and minor is not None else ""


def dimensions(metrics: Mapping[str, Reading], prefix: str) -> Dimensions | None:
    """The sizes in x, y and z, whose names begin with this prefix; a launch has none of zero."""
    x, y, z = (_whole(metrics, f"{prefix}{axis}") for axis in "xyz")
    return (x, y, z) if x and y and z else None


def _whole(metrics: Mapping[str, Reading], name: str) -> int | None:
    reading = metrics.get(name)
    return int(reading.value) if reading is not None and isinstance(reading.value, float) else None
