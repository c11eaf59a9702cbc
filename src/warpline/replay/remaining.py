"""GPU time that a fix leaves: what the busiest stream must still do in each step."""

from __future__ import annotations

import numpy as np

from warpline.replay.labelled_graph import LabelledGraph
from warpline.trace.arrays import Bools, Floats, Int64s

SAME = 0.999
"""An operation that keeps this share of its time is untouched."""
KERNEL_SPREAD = 0.1
"""The same kernels may take this much less time in another run: among 215 programs timed on an H200 up to 8 %."""


def stream_ns(labelled: LabelledGraph, duration: Floats, counted: Bools) -> Floats:
    """GPU time of each step on the stream that has most of it; only these nodes count. Streams run one operation
    at a time, so no step is shorter."""
    work, cell, lanes, steps = labelled.once(_cells)
    chosen = np.flatnonzero(counted[work])
    if not len(chosen):
        return np.zeros(steps)
    by_lane = np.bincount(cell[chosen], duration[work[chosen]], lanes * steps).reshape(lanes, steps)
    return by_lane[by_lane.sum(axis=1).argmax()]


def _cells(labelled: LabelledGraph) -> tuple[Int64s, Int64s, int, int]:
    """The work within steps, a number for the stream and step of each, and how many streams and steps there are."""
    work = np.flatnonzero(labelled.is_work & labelled.has_step)
    steps = int(labelled.step.max(initial=0)) + 1
    lanes, lane = np.unique(labelled.graph.lane[work], return_inverse=True)
    return work, lane * steps + labelled.step[work], len(lanes), steps


def untouched_ns(labelled: LabelledGraph, duration: Floats, elsewhere: Bools) -> float:
    """Least GPU time per step of what a fix does not touch, in a fast run and in the step that has least of it. It
    removes and moves the `elsewhere` nodes, and shortens others."""
    untouched = (duration >= SAME * labelled.graph.duration) & ~elsewhere
    return (1 - KERNEL_SPREAD) * float(stream_ns(labelled, duration, untouched).min())
