"""The answer about memory, for each device: peak, growth, what is alive at the peak, and the curve."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
from msgspec import Struct, to_builtins

from warpline.analyses.memory.allocations import PLACES, Allocations, Counted, MemoryCurve, allocations_of, memory_curve
from warpline.analyses.memory.growth import WARM_UP_STEPS, Growth, growth
from warpline.analyses.memory.lifetimes import Grower, Holder, alive_after, freed_at, growers, holders
from warpline.analyses.memory.snapshot import OutOfMemory, Pieces, allocations_of_snapshot, failures_of, pieces
from warpline.errors import CannotAnswer
from warpline.library_names import OPTIMIZER_STEP, PROFILER_STEP
from warpline.sources.snapshot.read import Snapshot
from warpline.trace.arrays import NONE, Int64s
from warpline.trace.trace import Trace

"""How torch names the range of an optimizer's step."""
SCHEMA = "warpline.memory/1"


class Peak(Struct, frozen=True):
    """The moment with the most memory allocated."""

    time_ns: int
    step: int | None
    """Position of the step in which it lies."""
    allocated_bytes: int
    reserved_bytes: int | None
    op: str | None
    module: str | None
    line: str | None
    """Of the allocation that reaches it."""


class StepSpans(Struct, frozen=True):
    """Steps in order, with their positions in the trace."""

    indices: Int64s
    starts: Int64s
    ends: Int64s

    def at(self, time_ns: int) -> int | None:
        """The position of the step around a moment."""
        found = int(np.searchsorted(self.starts, time_ns, side="right")) - 1
        return int(self.indices[found]) if found >= 0 and time_ns < self.ends[found] else None


class DeviceMemory(Struct, frozen=True):
    """Memory of one device."""

    device: str
    counted: Counted
    events: int
    start_known: bool
    """Whether totals include what was allocated before the recording."""
    start_bytes: int
    end_bytes: int
    peak: Peak
    peak_reserved_bytes: int | None
    earlier_bytes: int | None
    """Part of the peak whose allocation was not recorded: it was allocated before. None without addresses."""
    capacity_bytes: int | None
    """Memory of the device, where the trace tells."""
    growth: Growth
    floors_bytes: tuple[int, ...]
    """Least memory in use in each step."""
    growers: tuple[Grower, ...]
    """Where growing memory was allocated; empty if it does not grow, or the trace has no addresses."""
    holders: dict[str, tuple[Holder, ...]]
    """By op, module and line."""
    pieces: Pieces | None
    """The allocator's segments (of a snapshot only)."""
    curve: MemoryCurve
    steps_ns: tuple[int, ...]
    """Begin of each step."""

    @property
    def steps_until_full(self) -> float | None:
        """Steps after which growing memory exceeds the device; None where that is unknown."""
        rate = self.growth.per_step_bytes
        if self.growth.trend != "growing" or not rate or rate <= 0 or self.capacity_bytes is None:
            return None
        return max(self.capacity_bytes - self.peak.allocated_bytes, 0) / rate


class MemoryUse(Struct, frozen=True):
    """Memory of all devices of a profile."""

    source: str
    """kineto, nsys or snapshot."""
    devices: tuple[DeviceMemory, ...]
    failures: tuple[OutOfMemory, ...] = ()
    skipped: int = 0
    """Entries of a snapshot that could not be read."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON: `warpline.memory/1`."""
        return {
            "schema": SCHEMA,
            "source": self.source,
            "devices": [_device_dict(one) for one in self.devices],
            "failures": [to_builtins(one) for one in self.failures],
            "skipped": self.skipped,
        }


def _device_dict(one: DeviceMemory) -> dict[str, Any]:
    plain = {name: getattr(one, name) for name in DeviceMemory.__struct_fields__}
    segments = one.pieces
    return {
        **plain,
        "peak": to_builtins(one.peak),
        "growth": {**to_builtins(one.growth), "steps_until_full": one.steps_until_full},
        "growers": [to_builtins(entry) for entry in one.growers],
        "holders": {place: [to_builtins(entry) for entry in entries] for place, entries in one.holders.items()},
        "pieces": {**to_builtins(segments), "split_share": segments.split_share} if segments else None,
        "curve": one.curve.to_dict(),
    }


def memory_of_trace(trace: Trace) -> MemoryUse:
    """Memory of each device during the steps in view, or the whole recording."""
    found = allocations_of(trace)
    if not found:
        how = (
            "nsys needs --cuda-memory-usage=true"
            if trace.source == "nsys"
            else "of a PyTorch program, record with warpline run --memory or profile_memory=True, or give a "
            "snapshot of torch.cuda.memory._dump_snapshot()"
        )
        raise CannotAnswer("no-memory-events", "cannot answer, because the trace has no memory events", how)
    steps, devices = trace.steps_in_view, trace.devices
    in_view = StepSpans(steps.index, steps.start_ns, steps.end_ns)
    sizes = zip(devices.device.tolist(), devices.memory_bytes.tolist(), strict=True)
    capacity = {f"cuda:{number}": size for number, size in sizes if size != NONE}
    cut = trace.window if trace.chosen_steps is not None else None
    within = (cut.start_ns, cut.end_ns) if cut is not None else None
    chosen = [_in_view(one, within) for one in found]
    shown = [
        _device(one, rows, in_view, capacity.get(one.device.replace("hip", "cuda")))
        for one, rows in zip(found, chosen, strict=True)
        if rows.stop > rows.start
    ]
    if not shown:
        raise CannotAnswer("no-memory-events", "cannot answer, because the chosen steps have no memory events")
    return MemoryUse(trace.source, tuple(shown))


def memory_of_snapshot(snapshot: Snapshot) -> MemoryUse:
    """Memory of each device of a snapshot, by its steps where it has marks of them."""
    found = [one for one in allocations_of_snapshot(snapshot) if len(one)]
    if not found:
        raise CannotAnswer("no-allocations", "cannot answer, because the snapshot has no allocations")
    steps = _steps_of(snapshot)
    devices = [
        _device(one, slice(0, len(one)), steps, None, pieces(snapshot.segments.get(_number(one), []))) for one in found
    ]
    return MemoryUse("snapshot", tuple(devices), tuple(failures_of(snapshot)), snapshot.skipped)


def _steps_of(snapshot: Snapshot) -> StepSpans:
    """The ranges named ProfilerStep; without them, a step ends where an optimizer's step does."""
    marks = [mark[:2] for mark in snapshot.marks if re.match(PROFILER_STEP, mark[2])]
    optimizers = Counter(name for _, _, name in snapshot.marks if re.match(OPTIMIZER_STEP, name))
    if not marks and optimizers:
        chosen = optimizers.most_common(1)[0][0]
        ends = sorted(end for _, end, name in snapshot.marks if name == chosen)
        marks = list(zip([0, *ends], ends, strict=False))
    starts, stops = (np.array([mark[side] for mark in marks], np.int64) for side in (0, 1))
    return StepSpans(np.arange(len(marks)), starts, stops)


def _number(one: Allocations) -> int:
    return int(one.device.rpartition(":")[2])


def _in_view(one: Allocations, within: tuple[int, int] | None) -> slice:
    if within is None:
        return slice(0, len(one))
    first, beyond = np.searchsorted(one.time_ns, within)
    return slice(int(first), int(beyond))


def _device(
    one: Allocations,
    rows: slice,
    steps: StepSpans,
    capacity: int | None,
    segments: Pieces | None = None,
) -> DeviceMemory:
    top = rows.start + int(np.argmax(one.allocated[rows]))
    freed = freed_at(one.address) if one.address is not None else None
    alive = alive_after(one, freed, top) if freed is not None else None
    lowest = _lowest(one, steps)
    trend = growth(one.allocated[lowest])
    return DeviceMemory(
        one.device,
        one.counted,
        rows.stop - rows.start,
        one.start_known,
        int(one.allocated[rows.start - 1]) if rows.start else one.start_bytes,
        int(one.allocated[rows.stop - 1]),
        Peak(
            int(one.time_ns[top]),
            steps.at(int(one.time_ns[top])),
            int(one.allocated[top]),
            int(one.reserved[top]) if one.reserved is not None else None,
            **{name: one.places[name][top] for name in PLACES},
        ),
        int(one.reserved[rows].max()) if one.reserved is not None else None,
        max(int(one.allocated[top]) - int(one.bytes[alive].sum()), 0) if alive is not None else None,
        capacity,
        trend,
        tuple(one.allocated[lowest].tolist()),
        growers(one, freed, int(lowest[WARM_UP_STEPS]), int(lowest[-1]), len(lowest) - 1 - WARM_UP_STEPS)
        if freed is not None and trend.trend == "growing"
        else (),
        {place: holders(one, alive, place) for place in PLACES if one.places[place].null_count() < len(one)},
        segments,
        memory_curve(one, rows),
        tuple(steps.starts.tolist()),
    )


def _lowest(one: Allocations, steps: StepSpans) -> Int64s:
    """The event of each step after which the least memory is in use; the step begins with what the last one left.

    Steps before the first event are left out, but for the one that holds it.
    """
    found = []
    for start, end in zip(steps.starts.tolist(), steps.ends.tolist(), strict=True):
        if end > one.time_ns[0]:
            first, beyond = np.searchsorted(one.time_ns, (start, end))
            begin = max(int(first) - 1, 0)
            found.append(begin + int(np.argmin(one.allocated[begin : max(int(beyond), begin + 1)])))
    return np.array(found, np.int64)
