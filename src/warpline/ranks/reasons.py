"""Why a rank is late: what it has more of than its peers, in the steps in which it is late."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import numpy as np
from msgspec import Struct

from warpline.intervals import Spans, covered_before, union
from warpline.ranks.timeline import RankTimeline
from warpline.trace.arrays import Floats

Reason = Literal["kernel", "input", "dispatch", "work", "pause", "link", "none", "unknown"]

MORE_WORK = 1.02
"""Kernels that take longer with grids larger by this factor do more work."""
IN_PAUSES = 0.6
"""The CPU pauses if so much of its extra time lies in a few gaps; else every launch takes longer."""
FEW_GAPS = 0.1
"""So much of the gaps between launches are a few, and at least one a step."""


class Why(Struct, frozen=True):
    """The reason and its evidence."""

    reason: Reason
    extra_ns: float
    """How much more of it the rank has per late step than its peers."""
    place: str = ""
    """The kernel or op with most of it."""
    step: int | None = None
    """The common step with most of it."""


class _Times(Struct, frozen=True):
    """What a rank's time went to in some steps."""

    kernel_ns: float
    blocks: float
    input_ns: float
    gap_ns: float
    """CPU time between launches that is neither waiting for the GPU nor for data."""
    longest_gaps_ns: float
    """Of it, in a few gaps, the longest ones."""
    longest_row: int
    """The row after the longest gap."""
    by_name: Mapping[str, float]
    """Time of each kernel."""


def why(late: RankTimeline, peers: Iterable[RankTimeline], steps: Sequence[int]) -> Why:
    """Why this rank is later than its peers in these steps."""
    own, others = _times(late, steps), [_times(peer, steps) for peer in peers]
    count = max(len(steps), 1)

    def usual(values: Sequence[float]) -> float:
        return float(np.median(values)) if values else 0.0

    extra = {
        "kernel": own.kernel_ns - usual([one.kernel_ns for one in others]),
        "input": own.input_ns - usual([one.input_ns for one in others]),
        "dispatch": own.gap_ns - usual([one.gap_ns for one in others]),
    }
    most = max(extra, key=lambda name: extra[name])
    extra_ns = extra[most] / count
    if most == "input":
        return Why("input", extra_ns)
    if most == "kernel":
        blocks = usual([one.blocks for one in others])
        reason: Reason = "work" if blocks and own.blocks / blocks > MORE_WORK else "kernel"
        return Why(reason, extra_ns, _kernel_with_most(own, others))
    longest_ns = own.longest_gaps_ns - usual([one.longest_gaps_ns for one in others])
    is_pause = longest_ns > IN_PAUSES * extra["dispatch"]
    row = own.longest_row
    place = late.op.text(row) or late.name.text(row) or ""
    return Why("pause" if is_pause else "dispatch", extra_ns, place if is_pause else "", int(late.step[row]))


def _times(line: RankTimeline, steps: Sequence[int]) -> _Times:
    rows = np.flatnonzero(np.isin(line.step, steps))
    compute = rows[~line.is_comm[rows]]
    loading = _spans(line.inputs)
    waiting = _spans(np.concatenate([line.waits, line.inputs]))
    starts = line.launch_ns.astype(np.int64)
    before = np.concatenate([[int(line.steps[0, 0])], starts[:-1]])
    gaps = (starts - before) - (covered_before(waiting, starts) - covered_before(waiting, before))
    bounds = line.steps[list(steps)].astype(np.int64)
    loaded = covered_before(loading, bounds[:, 1]) - covered_before(loading, bounds[:, 0])
    gap_ns = np.maximum(gaps[rows], 0).astype(np.float64)
    few = max(len(steps), round(FEW_GAPS * len(rows)), 1)
    return _Times(
        float((line.end_ns[compute] - line.start_ns[compute]).sum()),
        float(line.blocks[compute].sum()),
        float(loaded.sum()),
        float(gap_ns.sum()),
        float(np.sort(gap_ns)[::-1][:few].sum()),
        int(rows[np.argmax(gap_ns)]) if len(rows) else 0,
        line.kernel_ns(steps),
    )


def _spans(pairs: Floats) -> Spans:
    whole = pairs.astype(np.int64)
    return union(whole[:, 0], whole[:, 1])


def _kernel_with_most(late: _Times, peers: Sequence[_Times]) -> str:
    """The kernel with most of the extra time."""
    extra = {
        name: time - float(np.median([peer.by_name.get(name, 0.0) for peer in peers]))
        for name, time in late.by_name.items()
    }
    return max(extra, key=lambda name: extra[name], default="")
