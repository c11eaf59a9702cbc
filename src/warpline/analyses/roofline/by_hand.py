"""The roofline on the back of an envelope: FLOPs and bytes as given or from shapes, without a trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct

from warpline.analyses.roofline.floors import floor_of
from warpline.bench.work import BOOST_ALLOWANCE
from warpline.errors import UsageError
from warpline.hardware import CitedFigure, Roof, roof_of
from warpline.hardware.chips import DRAM, TENSOR, VECTOR
from warpline.work import MATRIX, Flops, Work
from warpline.work.op_from_text import work_of_text

SCHEMA = "warpline.envelope/1"
Verdict = Literal["possible", "impossible", "above_measured", "in_cache", "unknown"]


class Item(Struct, frozen=True):
    """One piece of work and its minimum times."""

    name: str
    flops: float
    """FLOPs of its matmuls if it has any, else all."""
    bytes: float
    compute_ns: float
    memory_ns: float
    paper_ns: float
    """By the data sheet, every byte from memory."""
    hard_ns: float
    """By the data sheet, with as much as possible in the cache and the clock above the data sheet's."""
    known: bool
    """Whether a ceiling is known for all of its arithmetic."""

    @property
    def floor_ns(self) -> float | None:
        """The longer of arithmetic and traffic at their ceilings; None if a ceiling is unknown."""
        return max(self.compute_ns, self.memory_ns) if self.known else None

    @property
    def bound(self) -> str:
        """What limits it; empty without ceilings."""
        if not self.known:
            return ""
        return "compute" if self.compute_ns >= self.memory_ns else "memory"


class Envelope(Struct, frozen=True):
    """Work that runs piece after piece, compared with a chip and with a time.

    >>> envelope(shapes=["mm 8192"], dtype="tf32", time_ns=31_139_000).flops_per_second
    """

    items: tuple[Item, ...]
    dtype: str
    device: str | None
    compute: CitedFigure | None
    """Ceiling of the matmuls' arithmetic."""
    memory: CitedFigure | None
    time_ns: float | None

    @property
    def flops(self) -> float:
        """FLOPs of all pieces."""
        return sum(item.flops for item in self.items)

    @property
    def bytes(self) -> float:
        """Bytes of all pieces."""
        return sum(item.bytes for item in self.items)

    @property
    def intensity(self) -> float | None:
        """FLOPs per byte."""
        return self.flops / self.bytes if self.bytes else None

    @property
    def ridge(self) -> float | None:
        """FLOPs per byte from which arithmetic bounds matmuls, and no longer the memory."""
        return self.compute.value / self.memory.value if self.compute and self.memory else None

    @property
    def flops_per_second(self) -> float | None:
        """Achieved rate of arithmetic."""
        return self.flops / self.time_ns * 1e9 if self.time_ns else None

    @property
    def bytes_per_second(self) -> float | None:
        """Achieved rate of traffic."""
        return self.bytes / self.time_ns * 1e9 if self.time_ns else None

    @property
    def floor_ns(self) -> float | None:
        """Minimum time at the ceilings; None if one is unknown."""
        floors = [item.floor_ns for item in self.items]
        return sum(floor for floor in floors if floor is not None) if None not in floors else None

    @property
    def hard_ns(self) -> float:
        """No time is shorter than this."""
        return sum(item.hard_ns for item in self.items)

    @property
    def roof_pct(self) -> float | None:
        """Floor over time, in percent."""
        return 100 * self.floor_ns / self.time_ns if self.floor_ns is not None and self.time_ns else None

    @property
    def bound(self) -> str:
        """What limits most of the minimum time; empty without ceilings."""
        if self.floor_ns is None:
            return ""
        by_compute = sum(item.compute_ns for item in self.items if item.bound == "compute")
        return "compute" if 2 * by_compute >= self.floor_ns else "memory"

    @property
    def verdict(self) -> Verdict:
        """Whether the time is possible; unknown without a time or a ceiling."""
        if self.time_ns is None or self.floor_ns is None:
            return "impossible" if self.time_ns is not None and self.time_ns < self.hard_ns else "unknown"
        if self.time_ns < self.hard_ns:
            return "impossible"
        if self.time_ns < sum(item.paper_ns for item in self.items) and self.bound == "memory":
            return "in_cache"
        return "above_measured" if self.time_ns < self.floor_ns else "possible"

    def to_dict(self) -> dict[str, Any]:
        """The JSON contract `warpline.envelope/1`."""
        return {
            "schema": SCHEMA,
            "device": self.device,
            "dtype": self.dtype,
            "flops": self.flops,
            "bytes": self.bytes,
            "intensity": self.intensity,
            "ridge": self.ridge,
            "time_ns": self.time_ns,
            "flops_per_second": self.flops_per_second,
            "bytes_per_second": self.bytes_per_second,
            "floor_ns": self.floor_ns,
            "hard_floor_ns": self.hard_ns if self.device else None,
            "roof_pct": self.roof_pct,
            "bound": self.bound or None,
            "verdict": self.verdict,
            "ceilings": {
                name: {"value": figure.value, "source": figure.source, "origin": figure.origin}
                for name, figure in (("compute", self.compute), ("memory", self.memory))
                if figure is not None
            },
            "items": [
                {
                    "name": item.name,
                    "flops": item.flops,
                    "bytes": item.bytes,
                    "floor_ns": item.floor_ns,
                    "bound": item.bound or None,
                }
                for item in self.items
            ],
        }


def envelope(
    *,
    flops: float = 0.0,
    bytes: float = 0.0,  # noqa: A002 - as in warpline.roofline
    shapes: Sequence[str] = (),
    dtype: str = "bf16",
    device: str | None = None,
    time_ns: float | None = None,
) -> Envelope:
    """The roofline of this work: `flops` of matmuls and `bytes` as one piece, and one more for each shape."""
    if time_ns is not None and time_ns <= 0:
        raise UsageError("bad-time", "a time must be positive")
    works = [(text, work_of_text(text, dtype)) for text in shapes]
    if flops or bytes:
        parts = (Flops(round(flops), _stored(dtype), MATRIX),) if flops else ()
        works.insert(0, ("as given", Work("given", parts, round(bytes))))
    if not works:
        raise UsageError("no-work", "give --flops, --bytes or --shape", 'for example --shape "mm 8192x8192x8192"')
    roof = roof_of(device) if device is not None else None
    compute = roof.compute(dtype, unit_of(dtype)) if roof else None
    items = tuple(_item(name, work, dtype, roof) for name, work in works)
    return Envelope(
        items, dtype, roof.chip.name if roof else None, compute, roof.bandwidth(DRAM) if roof else None, time_ns
    )


def scaling_dict(answers: Sequence[Envelope]) -> dict[str, Any]:
    """The JSON contract `warpline.scaling/1`: shapes with a time each."""
    return {"schema": "warpline.scaling/1", "shapes": [answer.to_dict() for answer in answers]}


def unit_of(dtype: str) -> str:
    """The unit that multiplies matrices of this type: CUDA cores for fp32, tensor cores for all others."""
    return VECTOR if dtype == "fp32" else TENSOR


def _stored(dtype: str) -> str:
    return "fp32" if dtype == "tf32" else dtype


def _item(name: str, work: Work, dtype: str, roof: Roof | None) -> Item:
    floor = floor_of(work, (dtype, unit_of(dtype)), roof)
    outside_cache = max(0, work.bytes - 2 * roof.chip.cache_bytes) if roof else 0
    return Item(
        name=name,
        flops=work.main_flops,
        bytes=work.bytes,
        compute_ns=floor.compute_ns,
        memory_ns=floor.memory_ns,
        paper_ns=max(floor.paper_compute_ns, floor.paper_memory_ns),
        hard_ns=max(
            floor.paper_compute_ns / BOOST_ALLOWANCE, floor.paper_memory_ns * outside_cache / max(work.bytes, 1)
        ),
        known=floor.known,
    )
