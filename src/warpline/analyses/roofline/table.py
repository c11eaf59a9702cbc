"""How far each op and each kernel is from the roofline: its FLOPs and bytes, its time, and its minimum time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

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
from warpline.analyses.roofline.floors import CallFloor
from warpline.analyses.roofline.ops_from_elsewhere import foreign_ops
from warpline.analyses.roofline.pieces import GpuWork, Piece
from warpline.errors import CannotAnswer, NoGpuWork
from warpline.hardware import Roof, roof_of
from warpline.hardware.chips import DRAM
from warpline.trace.trace import Trace
from warpline.work import Work

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
        raise NoGpuWork("the trace has no GPU operations in the selected steps")
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
        busy_ns=gpu_work.busy_ns,
        modelled_ns=sum(piece.time_ns for piece in known),
        estimated_ns=sum(piece.time_ns for piece in known if piece.work is not None and piece.work.estimate),
        entries=sorted((_judged(entry, roof) for entry in entries), key=lambda entry: -entry.time_ns),
        unmodelled=_unmodelled(piece for piece in pieces if piece.work is None),
    )


def kernel_floors(trace: Trace, known_work: GpuWork | None = None) -> dict[int, tuple[float, str]]:
    """By row of `gpu`: a kernel's minimum time and what bounds it; rows with an unknown floor are absent."""
    gpu_work = known_work or GpuWork(trace)
    _, chip = trace_device(trace)
    numbers, times, is_kernel = gpu_work.rows.tolist(), gpu_work.time_ns.tolist(), gpu_work.is_kernel.tolist()
    floors: dict[int, tuple[float, str]] = {}
    for piece, work, _math, floor in gpu_work.priced(roof_of(chip) if chip else None):
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


def _add(entry: RooflineEntry, piece: Piece, work: Work, floor: CallFloor, share: float, time_ns: float) -> None:
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


def _by_op(gpu_work: GpuWork, roof: Roof | None) -> list[RooflineEntry]:
    entries: dict[tuple[str, ...], RooflineEntry] = {}
    for piece, work, math, floor in gpu_work.priced(roof):
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
    for piece, work, math, floor in gpu_work.priced(roof):
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
