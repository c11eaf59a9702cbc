"""The start of the dispatch-budget calculator: the numbers of `warpline budget` for this trace."""

from __future__ import annotations

from warpline.errors import CannotAnswer
from warpline.findings.budget import bare_budget
from warpline.findings.diagnosis import Diagnosis
from warpline.replay.costs.find import find_costs
from warpline.reports.page.contract import BudgetInputs


def budget_panel(diagnosis: Diagnosis) -> BudgetInputs | None:
    """None without launches, and where the trace was not replayed."""
    judgement = diagnosis.judgement
    if judgement is None:
        return None
    try:
        bare, costs = bare_budget(diagnosis.trace, judgement.evidence.question), find_costs(diagnosis.trace)
    except CannotAnswer:
        return None
    return BudgetInputs(
        launches=bare.budget.ops,
        cpu_ns=bare.budget.cpu_ns,
        gpu_ns=bare.budget.gpu_ns,
        graph_launch_ns=costs.host.graph_launch.expected,
        graph_gap_ns=costs.device.graph_gap.expected,
        step_ns=bare.step_ns,
        graph_ns=bare.graph_ns,
        loading_ns=bare.loading_ns,
    )
