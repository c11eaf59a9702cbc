"""Applies all rules to one trace: audited findings, the plan, and the verdict."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from warpline.errors import CannotAnswer
from warpline.estimate import NOTICEABLE_GAIN
from warpline.findings.audit import Objection, audit_coverage, audit_findings, audit_plan
from warpline.findings.cold import cold_start_verdict
from warpline.findings.confidence import at_most, confidence_of
from warpline.findings.distortion import profiler_distortion, slow_host
from warpline.findings.limits import Limits, limits_of
from warpline.findings.model import MEASURE_IT, Finding, Verdict, how_to_measure
from warpline.findings.plan import PlanStep, make_plan
from warpline.findings.state import State, state_of
from warpline.findings.verdict import verdict_of
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Rule
from warpline.fixes.proposal import proposal
from warpline.fixes.registry import all_fixes, fix_of, rules
from warpline.fixes.whatif import evidence_of
from warpline.replay.bounds import DeviceWork
from warpline.replay.ranges import is_host_paced
from warpline.sources.health import HealthEntry
from warpline.trace.trace import Trace
from warpline.units import speedup

COLD_FIRST = "first, because the cold start takes most of the recording"
AFTER_IT = "; the plan is about the steps after it"


class Judgement(Struct, frozen=True):
    """Findings, plan and verdict, with their evidence."""

    findings: list[Finding]
    plan: list[PlanStep]
    verdict: Verdict
    limits: Limits
    """The step with each resource free: they decide the cause."""
    audit: list[Objection]
    """What was withdrawn or downgraded, and why."""
    evidence: Evidence
    state: State
    health: list[HealthEntry]
    """Doubts about the profile that the replay shows."""


def judge(trace: Trace) -> Judgement:
    """Findings (largest gain first), plan and verdict of a trace."""
    if not len(trace.gpu) or not len(trace.api):
        raise CannotAnswer("no-replay", "cannot say why, because the trace has no GPU operations with their launches")
    evidence = evidence_of(trace)
    work = DeviceWork(evidence.question)
    raw = [finding for finding in (_apply(rule, evidence, work) for rule in rules()) if finding is not None]
    findings, objections = audit_findings(raw, evidence, work)
    findings.sort(key=lambda finding: -finding.gain.expected)
    state = state_of(trace, evidence, work)
    findings, more = audit_coverage(findings, state)
    objections += more
    calm = " on a calm host" if is_host_paced(evidence.question.bare_idle_share) else ""
    findings = [replace(finding, verify=_verification(finding, calm)) for finding in findings]
    plan, more = audit_plan(make_plan(findings, evidence, work) if state.is_covered else [])
    limits = limits_of(findings, evidence)
    verdict = verdict_of(limits, plan, state)
    if verdict.fix is None:
        plan = []  # what may gain nothing, or what nobody can tell, is no plan; the fixes are still listed
    cold = cold_start_verdict(findings, evidence)
    if cold is not None:
        verdict = replace(cold, why=None if plan and plan[0].fix == cold.fix else COLD_FIRST + AFTER_IT * bool(plan))
    return Judgement(
        findings=findings,
        plan=plan,
        verdict=verdict,
        limits=limits,
        audit=[*objections, *more],
        evidence=evidence,
        state=state,
        health=[entry for entry in (profiler_distortion(evidence), slow_host(evidence)) if entry],
    )


def _apply(rule: Rule, evidence: Evidence, work: DeviceWork) -> Finding | None:
    fix = fix_of(rule.name).name
    found = proposal(rule, fix, evidence)
    if found is None:
        return None
    prediction, claim = found.prediction, found.claim
    gain, after = prediction.gain, prediction.new_step_ns
    # A smaller gain is listed too, so that users see it was checked; it is not worth the effort.
    alone = "" if gain.expected >= NOTICEABLE_GAIN or claim.once_ns else " Fixing this alone would not help."
    return Finding(
        rule=rule.name,
        cause=rule.cause,
        fix=fix,
        claim=claim.sentence + alone,
        lost_ns=max(0, round(prediction.old_step_ns.expected - after.expected)),
        evidence_ns=round(work.touched_ns(evidence.trial(fix))),
        gain=gain.rounded(4),
        new_step_ns=after.rounded(),
        confidence=at_most(confidence_of(rule, prediction, evidence.recorded_steps), found.claim.most),
        where=found.claim.places,
        how=found.how,
        device_share=round(min(evidence.time_per_step(evidence.changed(fix).work) / max(work.busy_ns, 1.0), 1.0), 3),
        effort=found.claim.effort or all_fixes()[fix].effort,
    )


def _verification(finding: Finding, calm: str) -> str:
    """How to verify a fix, of which the audit may have changed the gain."""
    if finding.gain.is_wide:
        spread = f"{speedup(finding.gain.low)} to {speedup(finding.gain.high)}"
        return f"{MEASURE_IT} ({spread}): {how_to_measure(finding.fix)}"
    return f"record again with the fix, then compare the step: predicted {finding.new_step_words}{calm}"
