"""Ceilings measured on a device, stored as JSON and used instead of the data sheet's peaks.

Files are searched in `$WARPLINE_CEILINGS` (a file or a directory), then `~/.config/warpline/ceilings`, then among those
shipped with warpline. Each is the output of `warpline device measure`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from warpline.errors import UnreadableFile
from warpline.hardware.chips import Chip, CitedFigure
from warpline.hardware.find import find_device
from warpline.untrusted_json import parse_json, read_text

SCHEMA = "warpline.ceilings/1"
VARIABLE = "WARPLINE_CEILINGS"
SHIPPED = ("h200.json",)


@dataclass(frozen=True, slots=True)
class Ceilings:
    """One file of measurements. Values are in FLOP/s, bytes/s or seconds, with the file's keys."""

    device: str
    sm_count: int | None
    compute: tuple[int, int] | None
    date: str
    origin: str
    """A readable origin: `warpline device measure, torch 2.11`, …"""
    path: str
    values: dict[str, float]
    """For example `gemm.bf16`, `copy.dram`, `host.h2d_pinned`, `cpu.dispatch`."""
    host: dict[str, Any] | None = None
    """Calibration of the host (schema `warpline.host_costs/1`), as the file has it."""

    def figure(self, key: str) -> CitedFigure | None:
        """The measurement of that key, with its source; None if the file lacks it."""
        value = self.values.get(key)
        if value is None or value <= 0:
            return None
        return CitedFigure(value, f"measured on {self.device}, {self.date} ({self.origin})", measured=True)


def measured_for(chip: Chip) -> Ceilings | None:
    """The first file of measurements of such a chip."""
    for ceilings in _candidates(os.environ.get(VARIABLE), user_directory()):
        if find_device(ceilings.device, ceilings.sm_count, ceilings.compute) == chip:
            return ceilings
    return None


def user_directory() -> Path:
    """The folder where `warpline device measure` stores its results.

    Without platformdirs: `bench` looks here where only the standard library and torch are.
    """
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "warpline" / "ceilings"


def read_ceilings(path: Path) -> Ceilings:
    """Read a file of measurements."""
    try:
        text = read_text(path)
    except OSError as error:
        raise UnreadableFile("no-ceilings", f"{path} cannot be read: {error.strerror}", "check the path") from error
    except ValueError as error:
        raise UnreadableFile("bad-ceilings", f"{path} cannot be read: {error}", "measure again") from error
    return parse_ceilings(text, str(path))


def parse_ceilings(text: str, path: str) -> Ceilings:
    """Parse measurements from text."""
    try:
        document = parse_json(text)
    except ValueError as error:
        raise UnreadableFile("bad-ceilings", f"{path} is not JSON: {error}", "measure again") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise UnreadableFile("bad-ceilings", f"{path} is not {SCHEMA}", "create it with warpline device measure")
    try:
        return _ceilings(document, path)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        what = f"{path} is damaged: {type(error).__name__}: {error}"
        raise UnreadableFile("bad-ceilings", what, "measure again with warpline device measure") from error


def _ceilings(document: dict[str, Any], path: str) -> Ceilings:
    device, sm_count = document.get("device") or {}, (document.get("device") or {}).get("sm_count")
    values = {key: float(entry["value"]) for key, entry in document.get("measurements", {}).items()}
    if not all(0 < value < math.inf for value in values.values()):
        raise ValueError("a measurement is a positive number")
    return Ceilings(
        device=str(device.get("name", "")),
        sm_count=None if sm_count is None else int(sm_count),
        compute=_compute(device.get("compute")),
        date=str(document.get("date", "unknown date")),
        origin=str(document.get("origin", "unknown origin")),
        path=path,
        values=values,
        host=document.get("host") if isinstance(document.get("host"), dict) else None,
    )


def _compute(text: Any) -> tuple[int, int] | None:
    if not isinstance(text, str) or "." not in text:
        return None
    major, minor = text.split(".", 1)
    return int(major), int(minor)


@cache
def _candidates(variable: str | None, directory: Path) -> tuple[Ceilings, ...]:
    """Every file, in order of precedence."""
    return tuple(_all(variable, directory))


def _all(variable: str | None, directory: Path) -> Iterator[Ceilings]:
    for place in ([Path(variable)] if variable else []) + [directory]:
        paths = sorted(place.glob("*.json")) if place.is_dir() else [place] if place.is_file() else []
        yield from map(read_ceilings, paths)
    for name in SHIPPED:
        text = files("warpline.hardware").joinpath("data", name).read_text(encoding="utf-8")
        yield parse_ceilings(text, f"shipped with warpline: {name}")
