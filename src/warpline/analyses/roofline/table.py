"""How far each op and each kernel is from the roofline: its FLOPs and bytes, its time, and its minimum time.

The floor of a piece is the longest of its GEMMs at the tensor-core ceiling of their type, its other
arithmetic at the CUDA cores', and its bytes at the memory's (or the link's). Ceilings are measured ones where the
device was measured. What no time can go below is the data sheet, with the cache left out of the traffic.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from warpline.analyses.device import trace_device
from warpline.analyses.roofline.entry import (
    ABOVE_MEASURED,
    IMPOSSIBLE,
    IN_CACHE,
    LATENCY_NS,
    RooflineEntry,
    RooflineTable,
    Unmodelled,
)
from warpline.analyses.roofline.ops_from_elsewhere import foreign_ops
from warpline.analyses.roofline.pieces import GpuWork, Piece
from warpline.errors import CannotAnswer
from warpline.hardware import Roof, roof_of
from warpline.hardware.chips import DRAM, TENSOR, VECTOR
from warpline.kernels import identify
from warpline.trace.trace import Trace
from warpline.work import MATRIX, Work

TOLERANCE = 0.98
"""A time this close below a limit is the clock's rounding (Kineto's, 1 ns) or a boost above the data sheet's."""
SPARSE_GAIN = 2.0
"""2:4 sparsity doubles the tensor peak."""


def roofline_table(
    trace: Trace,
    *,
    by: str = "op",
    device: str | None = None,
    shapes_from: Trace | None = None,
    known_work: GpuWork | None = None,
) -> RooflineTable:
    """The roofline of the selected steps, by `op` (with its shapes) or by `kernel`; another trace can lend shapes."""
    gpu_work = known_work or GpuWork(trace, foreign=foreign_ops(trace, shapes_from))
    pieces = gpu_work.pieces
    if not pieces:
        raise CannotAnswer(
            "no-gpu-work", "the trace has no GPU operations in the selected steps", "record with CUDA activities"
        )
    name, chip = trace_device(trace, device)
    roof = roof_of(chip) if chip else None
    known = [piece for piece in pieces if piece.work is not None]
    if not any(piece.work.link == DRAM for piece in known if piece.work is not None) and trace.source == "nsys":
        raise CannotAnswer(
            "no-shapes",
            "an nsys profile records no shapes, so the FLOPs and bytes of its kernels are unknown",
            "record the same program with torch.profiler and record_shapes=True, and name it with --shapes-from",
        )
    entries = _by_kernel(gpu_work, roof) if by == "kernel" else _by_op(gpu_work, roof)
    return RooflineTable(
        by=by,
        device=chip.name if chip else name,
        roof=roof,
        steps=len(trace.steps_in_view) or None,
        total_ns=sum(piece.time_ns for piece in pieces),
        modelled_ns=sum(piece.time_ns for piece in known),
        estimated_ns=sum(piece.time_ns for piece in known if piece.work is not None and piece.work.estimate),
        entries=sorted((_judged(entry, roof) for entry in entries), key=lambda entry: -entry.time_ns),
        unmodelled=_unmodelled(piece for piece in pieces if piece.work is None),
    )


def kernel_floors(
    trace: Trace, device: str | None = None, known_work: GpuWork | None = None
) -> dict[int, tuple[float, str]]:
    """By row of `gpu`: a kernel's minimum time and what bounds it; rows with an unknown floor are absent."""
    gpu_work = known_work or GpuWork(trace)
    _, chip = trace_device(trace, device)
    numbers, times, is_kernel = gpu_work.rows.tolist(), gpu_work.time_ns.tolist(), gpu_work.is_kernel.tolist()
    floors: dict[int, tuple[float, str]] = {}
    for piece, work, _math, floor in priced(gpu_work, roof_of(chip) if chip else None):
        rows = [position for position in piece.rows if is_kernel[position]]
        worked_ns = sum([times[position] for position in rows])
        if not floor.known or not worked_ns or work.link != DRAM:
            continue
        whole_ns = max(floor.compute_ns, floor.memory_ns)
        bound = "compute" if floor.compute_ns > floor.memory_ns else "memory"
        for position in rows:
            share = times[position] / worked_ns
            floors[numbers[position]] = (share * whole_ns, "latency" if whole_ns < LATENCY_NS else bound)
    return floors


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


class _Floor(Struct, frozen=True):
    compute_ns: float
    memory_ns: float
    paper_memory_ns: float
    hard_ns: float
    known: bool
    flops: int
    """Main operations of the call."""


def _floor(work: Work, math: tuple[str, str], roof: Roof | None) -> _Floor:
    """Minimum times of one call; unknown if significant arithmetic has no ceiling."""
    bandwidth = roof.bandwidth(work.link) if roof else None
    if roof is None or bandwidth is None:
        return _Floor(0, 0, 0, 0, False, work.main_flops)
    compute_ns, hard_ns, known = 0.0, 0.0, True
    for part in work.flops:
        dtype, unit = math if part.unit == MATRIX else (part.dtype, VECTOR)
        peak, paper = roof.compute(dtype, unit), roof.compute(dtype, unit, on_paper=True)
        if peak is None:
            known = known and part.unit != MATRIX
            continue
        compute_ns = max(compute_ns, part.count / peak.value * 1e9)
        if paper is not None:  # Only the data sheet is a limit: a measured figure may be surpassed.
            hard_ns = max(hard_ns, part.count / paper.value * 1e9)
    memory_ns = work.bytes / bandwidth.value * 1e9
    paper_bandwidth = roof.bandwidth(work.link, on_paper=True) or bandwidth
    cached = roof.chip.cache_bytes if work.link == DRAM else 0
    must_travel = max(0, work.read_bytes - cached) + max(0, work.written_bytes - cached)
    paper_memory_ns = work.bytes / paper_bandwidth.value * 1e9
    hard_ns = max(hard_ns, must_travel / paper_bandwidth.value * 1e9)
    return _Floor(compute_ns, memory_ns, paper_memory_ns, hard_ns, known, work.main_flops)


def floor_of_call(work: Work, math: tuple[str, str], roof: Roof) -> float | None:
    """Minimum time of one call under this roof, in ns; None if a ceiling is unknown."""
    floor = _floor(work, math, roof)
    return max(floor.compute_ns, floor.memory_ns) if floor.known else None


def _add(entry: RooflineEntry, piece: Piece, work: Work, floor: _Floor, share: float, time_ns: float) -> None:
    entry.count += 1
    entry.time_ns += time_ns
    entry.flops += share * floor.flops
    entry.read_bytes += share * work.read_bytes
    entry.written_bytes += share * work.written_bytes
    entry.compute_floor_ns += share * floor.compute_ns
    entry.memory_floor_ns += share * floor.memory_ns
    entry.paper_memory_ns += share * floor.paper_memory_ns
    entry.hard_floor_ns += share * floor.hard_ns
    if piece.in_step and floor.known:
        entry.step_headroom_ns += max(0.0, time_ns - share * max(floor.compute_ns, floor.memory_ns))
    if not floor.known or entry.floor_ns is None:
        entry.floor_ns = None
    else:
        entry.floor_ns += share * max(floor.compute_ns, floor.memory_ns)
    entry.estimate = entry.estimate or work.estimate


Priced: TypeAlias = tuple[Piece, Work, tuple[str, str], _Floor]


def priced(gpu_work: GpuWork, roof: Roof | None) -> list[Priced]:
    """Each piece with known work: its FLOPs and bytes, the type and unit of its arithmetic, and its floor."""
    chip = roof.chip.name if roof else None
    if chip not in gpu_work.prices:
        gpu_work.prices[chip] = list(_prices(gpu_work, roof))
    return gpu_work.prices[chip]


def _prices(gpu_work: GpuWork, roof: Roof | None) -> Iterator[Priced]:
    floors: dict[tuple[int, tuple[str, str]], _Floor] = {}
    maths: dict[int, tuple[str, str]] = {}
    for piece in gpu_work.pieces:
        if piece.work is None:
            continue
        # Calls with the same arguments share one `Work`, and those with the same kernels have the same arithmetic.
        math = maths.get(id(piece.alike)) if piece.alike is not None else None
        if math is None:
            math = maths[id(piece.alike)] = math_of(piece.work, gpu_work.kernel_names(piece))
        key = (id(piece.work), math)
        if key not in floors:
            floors[key] = _floor(piece.work, math, roof)
        yield piece, piece.work, math, floors[key]


def _by_op(gpu_work: GpuWork, roof: Roof | None) -> list[RooflineEntry]:
    entries: dict[tuple[str, ...], RooflineEntry] = {}
    for piece, work, math, floor in priced(gpu_work, roof):
        key = (piece.op, piece.shapes, piece.dtypes, *math)
        if key not in entries:
            label = " ".join(math).strip()
            entries[key] = RooflineEntry(piece.op, piece.shapes, piece.dtypes, work.model, label, link=work.link)
        _add(entries[key], piece, work, floor, 1.0, piece.time_ns)
    return list(entries.values())


def _by_kernel(gpu_work: GpuWork, roof: Roof | None) -> list[RooflineEntry]:
    """Kernels of one call share its FLOPs and bytes in proportion to their time; a memset gets none."""
    entries: dict[tuple[str, ...], RooflineEntry] = {}
    names, times, is_kernel = gpu_work.gpu.name.texts, gpu_work.time_ns.tolist(), gpu_work.is_kernel
    for piece, work, math, floor in priced(gpu_work, roof):
        # A call without kernels is done by its copies.
        workers = {position for position in piece.rows if is_kernel[position]} or set(piece.rows)
        worked_ns = sum(times[position] for position in workers)
        for position in piece.rows:
            works, name, time_ns = position in workers, names[position], times[position]
            key = (name, work.model if works else "helper", *math)
            if key not in entries:
                label = " ".join(math).strip() if works else ""
                entries[key] = RooflineEntry(name, "", "", key[1], label, link=work.link)
            share = time_ns / worked_ns if works and worked_ns else 0.0
            _add(entries[key], piece, work, floor, share, time_ns)
    return list(entries.values())


def _judged(entry: RooflineEntry, roof: Roof | None) -> RooflineEntry:
    """The entry with its time compared with the floors."""
    if roof is None or entry.floor_ns is None or entry.time_ns >= TOLERANCE * entry.floor_ns:
        return entry
    if entry.estimate:
        return replace(entry, floor_ns=None, step_headroom_ns=0.0, note=f"the estimate is too high ({entry.estimate})")
    if entry.time_ns >= TOLERANCE * entry.hard_floor_ns:
        if entry.memory_floor_ns >= entry.compute_floor_ns and entry.time_ns < TOLERANCE * entry.paper_memory_ns:
            size = entry.bytes / max(1, entry.count)
            note = (
                f"faster than memory: {size / 1e6:.4g} MB a call, and the cache holds {roof.chip.cache_bytes / 1e6:.4g}"
            )
            return replace(entry, state=IN_CACHE, note=note)
        return replace(entry, state=ABOVE_MEASURED, note="faster than the measured ceiling, within the data sheet's")
    ratio = entry.hard_floor_ns / entry.time_ns if entry.time_ns else float("inf")
    if entry.compute_floor_ns >= entry.memory_floor_ns:
        reason = (
            "2:4 sparsity would explain it, or the shapes are not those it ran with"
            if ratio <= SPARSE_GAIN
            else ("the shapes or types are not those it ran with")
        )
    else:
        reason = "not all of the data was touched, or the shapes are not those it ran with"
    return replace(entry, state=IMPOSSIBLE, note=f"{ratio:.3g} times faster than the chip's limit: {reason}")


def _unmodelled(pieces: Iterable[Piece]) -> list[Unmodelled]:
    counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for piece in pieces:
        tally = counts[piece.op, piece.why]
        tally[0] += 1
        tally[1] += piece.time_ns
    found = [Unmodelled(op, why, count, time_ns) for (op, why), (count, time_ns) in counts.items()]
    return sorted(found, key=lambda item: -item.time_ns)
