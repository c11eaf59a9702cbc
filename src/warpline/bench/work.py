"""The work of a call, its rates on the device, and whether the time is possible."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from warpline.errors import UsageError
from warpline.hardware.chips import DRAM, TENSOR, VECTOR, CitedFigure
from warpline.hardware.find import find_device
from warpline.hardware.roof import Roof, roof_of

TYPES = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8")
BOOST_ALLOWANCE = 1.09
"""Data sheets quote tensor peaks below the maximum clock: an H200's at 1.83 GHz, while it runs at up to 1.98 GHz."""


@dataclass(frozen=True, slots=True)
class CallWork:
    """The minimum work of one call."""

    flops: float = 0.0
    bytes: float = 0.0
    dtype: str = "fp32"
    """The type of the arithmetic: fp32 data multiplied on tensor cores are tf32."""
    unit: str = ""
    """`tensor` or `vector`; if empty, determined by the type."""

    @property
    def where(self) -> str:
        """The unit that computes it: fp32 matmuls run on CUDA cores, all others on tensor cores."""
        return self.unit or (VECTOR if self.dtype == "fp32" else TENSOR)


@dataclass(frozen=True, slots=True)
class RoofJudgement:
    """A time compared with the device's peaks."""

    work: CallWork
    flops_per_second: float
    bytes_per_second: float
    roof_ns: float | None
    """The time at the measured ceilings (the data sheet's if none were measured); None for an unknown chip."""
    roof_pct: float | None
    bound: str
    """`compute`, `memory`, or empty without a roof."""
    floor_ns: float | None
    """The minimum time by the data sheet, allowing for caches: no shorter time is possible."""
    sources: tuple[str, ...] = ()

    def impossible(self, time_ns: float) -> bool:
        """Whether the time is impossible."""
        return self.floor_ns is not None and time_ns < self.floor_ns


def checked_work(flops: float | None, bytes_: float | None, dtype: str | None, unit: str = "") -> CallWork | None:
    """The work as given by the caller; None if nothing is given."""
    if dtype is not None and dtype not in TYPES:
        raise UsageError("bad-dtype", f"no data type is called {dtype!r}", f"one of {', '.join(TYPES)}")
    if flops is None and bytes_ is None:
        return None
    if not all(0 <= amount < math.inf for amount in (flops or 0.0, bytes_ or 0.0)):
        raise UsageError("bad-work", "flops and bytes must be non-negative numbers")
    if flops and dtype is None:
        raise UsageError("no-dtype", "flops need a data type", "add dtype='bf16' or similar")
    return CallWork(flops or 0.0, bytes_ or 0.0, dtype or "fp32", unit)


def roof_at_hand(properties: Any) -> Roof | None:
    """The roof of the device that torch describes; None for an unknown chip."""
    compute = (int(properties.major), int(properties.minor))
    chip = find_device(str(properties.name), int(properties.multi_processor_count), compute)
    return None if chip is None else roof_of(chip)


def judge(work: CallWork, time_ns: float, roof: Roof | None, *, cached_bytes: int) -> RoofJudgement:
    """The rates, the share of the roof, and the floor.

    `cached_bytes` is what may stay in caches instead of memory. It is subtracted twice, from the reads and from the
    writes: even after a flush, results may be in the L2 when the clock stops.
    """
    rates = (work.flops / time_ns * 1e9, work.bytes / time_ns * 1e9)
    compute = roof.compute(work.dtype, work.where) if roof and work.flops else None
    memory = roof.bandwidth(DRAM) if roof and work.bytes else None
    if roof is None or (work.flops and compute is None) or (work.bytes and memory is None):
        return RoofJudgement(work, *rates, None, None, "", None)
    compute_ns, memory_ns = _ns(work.flops, compute), _ns(work.bytes, memory)
    # Only the data sheet is a limit: a measured figure may be surpassed.
    paper_compute = roof.compute(work.dtype, work.where, on_paper=True)
    paper_memory = roof.bandwidth(DRAM, on_paper=True)
    cached = 2 * max(cached_bytes, roof.chip.cache_bytes)
    roof_ns = max(compute_ns, memory_ns)
    floor_ns = max(_ns(work.flops, paper_compute) / BOOST_ALLOWANCE, _ns(max(0.0, work.bytes - cached), paper_memory))
    return RoofJudgement(
        work,
        *rates,
        roof_ns,
        100 * roof_ns / time_ns,
        "compute" if compute_ns >= memory_ns else "memory",
        floor_ns,
        tuple(figure.source for figure in (compute, memory) if figure is not None),
    )


def _ns(amount: float, figure: CitedFigure | None) -> float:
    return amount / figure.value * 1e9 if figure is not None else 0.0
