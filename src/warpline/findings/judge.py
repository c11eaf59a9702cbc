"""The judgement of one trace: its table of fixes, the limits, the plan and the verdict."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from warpline.errors import CannotAnswer
from warpline.findings.audit import Objection
from warpline.findings.distortion import profiler_distortion, slow_host
from warpline.findings.fix_table import FixTable, fix_table
from warpline.findings.limits import Limits, limits_of
from warpline.findings.model import Finding, Verdict
from warpline.findings.plan import PlanStep, audit_plan, make_plan
from warpline.findings.state import State
from warpline.findings.verdict import cold_start_verdict, verdict_of
from warpline.fixes.evidence import Evidence
from warpline.hardware.vocabulary import in_words_of
from warpline.sources.health import HealthEntry
from warpline.trace.trace import Trace

COLD_FIRST = "a warm-up comes first, because the cold start takes most of the recording"
AFTER_IT = "; the plan is about the steps after it"


class Judgement(Struct, frozen=True):
    """Plan and verdict, with the table of fixes that they are made of."""

    fixes: FixTable
    """Every number about a fix."""
    plan: list[PlanStep]
    verdict: Verdict
    limits: Limits
    """The step with each resource free: they decide the cause."""
    audit: list[Objection]
    """What was withdrawn or downgraded, and why."""
    health: list[HealthEntry]
    """Doubts about the profile that the replay shows."""

    @property
    def findings(self) -> list[Finding]:
        """What costs time, the largest gain first."""
        return self.fixes.findings

    @property
    def is_past_the_steps(self) -> bool:
        """Whether the verdict is about a cold start that no step has: no fix of a step gains what it says."""
        return self.verdict.cause == "cold_start" and self.verdict.fix not in [step.fix for step in self.plan[:1]]

    @property
    def evidence(self) -> Evidence:
        """What all of it is about: the judged steps, replayed."""
        return self.fixes.evidence

    @property
    def state(self) -> State:
        """Whether the judged steps stand for the recording."""
        return self.fixes.state


def judge(trace: Trace) -> Judgement:
    """Table of fixes, limits, plan and verdict of a trace."""
    if not len(trace.gpu) or not len(trace.api):
        raise CannotAnswer("no-replay", "cannot say why, because the trace has no GPU operations with their launches")
    fixes = fix_table(trace)
    evidence, state = fixes.evidence, fixes.state
    plan, objections = audit_plan(make_plan(fixes) if state.is_covered else [])
    limits = limits_of(fixes.findings, evidence)
    verdict = verdict_of(limits, plan, state, fixes.findings)
    if verdict.fix is None:
        plan = []  # what may gain nothing, or what nobody can tell, is no plan; the fixes are still listed
    cold = cold_start_verdict(fixes.findings, evidence)
    if cold is not None:
        verdict = replace(cold, why=None if plan and plan[0].fix == cold.fix else COLD_FIRST + AFTER_IT * bool(plan))
    return Judgement(
        fixes=fixes,
        plan=in_words_of(evidence.platform, plan),
        verdict=in_words_of(evidence.platform, verdict),
        limits=limits,
        audit=in_words_of(evidence.platform, [*fixes.objections, *objections]),
        health=[entry for entry in (profiler_distortion(evidence), slow_host(evidence)) if entry],
    )
