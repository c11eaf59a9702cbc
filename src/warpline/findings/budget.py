"""The dispatch budget of a trace without the profiler's cost: the same step, and the same CUDA graph, as `diagnose` and
`whatif` show."""

from __future__ import annotations

from dataclasses import replace

from warpline.analyses.budget import Budget, budget_of
from warpline.errors import CannotAnswer
from warpline.fixes.whatif import held, question_about
from warpline.records import dataclass
from warpline.replay.judged_steps import steps_to_judge
from warpline.replay.whatif import WhatIf
from warpline.trace.trace import Trace

GRAPH = "cuda_graph"


@dataclass(frozen=True, slots=True)
class BareBudget:
    """A budget, and the step that it belongs to."""

    budget: Budget
    step_ns: float | None
    """The step without a profiler; None if the trace cannot be replayed."""
    graph_ns: float | None
    """The step as a CUDA graph; None if the replay finds nothing to capture."""


def bare_budget(trace: Trace) -> BareBudget:
    """The budget of a trace without the profiler's cost; with it where the trace cannot be replayed."""
    judged = steps_to_judge(trace)
    budget = budget_of(judged)
    try:
        question = question_about(judged)
    except CannotAnswer:
        return BareBudget(budget, None, None)
    step_ns = question.bare_step_ns.expected
    # Threads take turns: what recording costs one of them, another may wait for.
    cpu_ns = min(max(0.0, budget.cpu_ns - _recording_ns(question) / budget.ops), step_ns / budget.ops)
    graph = held(question, GRAPH) if any(question.trial(GRAPH).changed) else None
    return BareBudget(
        budget=replace(budget, cpu_ns=cpu_ns),
        step_ns=step_ns,
        graph_ns=graph.new_step_ns.expected if graph else None,
    )


def _recording_ns(question: WhatIf) -> float:
    """Host time per step that recording costs."""
    scene = question.scene
    host = scene.in_steps & ~scene.is_work
    return float((question.replay.graph.duration - scene.graph.duration)[host].sum()) / scene.step_count
