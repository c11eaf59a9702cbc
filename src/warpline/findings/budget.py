"""The dispatch budget of a trace without the profiler's cost: the same step, and the same CUDA graph, as `diagnose` and
`whatif` show."""

from __future__ import annotations

from math import isclose
from typing import Any

import numpy as np
from msgspec import Struct

from warpline.analyses.budget import DispatchBudget, budget_of, recorded_budget
from warpline.errors import CannotAnswer
from warpline.findings.fix_table import fix_table
from warpline.findings.limits import MIN_GAIN
from warpline.intervals import Spans, covered_before
from warpline.replay.representative_steps import judged_steps
from warpline.replay.whatif import WhatIf
from warpline.trace.trace import Trace

GRAPH = "cuda_graph"
SCHEMA = "warpline.budget/1"


class BareBudget(Struct, frozen=True):
    """A budget, and the step that it belongs to."""

    budget: DispatchBudget
    step_ns: float | None
    """The step without a profiler; None if the trace cannot be replayed."""
    graph_ns: float | None
    """The step as a CUDA graph: as it is where there is nothing to capture; None if the trace cannot be replayed."""
    profiler_ns: float = 0.0
    """CPU time per step that recording cost, and that is taken out."""
    loading_ns: float = 0.0
    """Time per step in which the launching threads load data, and which is no dispatch."""
    copies: float = 0.0
    """How many of a step's launches copy or fill memory."""


class Outlook(Struct, frozen=True):
    """A budget, and the step as it is, as a CUDA graph, and with fewer launches."""

    budget: DispatchBudget
    step_ns: float
    graph_ns: float
    fusion: float
    """How many times fewer launches fusion makes."""
    fused_ns: float
    profiler_ns: float = 0.0
    loading_ns: float = 0.0
    copies: float = 0.0

    @property
    def host_ns(self) -> float:
        """Time of dispatch and of loading data, which the same threads do one after the other."""
        return self.budget.dispatch_ns + self.loading_ns

    @property
    def is_bound_by_both(self) -> bool:
        """Whether dispatch and loading fill a step together, and neither does alone: without the shorter, too, the step
        would be notably shorter."""
        shorter_ns, longer_ns = sorted((self.budget.dispatch_ns, self.loading_ns))
        matters = self.step_ns >= MIN_GAIN * (self.step_ns - shorter_ns)
        return self.bound in ("cpu", "input") and matters and not self._fills(longer_ns)

    def _fills(self, part_ns: float) -> bool:
        return MIN_GAIN * part_ns >= self.step_ns

    @property
    def bound(self) -> str:
        """What fills a step but for a tenth: the GPU's work (`gpu`), or dispatch (`cpu`) and loading data (`input`),
        whichever is more; `waits` where neither does."""
        if not self._fills(max(self.budget.work_ns, self.host_ns)):
            return "waits"
        if self.budget.work_ns >= self.host_ns:
            return "gpu"
        return "input" if self.loading_ns > self.budget.dispatch_ns else "cpu"

    def to_dict(self) -> dict[str, Any]:
        """The JSON contract `warpline.budget/1`."""
        return {
            "schema": SCHEMA,
            "ops_per_step": self.budget.ops,
            "cpu_ns_per_op": self.budget.cpu_ns,
            "gpu_ns_per_op": self.budget.gpu_ns,
            "dispatch_ns": self.budget.dispatch_ns,
            "work_ns": self.budget.work_ns,
            "step_ns": self.step_ns,
            "bound": self.bound,
            "crossover_ops": self.budget.crossover_ops,
            "graph_step_ns": self.graph_ns,
            "fusion": self.fusion,
            "fused_step_ns": self.fused_ns,
            "profiler_ns": self.profiler_ns,
            "loading_ns": self.loading_ns,
            "copies_per_step": self.copies,
        }


def outlook(
    budget: DispatchBudget, fusion: float, launch_ns: float, gap_ns: float, bare: BareBudget | None = None
) -> Outlook:
    """What a budget means: for an unchanged budget of a trace, the step and the graph that `whatif` predicts."""
    step_ns, graph_ns = budget.step_ns, budget.graph_ns(launch_ns, gap_ns)
    unchanged = bare is not None and _same(budget, bare.budget)
    if bare is not None and bare.step_ns is not None and unchanged:
        step_ns, graph_ns = bare.step_ns, bare.graph_ns or graph_ns
    profiler_ns = bare.profiler_ns if bare is not None else 0.0
    loading_ns, copies = (bare.loading_ns, bare.copies) if bare is not None and unchanged else (0.0, 0.0)
    # A step that also waits for something else than launches, loading and kernels keeps that wait.
    waiting_ns = max(0.0, step_ns - budget.fused_ns(1, loading_ns))
    fused_ns = budget.fused_ns(fusion, loading_ns) + waiting_ns
    return Outlook(budget, step_ns, graph_ns, fusion, fused_ns, profiler_ns, loading_ns, copies)


def _same(one: DispatchBudget, other: DispatchBudget) -> bool:
    pairs = ((one.ops, other.ops), (one.cpu_ns, other.cpu_ns), (one.gpu_ns, other.gpu_ns))
    return all(isclose(first, second, rel_tol=1e-9) for first, second in pairs)


def bare_budget(trace: Trace) -> BareBudget:
    """The budget of a trace without the profiler's cost; with it where the trace cannot be replayed."""
    try:
        fixes = fix_table(trace)
    except CannotAnswer:
        return BareBudget(budget_of(judged_steps(trace)), None, None)
    question = fixes.evidence.question
    recorded = recorded_budget(judged_steps(trace))
    budget = recorded.budget
    step_ns = question.bare.expected_ns
    profiler_ns = budget.dispatch_ns * _recording_share(question, recorded.dispatch)
    dispatch_ns = min(max(0.0, budget.dispatch_ns - profiler_ns), step_ns)
    graph = fixes.row(GRAPH)
    return BareBudget(
        budget=DispatchBudget(budget.ops, dispatch_ns / budget.ops, fixes.work.busy_ns / budget.ops),
        step_ns=step_ns,
        graph_ns=graph.new_step_ns.expected if graph.applies else step_ns,
        profiler_ns=profiler_ns,
        loading_ns=recorded.loading_ns,
        copies=recorded.copies,
    )


def _recording_share(question: WhatIf, dispatch: dict[int, Spans]) -> float:
    """Share of the dispatching threads' time that recording takes."""
    graph, bare = question.replay.graph, question.labelled.graph
    starts, host = graph.measured_start.astype(np.int64), ~question.labelled.is_work
    inside = np.zeros(len(graph), bool)
    for thread, spans in dispatch.items():
        inside |= host & (graph.lane == thread) & (covered_before(spans, starts + 1) > covered_before(spans, starts))
    recorded_ns = float(graph.duration[inside].sum())
    return float((graph.duration - bare.duration)[inside].sum()) / max(recorded_ns, 1.0)
