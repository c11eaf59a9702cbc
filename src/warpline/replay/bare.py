"""The step without a profiler: estimated from what recording costs, or measured by the run that made the trace."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from warpline.capture.recorded import timed_step
from warpline.estimate import Estimate
from warpline.replay.costs.host import RecordingCosts
from warpline.replay.costs.recording import CASES, EXPECTED_STEP, RecordedEvents, recording_cost
from warpline.replay.graph.model import Graph
from warpline.trace.arrays import Floats
from warpline.trace.trace import Trace

STRAY = 1.25
"""Maximum distance of the range from the median."""


class BareSteps(Struct, frozen=True):
    """Graphs of the trace without the cost of recording, in the low, expected and high case, and their steps."""

    graphs: list[Graph]
    steps_ns: list[float]
    timed_ns: Estimate | None
    """What the run's stopwatch showed before recording. It replaces the estimated step and leaves the graphs alone:
    fitted to it, they predict fixed steps worse (docs/ranges.md)."""

    @property
    def estimated_ns(self) -> float:
        """The step of the expected graph."""
        return self.steps_ns[EXPECTED_STEP]

    @property
    def expected_ns(self) -> float:
        """The step without a profiler, measured or estimated."""
        return self.timed_ns.expected if self.timed_ns else self.estimated_ns


def find_bare_steps(trace: Trace, graph: Graph, costs: RecordingCosts, step_of: Callable[[Graph], float]) -> BareSteps:
    """Remove the recording overhead, and look up the bare step if the run timed it before recording."""
    events = RecordedEvents(trace, graph)
    graphs = [_less(graph, recording_cost(graph, events, costs, case)) for case in CASES]
    return BareSteps(graphs, [step_of(one) for one in graphs], _timed_ns(trace.file))


def _timed_ns(trace: Path) -> Estimate | None:
    timed = timed_step(trace)
    if timed is None:
        return None
    middle = timed.median_ns
    # One step that was disturbed says nothing about the others.
    return Estimate(max(timed.min_ns, middle / STRAY), middle, min(timed.max_ns, middle * STRAY))


def _less(graph: Graph, cost: Floats) -> Graph:
    return replace(graph, duration=np.maximum(graph.duration - cost, 0.0))
