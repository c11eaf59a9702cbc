"""The step after fixes that a reader may tick: each alone, and every combination of the plan's fixes."""

from __future__ import annotations

from itertools import combinations

from warpline.errors import CannotAnswer
from warpline.findings.diagnosis import Diagnosis
from warpline.findings.model import Finding
from warpline.findings.plan import PlanStep
from warpline.replay.whatif import Prediction
from warpline.reports.findings import in_order
from warpline.reports.page.contract import FixChoice, FixChoices, Replayed
from warpline.reports.plan import without_article

MOST_COMBINED = 4
"""Fixes of the plan of which every combination is replayed: eleven replays."""


def whatif_panel(diagnosis: Diagnosis) -> FixChoices | None:
    """The fixes of all findings and of the plan, with what was replayed; None without any."""
    judgement = diagnosis.judgement
    if judgement is None or not judgement.findings:
        return None
    # Several findings may have the same fix: it is one box to tick. A fix that gains only after others is in the plan.
    findings = {finding.fix: finding for finding in reversed(in_order(judgement.findings, judgement.verdict))}
    plan = [step.fix for step in judgement.plan]
    names = list(dict.fromkeys([*plan, *reversed(findings)]))
    replayed: dict[tuple[int, ...], Finding | PlanStep | Prediction] = {
        (names.index(fix),): finding for fix, finding in findings.items()
    }
    for count, step in enumerate(judgement.plan, 1):
        replayed.setdefault(_positions(names, plan[:count]), step)
    for count in range(1, min(len(plan), MOST_COMBINED) + 1):
        for chosen in combinations(plan if count == 1 else plan[:MOST_COMBINED], count):
            where = _positions(names, chosen)
            if where not in replayed:
                together = _together(diagnosis, chosen)
                replayed |= {where: together} if together is not None else {}
    planned = {step.fix: step for step in judgement.plan}
    return FixChoices(
        step_ns=judgement.evidence.step_ns,
        fixes=[_fix(name, findings.get(name), planned.get(name)) for name in names],
        replayed=[
            Replayed(list(where), after.new_step_ns, after.gain, after.gain.is_wide)
            for where, after in sorted(replayed.items(), key=lambda one: one[0])
        ],
        planned=[names.index(fix) for fix in plan],
        file=diagnosis.trace.file.name,
    )


def _fix(name: str, finding: Finding | None, step: PlanStep | None) -> FixChoice:
    known = step or finding
    assert known is not None
    confidence, claim = (finding.confidence, finding.claim) if finding else ("", "")
    return FixChoice(name, without_article(known.words), known.effort.replace("_", " "), confidence, claim)


def _positions(names: list[str], chosen: list[str] | tuple[str, ...]) -> tuple[int, ...]:
    return tuple(sorted(names.index(fix) for fix in chosen))


def _together(diagnosis: Diagnosis, fixes: tuple[str, ...]) -> Prediction | None:
    assert diagnosis.judgement is not None
    try:
        return diagnosis.judgement.fixes.row(*fixes)
    except CannotAnswer:
        return None
