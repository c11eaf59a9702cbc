"""The minimum time of a call: its FLOPs and bytes at the ceilings of a chip.

The floor is the longest of its GEMMs at the tensor-core ceiling of their type, its other arithmetic at the CUDA cores',
and its bytes at the memory's (or the link's). Ceilings are measured ones where the device was measured. What no time
can go below is the data sheet, with the cache left out of the traffic.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from msgspec import Struct

from warpline.hardware import Roof
from warpline.hardware.chips import DRAM, TENSOR, VECTOR
from warpline.kernels import identify
from warpline.work import MATRIX, Work
from warpline.work.collective import FAMILY as COLLECTIVE


@lru_cache(maxsize=10_000)
def _on_tensor_cores(kernel: str) -> bool | None:
    return identify(kernel).tensor_core


def math_of(work: Work, kernels: Iterable[str]) -> tuple[str, str]:
    """Type and unit of the main arithmetic: FP32 GEMMs run as TF32 on tensor cores, or on CUDA cores."""
    if not work.flops:
        return "", ""
    main = next((part for part in work.flops if part.unit == MATRIX), work.flops[0])
    if main.unit != MATRIX:
        return main.dtype, VECTOR
    if main.dtype != "fp32":
        return main.dtype, TENSOR
    answers = {_on_tensor_cores(kernel) for kernel in kernels}
    return ("tf32", TENSOR) if True in answers or answers == {None} else ("fp32", VECTOR)


class CallFloor(Struct, frozen=True):
    """Minimum times of one call, each at its ceiling."""

    compute_ns: float
    memory_ns: float
    paper_compute_ns: float
    """By the data sheet, as the next: only that is a limit, for a measured figure may be surpassed."""
    paper_memory_ns: float
    hard_ns: float
    """By the data sheet, with as much as possible in the cache."""
    known: bool
    flops: int
    """Main operations of the call."""


def floor_of(work: Work, math: tuple[str, str], roof: Roof | None) -> CallFloor:
    """Minimum times of one call; unknown if significant arithmetic has no ceiling, and for a collective, which also
    waits for other ranks."""
    bandwidth = roof.bandwidth(work.link) if roof else None
    if roof is None or bandwidth is None or work.model == COLLECTIVE:
        return CallFloor(0, 0, 0, 0, 0, False, work.main_flops)
    compute_ns, paper_ns, known = 0.0, 0.0, True
    for part in work.flops:
        dtype, unit = math if part.unit == MATRIX else (part.dtype, VECTOR)
        peak, paper = roof.compute(dtype, unit), roof.compute(dtype, unit, on_paper=True)
        if peak is None:
            known = known and part.unit != MATRIX
            continue
        compute_ns = max(compute_ns, part.count / peak.value * 1e9)
        if paper is not None:
            paper_ns = max(paper_ns, part.count / paper.value * 1e9)
    memory_ns = work.bytes / bandwidth.value * 1e9
    paper_bandwidth = roof.bandwidth(work.link, on_paper=True) or bandwidth
    cached = roof.chip.cache_bytes if work.link == DRAM else 0
    must_travel = max(0, work.read_bytes - cached) + max(0, work.written_bytes - cached)
    paper_memory_ns = work.bytes / paper_bandwidth.value * 1e9
    hard_ns = max(paper_ns, must_travel / paper_bandwidth.value * 1e9)
    return CallFloor(compute_ns, memory_ns, paper_ns, paper_memory_ns, hard_ns, known, work.main_flops)


def floor_of_call(work: Work, math: tuple[str, str], roof: Roof) -> float | None:
    """Minimum time of one call under this roof, in ns; None if a ceiling is unknown."""
    floor = floor_of(work, math, roof)
    return max(floor.compute_ns, floor.memory_ns) if floor.known else None
