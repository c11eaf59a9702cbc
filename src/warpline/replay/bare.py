"""The step without a profiler: estimated from what recording costs, or measured by the run that made the trace."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from warpline.capture.manifest import MANIFEST
from warpline.replay.costs.host import RecordingCosts
from warpline.replay.costs.recording import CASES, EXPECTED_STEP, RecordedEvents, recording_cost
from warpline.replay.graph.model import Graph
from warpline.trace.columns import Floats
from warpline.trace.trace import Trace

FEWEST_STEPS = 3
STRAY = 1.25
"""Maximum distance of the range from the median."""
MOST_COST = 3.0
"""If the run measured bare steps, recording may cost up to this many times the expected overhead."""
ROUNDS = 12


@dataclass(frozen=True, slots=True)
class BareSteps:
    """Graphs of the trace without the cost of recording, in the low, expected and high case, and their steps."""

    graphs: list[Graph]
    steps_ns: list[float]
    measured: bool

    @property
    def expected_ns(self) -> float:
        """The step without a profiler, estimated or measured."""
        return self.steps_ns[EXPECTED_STEP]


def find_bare_steps(trace: Trace, graph: Graph, costs: RecordingCosts, step_of: Callable[[Graph], float]) -> BareSteps:
    """Remove the recording overhead; if the run timed bare steps before recording, fit the overhead to them."""
    events = RecordedEvents(trace, graph)
    stopwatch = measured_step_ns(trace.path)
    if stopwatch is not None:
        expected = recording_cost(graph, events, costs)
        fitted = _fitted(graph, expected, step_of, stopwatch["median_ns"])
        middle = stopwatch["median_ns"]
        # One step that was disturbed says nothing about the others.
        low, high = max(stopwatch["min_ns"], middle / STRAY), min(stopwatch["max_ns"], middle * STRAY)
        return BareSteps([fitted] * len(CASES), [low, middle, high], measured=True)
    graphs = [_less(graph, recording_cost(graph, events, costs, case)) for case in CASES]
    return BareSteps(graphs, [step_of(one) for one in graphs], measured=False)


def measured_step_ns(trace: Path) -> dict[str, float] | None:
    """The bare step that `warpline run` timed before it recorded this file; None if it was not timed."""
    try:
        manifest = json.loads((trace.parent / MANIFEST).read_text(encoding="utf-8"))
        entries = [entry for entry in manifest["traces"] if entry["file"] == trace.name]
        timed: dict[str, Any] = entries[0]["bare_step_ns"]
        if timed["steps"] < FEWEST_STEPS or not timed.get("settled", True):
            return None
        return {key: float(timed[key]) for key in ("median_ns", "min_ns", "max_ns")}
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        return None


def _less(graph: Graph, cost: Floats) -> Graph:
    return replace(graph, duration=np.maximum(graph.duration - cost, 0.0))


def _fitted(graph: Graph, cost: Floats, step_of: Callable[[Graph], float], step_ns: float) -> Graph:
    """The graph without as much expected overhead as brings its step to the measured one, within limits."""
    few, much = 0.0, MOST_COST
    for _ in range(ROUNDS):
        middle = (few + much) / 2
        if step_of(_less(graph, middle * cost)) > step_ns:
            few = middle
        else:
            much = middle
    return _less(graph, much * cost)
