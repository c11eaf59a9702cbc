"""Roofline results of one op or kernel, and of a whole trace."""

from __future__ import annotations

from typing import Any

import polars as pl
from msgspec import Struct, field, to_builtins

from warpline.hardware import CitedFigure, Roof
from warpline.hardware.chips import DRAM
from warpline.notebook import ShownAsCard
from warpline.units import duration

SCHEMA = "warpline.roofline/1"
LATENCY_NS = 2_000
"""An empty kernel takes 0.7 to 1.3 µs in our H200 traces; a kernel with a lower floor is latency-bound."""
NEAR_ROOF = 0.8
"""From this share of the roofline on, Nsight Compute calls a unit busy, and there is little to find inside."""
_PIPES = (("bf16", "tensor"), ("fp16", "tensor"), ("tf32", "tensor"), ("fp8", "tensor"), ("fp32", "vector"))

FINE, IN_CACHE, ABOVE_MEASURED, IMPOSSIBLE = "ok", "in-cache", "above-measured", "impossible"


class RooflineEntry(Struct):
    """One op with its shapes, or one kernel, over all its calls."""

    name: str
    shapes: str
    dtypes: str
    model: str
    math: str
    """Type and unit of its GEMMs or other arithmetic: `bf16 tensor`, `fp32 vector`; empty without arithmetic."""
    count: int = 0
    time_ns: float = 0
    flops: float = 0
    """FLOPs of its GEMMs if it has any, else all FLOPs."""
    read_bytes: float = 0
    written_bytes: float = 0
    link: str = DRAM
    compute_floor_ns: float = 0
    memory_floor_ns: float = 0
    floor_ns: float | None = 0
    """Minimum time of all calls together; None if a ceiling is unknown."""
    paper_memory_ns: float = 0
    """Time of its bytes at the data sheet's bandwidth."""
    hard_floor_ns: float = 0
    """Hard lower bound of the time."""
    step_headroom_ns: float = 0
    """Time above the floor of the calls within steps."""
    estimate: str = ""
    state: str = FINE
    note: str = ""

    @property
    def bytes(self) -> float:
        """Bytes moved, both ways."""
        return self.read_bytes + self.written_bytes

    @property
    def intensity(self) -> float | None:
        """FLOPs per byte."""
        return self.flops / self.bytes if self.bytes else None

    @property
    def flops_per_second(self) -> float:
        """Achieved rate of arithmetic."""
        return self.flops / self.time_ns * 1e9 if self.time_ns else 0.0

    @property
    def bytes_per_second(self) -> float:
        """Achieved rate of traffic."""
        return self.bytes / self.time_ns * 1e9 if self.time_ns else 0.0

    @property
    def ceiling_flops_per_second(self) -> float | None:
        """Roofline limit at this arithmetic intensity; None without arithmetic or ceilings."""
        return self.flops / self.floor_ns * 1e9 if self.floor_ns and self.flops else None

    @property
    def roof_pct(self) -> float | None:
        """Floor over time, in percent."""
        return 100 * self.floor_ns / self.time_ns if self.floor_ns is not None and self.time_ns else None

    @property
    def bound(self) -> str:
        """What limits it: `compute`, `memory`, `link`, or `latency` if both are too small to matter.

        Empty where a ceiling is unknown.
        """
        if self.floor_ns is None:
            return "link" if self.link != DRAM else ""
        if self.count and self.floor_ns / self.count < LATENCY_NS and self.link == DRAM:
            return "latency"
        if self.link != DRAM:
            return "link"
        return "compute" if self.compute_floor_ns > self.memory_floor_ns else "memory"

    @property
    def headroom_ns(self) -> float | None:
        """Time above the floor."""
        return max(0.0, self.time_ns - self.floor_ns) if self.floor_ns is not None else None

    def headroom_per_step_ns(self, steps: int | None) -> float | None:
        """Headroom of one of so many steps; None without steps or ceilings."""
        return self.step_headroom_ns / steps if steps and self.floor_ns is not None else None

    def to_dict(self, steps: int | None) -> dict[str, Any]:
        """An entry of the JSON contract."""
        per_step = self.headroom_per_step_ns(steps)
        return {
            "name": self.name,
            "shapes": self.shapes,
            "dtypes": self.dtypes,
            "model": self.model,
            "math": self.math,
            "count": self.count,
            "time_ns": round(self.time_ns),
            "flops": round(self.flops),
            "read_bytes": round(self.read_bytes),
            "written_bytes": round(self.written_bytes),
            "link": self.link,
            "intensity": self.intensity,
            "flops_per_second": self.flops_per_second,
            "bytes_per_second": self.bytes_per_second,
            "ceiling_flops_per_second": self.ceiling_flops_per_second,
            "floor_ns": round(self.floor_ns) if self.floor_ns is not None else None,
            "roof_pct": self.roof_pct,
            "bound": self.bound or None,
            "headroom_ns": round(self.headroom_ns) if self.headroom_ns is not None else None,
            "headroom_per_step_ns": round(per_step) if per_step is not None else None,
            "estimate": self.estimate or None,
            "state": self.state,
            "note": self.note or None,
        }


class Unmodelled(Struct, frozen=True):
    """GPU time with unknown FLOPs and bytes."""

    name: str
    why: str
    count: int
    time_ns: int


class RooflineTable(ShownAsCard, Struct, frozen=True):
    """The roofline of a trace.

    >>> roofline = warpline.open("trace.json.gz").roofline()
    >>> roofline.table.select("name", "time_ns", "roof_pct", "bound")
    """

    by: str
    device: str
    roof: Roof | None
    """None if the device is unknown: then there are rates, but no ceilings."""
    steps: int | None
    """Selected steps; headroom is then per step."""
    total_ns: int
    """Of all operations; those that overlap count twice."""
    busy_ns: int
    """Time in which at least one operation runs, of all devices."""
    modelled_ns: int
    estimated_ns: int
    entries: list[RooflineEntry]
    """Longest first."""
    unmodelled: list[Unmodelled] = field(default_factory=list)

    @property
    def modelled_pct(self) -> float:
        """Share of GPU time with known FLOPs and bytes."""
        return 100 * self.modelled_ns / self.total_ns if self.total_ns else 0.0

    @property
    def floor_ns(self) -> float:
        """Minimum time of all modelled entries."""
        return sum(min(entry.floor_ns, entry.time_ns) for entry in self.entries if entry.floor_ns is not None)

    @property
    def bounded_ns(self) -> float:
        """Time of the entries that have a minimum."""
        return sum(entry.time_ns for entry in self.entries if entry.floor_ns is not None)

    @property
    def table(self) -> pl.DataFrame:
        """The entries as a DataFrame, longest first."""
        return pl.DataFrame([entry.to_dict(self.steps) for entry in self.entries], infer_schema_length=None)

    def to_dict(self) -> dict[str, Any]:
        """The JSON contract `warpline.roofline/1`."""
        return {
            "schema": SCHEMA,
            "trace": {"device": self.device, "steps": self.steps},
            "by": self.by,
            "ceilings": _ceilings_dict(self.roof) if self.roof else None,
            "gpu_ns": self.total_ns,
            "busy_ns": self.busy_ns,
            "modelled_ns": self.modelled_ns,
            "modelled_pct": round(self.modelled_pct, 3),
            "estimated_ns": self.estimated_ns,
            "floor_ns": round(self.floor_ns),
            "entries": [entry.to_dict(self.steps) for entry in self.entries],
            "unmodelled": [
                {
                    **to_builtins(item),
                    "share_pct": round(100 * item.time_ns / self.total_ns, 3) if self.total_ns else 0.0,
                }
                for item in self.unmodelled
            ],
        }

    def __repr__(self) -> str:
        return f"<RooflineTable {self._summary}>"

    @property
    def _summary(self) -> str:
        known = f"FLOPs and bytes known for {self.modelled_pct:.1f} % of {duration(self.total_ns)}"
        return f"{self.device}: {len(self.entries)} rows by {self.by}, {known}"


def ceilings_of(roof: Roof) -> dict[str, CitedFigure]:
    """Every ceiling in use, by its name."""
    figures = {f"{dtype} {unit}": roof.compute(dtype, unit) for dtype, unit in _PIPES}
    links = {link: roof.bandwidth(link) for link in ("dram", "l2", "h2d", "d2h", "nvlink")}
    return {name: figure for name, figure in (figures | links).items() if figure is not None}


def _ceilings_dict(roof: Roof) -> dict[str, Any]:
    """Every ceiling in use, with its source."""
    return {
        name: {"value": figure.value, "source": figure.source, "measured": figure.measured}
        for name, figure in ceilings_of(roof).items()
    }
