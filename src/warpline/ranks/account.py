"""Where one rank's time goes: compute, transfer, waiting for other ranks, and idle; the parts sum to its step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from msgspec import Struct

from warpline.compare.parts import short
from warpline.intervals import Spans, complement, covered_before, difference, intersection, joined, union
from warpline.ranks.dependencies import LONGEST_LATENCY_NS
from warpline.ranks.timeline import RankTimeline
from warpline.ranks.waits import Waits
from warpline.trace.arrays import Bools, Floats
from warpline.units import duration

SHOWN_NAME = 40
Largest = Literal["kernel", "comm", "wait", "input", "dispatch", "unknown"]


class RankTime(Struct, frozen=True):
    """One rank, per step. `compute_ns`, the exposed parts and `idle_ns` sum to `step_ns`."""

    rank: int
    step_ns: int
    compute_ns: int
    """Kernels, copies and memsets."""
    comm_transfer_ns: int
    """Collectives after the last member has arrived, also where they overlap with compute."""
    comm_wait_ns: int
    """Collectives before that: waiting for other ranks."""
    exposed_transfer_ns: int
    exposed_wait_ns: int
    """The parts of both during which the rank computes nothing."""
    idle_ns: int
    cause: Largest
    """The largest part."""
    times_last: int
    """Collectives at which it arrived last."""
    blame_ns: int
    """How much earlier the next to last arrived at those, per step."""
    exposed_communication_share: float
    """Share of the recording in which a collective runs and no compute."""
    alone_ns: int
    """Its step if nobody else were late, by replay. It counts from the end of the first of several steps, `step_ns`
    from the first operation, so it can be a little longer."""
    alone_cause: Largest
    """What most of that step goes to."""
    diagnosis: str
    """The same in a line."""

    def to_dict(self) -> dict[str, Any]:
        """As the JSON contract has it."""
        return {name: getattr(self, name) for name in self.__struct_fields__}


class RankStepTime(Struct, frozen=True):
    """One step of one rank, from its first GPU operation to that of the next step; its parts sum to `length_ns`."""

    rank: int
    step: int
    """Position among the common steps."""
    length_ns: int
    compute_ns: int
    transfer_ns: int
    wait_ns: int
    idle_ns: int


def rank_time(line: RankTimeline, waits: Waits, alone_ns: float) -> RankTime:
    """The account of one rank over its recorded steps; `alone_ns` is its step if nobody else were late."""
    steps = len(line.steps)
    compute, transfer, waiting = _parts(line, waits)
    first, last = int(line.start_ns.min()), int(line.end_ns.max())
    recorded_ns = max(last - first, 1)
    if steps == 1:  # of several steps, the next one has what comes before the first operation
        first = min(first, int(line.steps[0, 0]))
    parts = [part.total_ns() // steps for part in (compute, transfer, waiting)]
    step_ns = (last - first) // steps
    idle = complement(joined([compute, waiting, transfer]), first, last)
    idle_ns = step_ns - sum(parts)
    idle_cause = _cause_of_idle(line, idle)
    named: dict[Largest, int] = {"kernel": parts[0], "comm": parts[1], "wait": parts[2], idle_cause: idle_ns}
    alone: dict[Largest, float] = {"kernel": parts[0], "comm": parts[1], idle_cause: alone_ns - parts[0] - parts[1]}
    alone_cause = _largest(alone)
    comm = line.is_comm
    wait_ns = float(waits.wait_ns[line.rank].sum())
    return RankTime(
        line.rank,
        step_ns,
        parts[0],
        round((float((line.end_ns - line.start_ns)[comm].sum()) - wait_ns) / steps),
        round(wait_ns / steps),
        parts[1],
        parts[2],
        idle_ns,
        _largest(named),
        int((waits.last == line.rank).sum()),
        round(waits.blame_ns[line.rank] / steps),
        (transfer.total_ns() + waiting.total_ns()) / recorded_ns,
        round(alone_ns),
        alone_cause,
        _diagnosis(line, alone_cause, alone[alone_cause]),
    )


def _cause_of_idle(line: RankTimeline, idle: Spans) -> Largest:
    """What an idle GPU mostly waits for: data, launches, or, where operations are launched and do not start, something
    that is not recorded."""
    loading = union(*line.inputs.T.astype(np.int64))
    late_from = np.minimum(line.launch_ns + LONGEST_LATENCY_NS, line.start_ns)
    waiting = union(late_from.astype(np.int64), line.start_ns.astype(np.int64))
    causes: dict[Largest, Spans] = {"input": loading, "unknown": waiting}
    most = (cause for cause, spans in causes.items() if 2 * intersection(idle, spans).total_ns() > idle.total_ns())
    return next(most, "dispatch")


def _largest(parts: Mapping[Largest, float]) -> Largest:
    return max(parts, key=lambda name: parts[name])


def _diagnosis(line: RankTimeline, cause: Largest, time_ns: float) -> str:
    """That most of the rank's step, if nobody else were late, would go to this cause."""
    if cause == "comm":
        return f"transfers that no compute hides take {duration(time_ns)}"
    if cause == "kernel":
        times = line.kernel_ns()
        if not any(times.values()):
            return f"GPU operations take {duration(time_ns)}"
        most = max(times, key=lambda name: times[name])
        each = duration(times[most] / len(line.steps))
        return f"kernels take {duration(time_ns)}, most in {short(most)[:SHOWN_NAME]} ({each})"
    if cause == "input":
        return f"the GPU waits {duration(time_ns)}, mostly while the CPU waits for data"
    if cause == "unknown":
        return (
            f"the GPU is idle for {duration(time_ns)}, mostly while launched work does not start for no recorded reason"
        )
    launches = line.launch_ns.astype(np.int64)
    waiting = union(*np.concatenate([line.waits, line.inputs]).astype(np.int64).T)
    gaps = np.diff(launches) - np.diff(covered_before(waiting, launches))
    row = int(np.argmax(gaps)) + 1 if len(gaps) else 0
    place = (line.op.text(row) or line.name.text(row) or "").removeprefix("void ")[:SHOWN_NAME]
    longest = f"; its longest pause, {duration(int(gaps[row - 1]))}, is before {place}" if row and place else ""
    return f"the GPU waits {duration(time_ns)} for the CPU to launch{longest}"


def step_times(line: RankTimeline, waits: Waits) -> list[RankStepTime]:
    """The account of one rank, step by step."""
    starts = np.full(len(line.steps), np.inf)
    np.minimum.at(starts, line.step, line.start_ns)
    borders = np.maximum.accumulate(np.rint(np.append(starts, line.end_ns.max())).astype(np.int64))
    parts = [np.diff(covered_before(part, borders)).tolist() for part in _parts(line, waits)]
    lengths = np.diff(borders).tolist()
    return [
        RankStepTime(line.rank, step, length, compute, transfer, wait, length - compute - transfer - wait)
        for step, (length, compute, transfer, wait) in enumerate(zip(lengths, *parts, strict=True))
    ]


def _parts(line: RankTimeline, waits: Waits) -> tuple[Spans, Spans, Spans]:
    """When the rank computes, and when it only transfers or only waits."""
    wait_end_ns = line.start_ns + waits.of_operations(line)
    compute = _spans(line.start_ns, line.end_ns, ~line.is_comm)
    waiting = difference(_spans(line.start_ns, wait_end_ns, line.is_comm), compute)
    transfer = difference(_spans(wait_end_ns, line.end_ns, line.is_comm), joined([compute, waiting]))
    return compute, transfer, waiting


def _spans(starts: Floats, ends: Floats, chosen: Bools) -> Spans:
    return union(np.rint(starts[chosen]).astype(np.int64), np.rint(ends[chosen]).astype(np.int64))
