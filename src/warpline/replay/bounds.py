"""What the devices must still do in a step after a fix: no predicted step is shorter.

A device that is busy 157 ms of each step cannot finish a step in 25 ms, however early its work is launched. The bound
counts what the fix leaves as it is, plus what it makes of the rest; it knows nothing of launches, waits or order, so
the replay cannot err with it. It never exceeds the step itself.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from warpline.estimate import Estimate
from warpline.intervals import union
from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.remaining import KERNEL_SPREAD
from warpline.replay.whatif import Prediction, Trial, WhatIf
from warpline.trace.arrays import Bools, Floats, Int64s, grouped
from warpline.trace.table import filled


class LeastStep(Struct, frozen=True):
    """The shortest step that the devices allow after a fix."""

    expected_ns: float
    """With the times that the fix is expected to leave."""
    lowest_ns: float
    """With everything that the fix changes gone (at the roofline where it does the same work as before), and the rest
    as fast as in another run."""


class MostSaved(Struct, frozen=True):
    """Time per step that a fix takes away, wherever it lies."""

    of_device_ns: float
    in_all_ns: float
    """On the device and on the host."""


class DeviceWork:
    """What the devices do in each step of a question's trace."""

    def __init__(self, question: WhatIf) -> None:
        self._question = question
        labelled = question.labelled
        self._labelled: LabelledGraph = labelled
        self._work: Int64s = np.flatnonzero(labelled.is_work & labelled.in_steps)
        devices = filled(labelled.trace.gpu.device, 0)[labelled.graph.row[self._work]]
        known, device = np.unique(devices, return_inverse=True)
        self._steps = max(labelled.step_count, int(labelled.step[self._work].max(initial=0)) + 1)
        self._shape = (max(len(known), 1), self._steps)
        self._cell: Int64s = device * self._steps + labelled.step[self._work]

    @cached_property
    def _length(self) -> Floats:
        graph = self._labelled.graph
        return (graph.measured_end - graph.measured_start)[self._work].astype(np.float64)

    @cached_property
    def _busy(self) -> Floats:
        """Busy time by device and step; overlapping operations count once."""
        graph, work = self._labelled.graph, self._work
        if not len(work):
            return np.zeros(self._shape)
        both = np.concatenate([graph.measured_start[work], graph.measured_end[work]])
        # One cell lies behind the other, counted in moments: decades, as damaged files have them, would not fit.
        moments, places = np.unique(both, return_inverse=True)
        count = len(moments)
        spans = union(*(half + self._cell * count for half in np.split(places, 2)))
        lengths = moments[spans.ends % count] - moments[spans.starts % count]
        return self._by_cell(spans.starts // count, lengths.astype(np.float64))

    def _by_cell(self, cells: Int64s, values: Floats) -> Floats:
        totals: Floats = np.bincount(cells, values, int(np.prod(self._shape))).astype(np.float64)
        return totals.reshape(self._shape)

    def _typical(self, by_cell: Floats) -> float:
        """Of the busiest device in a step like those that the replay counts; the least where steps are uneven, as a
        fix may leave only the short ones."""
        working = by_cell.max(axis=0)[self._has_work]
        if not len(working):
            return 0.0
        in_all = float(((by_cell.sum(axis=1) - self._busy_twice) / self._steps).max())
        return max(
            0.0,
            min(in_all, float(working.min() if self._question.replay.is_uneven else np.median(working))),
        )

    @cached_property
    def _has_work(self) -> Bools:
        """Steps with GPU work."""
        return np.asarray(self._busy.max(axis=0) > 0)

    @cached_property
    def _busy_twice(self) -> Floats:
        """Busy time by device that counts in two steps: what one step launches may run beside the work of the next."""
        return np.asarray(self._busy.sum(axis=1) - self._busy_in_all)

    @cached_property
    def _busy_in_all(self) -> Floats:
        """Busy time by device, over all steps together."""
        graph, device = self._labelled.graph, self._cell // self._steps
        totals = np.zeros(self._shape[0])
        for number in range(self._shape[0]):
            own = self._work[device == number]
            totals[number] = union(graph.measured_start[own], graph.measured_end[own]).total_ns()
        return totals

    @cached_property
    def busy_ns(self) -> float:
        """Busy time of the busiest device in a step."""
        return self._typical(self._busy)

    def least_after(self, trial: Trial, *, same_work: bool = False) -> LeastStep:
        """The shortest step with the changes of a trial; with `same_work`, no changed kernel is faster than the
        roofline allows for what it did before."""
        work, length = self._work, self._length
        moved, after = trial.moved[work], trial.duration[work]
        changed = (after != self._labelled.graph.duration[work]) | trial.gone[work]
        roof = self._roof_ns(changed) if same_work else np.zeros(len(work))
        expected = np.where(changed, np.maximum(after, roof), length)
        lowest = np.where(changed, roof, length)
        found = [self._bound(np.where(moved, 0.0, left) - length, moved, left) for left in (expected, lowest)]
        most, least = (min(bound, self._question.bare.expected_ns) for bound in found)
        return LeastStep(most, (1 - KERNEL_SPREAD) * least)

    def _bound(self, change: Floats, moved: Bools, left: Floats) -> float:
        stays = self._typical(self._busy + self._by_cell(self._cell, change))
        if not moved.any():
            return stays
        on_lane = (own for _, own in grouped(np.flatnonzero(moved), self._labelled.graph.lane[self._work[moved]]))
        return max(stays, *(self._typical(self._by_cell(self._cell[own], left[own])) for own in on_lane))

    def _roof_ns(self, changed: Bools) -> Floats:
        """Roofline floor of the changed kernels; zero for all others."""
        if not changed.any():
            return np.zeros(len(self._work))
        return np.where(changed, np.minimum(self._labelled.floor_ns()[self._work], self._length), 0.0)

    def touched_ns(self, trial: Trial) -> float:
        """Time per step of what a fix touches: GPU operations, host segments and calls, and waits that it ends."""
        labelled, graph = self._labelled, self._labelled.graph
        changed = (trial.duration != graph.duration) | trial.gone | trial.moved
        own = np.where(labelled.is_work, graph.measured_end - graph.measured_start, graph.duration)
        return float(own[changed & labelled.in_steps].sum() + self._waited_ns(trial)) / labelled.step_count

    def _waited_ns(self, trial: Trial) -> float:
        """Time of the calls that no longer wait."""
        labelled = self._labelled
        calls = labelled.trace.api[labelled.graph.row[trial.freed & labelled.in_steps & ~labelled.is_work]]
        return float((calls.end_ns - calls.start_ns).sum())

    def most_saved(self, trial: Trial) -> MostSaved:
        """What a fix takes away, whether or not a step becomes shorter by it."""
        labelled, graph = self._labelled, self._labelled.graph
        less = np.where(labelled.in_steps, np.maximum(graph.duration - trial.duration, 0.0), 0.0)
        moved = float(graph.duration[trial.moved & labelled.in_steps].sum())
        of_device = float(less[labelled.is_work].sum()) + moved
        of_host = float(less[~labelled.is_work].sum()) + self._waited_ns(trial)
        return MostSaved(of_device / labelled.step_count, (of_device + of_host) / labelled.step_count)


def bounded(prediction: Prediction, least: LeastStep) -> Prediction:
    """The prediction, with no step shorter than what the devices must still do."""
    new, gain, old = prediction.new_step_ns, prediction.gain, prediction.old_step_ns
    if new.expected >= least.expected_ns and new.low >= least.lowest_ns:
        return prediction
    expected = max(new.expected, least.expected_ns)
    low = min(max(new.low, least.lowest_ns), expected)
    middle = old.expected / expected
    return replace(
        prediction,
        new_step_ns=Estimate(low, expected, max(new.high, expected)),
        gain=Estimate(min(gain.low, middle), middle, max(middle, min(gain.high, old.high / low))),
    )
