"""Where one rank's time goes: compute, transfer, waiting for other ranks, and idle; the parts sum to its step."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from msgspec import Struct

from warpline.intervals import Spans, complement, covered_before, difference, joined, union
from warpline.ranks.timeline import RankTimeline
from warpline.ranks.waits import Waits
from warpline.trace.arrays import Bools, Floats

Largest = Literal["kernel", "comm", "wait", "input", "dispatch"]


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


def rank_time(line: RankTimeline, waits: Waits) -> RankTime:
    """The account of one rank over its recorded steps."""
    steps = len(line.steps)
    compute, transfer, waiting = _parts(line, waits)
    first, last = int(line.start_ns.min()), int(line.end_ns.max())
    parts = [part.total_ns() // steps for part in (compute, transfer, waiting)]
    step_ns = (last - first) // steps
    idle = complement(joined([compute, waiting, transfer]), first, last)
    loading = union(line.inputs[:, 0].astype(np.int64), line.inputs[:, 1].astype(np.int64))
    loaded_ns = int((covered_before(loading, idle.ends) - covered_before(loading, idle.starts)).sum())
    idle_ns = step_ns - sum(parts)
    named: dict[Largest, int] = {"kernel": parts[0], "comm": parts[1], "wait": parts[2]}
    named["input" if 2 * loaded_ns > idle.total_ns() else "dispatch"] = idle_ns
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
        max(named, key=lambda name: named[name]),
        int((waits.last == line.rank).sum()),
        round(waits.blame_ns[line.rank] / steps),
        (transfer.total_ns() + waiting.total_ns()) / max(last - first, 1),
    )


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
