"""What findings cost a day, as text and as a table."""

from __future__ import annotations

from warpline.estimate import Estimate
from warpline.findings.cost import ASSUMPTION, DailyCost
from warpline.findings.judge import Judgement
from warpline.findings.model import MEASURE_IT, Finding
from warpline.reports.findings import in_order
from warpline.reports.sections import Column, Section, Table, Text

_COLUMNS = (
    Column("fix", "fix", key=True),
    Column("saved", "saves a day", aligned="right"),
    Column("saved_range", "range", aligned="right", priority=2),
)


def cost_section(judgement: Judgement, cost: DailyCost, brief: bool) -> Section:
    """The price of a day, and what the first fix and the whole plan save of it; all fixes if not brief."""
    day = f"At {money(cost.gpu_hour)} per GPU hour, a day costs {money(cost.per_day)}"
    found = in_order(judgement.findings, judgement.verdict)
    first = next((finding for finding in found if finding.fix == judgement.verdict.fix), None)
    saved = [f"{first.fix} saves {_saved(first, cost)} of it"] if first is not None else []
    if len(judgement.plan) > 1:
        after = cost.saved(judgement.plan[-1].gain)
        saved.append(f"the whole plan {money(after.expected)} ({_range(after)})")
    said = Text(f"{day}{': ' + ', '.join(saved) if saved else ''}, {ASSUMPTION}.")
    rows = tuple((finding.fix, *_cells(finding, cost)) for finding in found)
    table = () if brief or not rows else (Table(_COLUMNS, rows),)
    return Section("cost", "Cost", (said, *table), is_lead=brief)


def saved_words(finding: Finding, cost: DailyCost) -> str:
    """What a finding's fix saves a day, with its range."""
    return f"{_saved(finding, cost)} a day, {ASSUMPTION}"


def money(value: float) -> str:
    """An amount in the currency of the price: 14.40."""
    return f"{value:,.2f}"


def _saved(finding: Finding, cost: DailyCost) -> str:
    saved, spread = _cells(finding, cost)
    return f"{saved} ({spread})"


def _cells(finding: Finding, cost: DailyCost) -> tuple[str, str]:
    saved = cost.saved(finding.gain)
    return MEASURE_IT if finding.gain.is_wide else money(saved.expected), _range(saved)


def _range(saved: Estimate) -> str:
    return f"{money(saved.low)} to {money(saved.high)}"
