"""Replay of an unchanged trace, compared with the measured steps."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from warpline.replay.costs.find import Costs, find_costs
from warpline.replay.graph.build import build_graph
from warpline.replay.graph.model import Graph
from warpline.replay.simulate import Schedule, simulate
from warpline.replay.steps import StepMarks, as_measured, find_marks
from warpline.trace.arrays import Bools, Floats
from warpline.trace.trace import Trace

UNEVEN = 1.5
"""Steps whose mean is this many times their median are uneven: some of them are cold."""


TYPICAL, MOST_TYPICAL = 0.25, 0.5
"""A step that differs from a length by this share is not of that length; one of which fewer are is an average."""


def are_uneven(lengths: Floats) -> bool:
    """Whether some steps are so much longer than others that one cannot represent all."""
    return bool(np.mean(lengths) > UNEVEN * np.median(lengths))


def typical_ns(lengths: Floats) -> float:
    """The representative step: the median, or the mean if the steps are so uneven that the median would hide
    what timing the loop shows."""
    return float(np.mean(lengths) if are_uneven(lengths) else np.median(lengths))


def most_take(lengths: Floats, typical: float) -> bool:
    """Whether most steps are of that length."""
    near = np.abs(lengths / max(typical, 1.0) - 1) <= TYPICAL
    return bool(near.mean() >= MOST_TYPICAL)


class Replay(Struct, frozen=True):
    """The unchanged trace, replayed."""

    graph: Graph
    marks: StepMarks
    schedule: Schedule
    measured_ns: Floats
    """Length of each step as recorded."""
    replayed_ns: Floats
    """Length of each step in the replay."""
    costs: Costs
    """What things cost on the host and the device of the trace."""

    @property
    def measured_step_ns(self) -> float:
        """Length of a step as recorded: see `typical_ns`."""
        return typical_ns(self.measured_ns)

    @property
    def is_uneven(self) -> bool:
        """Whether the steps are so uneven that their mean counts."""
        return are_uneven(self.measured_ns)

    def step_ns(self, graph: Graph, counted: Bools | None = None) -> float:
        """The step of a graph of this trace, such as one that a fix changed: taken as that of the recorded steps is,
        from all steps or the `counted` ones."""
        lengths = self.marks.lengths(graph, simulate(graph))
        lengths = lengths if counted is None else lengths[counted]
        return max(float(np.mean(lengths) if self.is_uneven else np.median(lengths)), 1.0)

    @property
    def is_average(self) -> bool:
        """Whether that length is an average of steps most of which are longer or shorter."""
        return not most_take(self.measured_ns, self.measured_step_ns)

    @property
    def replayed_step_ns(self) -> float:
        """Length of a step in the replay."""
        return typical_ns(self.replayed_ns)

    @property
    def error_pct(self) -> float:
        """How far the replayed step is from the measured one, in percent of it: the confidence of every prediction."""
        return 100 * abs(self.replayed_step_ns / self.measured_step_ns - 1) if self.measured_step_ns else 0.0


def replay(trace: Trace) -> Replay:
    """Build the graph of the trace, replay it, and compare the steps with the measured ones."""
    costs = find_costs(trace)
    graph = build_graph(trace, costs)
    marks = find_marks(trace, graph)
    schedule = simulate(graph)
    measured, replayed = marks.lengths(graph, as_measured(graph)), marks.lengths(graph, schedule)
    return Replay(graph, marks, schedule, measured, replayed, costs)
