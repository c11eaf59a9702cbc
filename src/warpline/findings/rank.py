"""Applies all rules to one trace: findings ranked by replayed gain, and the verdict."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from warpline.errors import CannotAnswer
from warpline.findings.cold import cold_start_verdict
from warpline.findings.distortion import profiler_distortion
from warpline.findings.model import Finding, Verdict
from warpline.findings.verdict import verdict_of
from warpline.fixes.claim import Confidence
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import SOME_GAIN, Rule
from warpline.fixes.registry import all_fixes, fix_of, rules
from warpline.fixes.words import of_recording
from warpline.replay.judged_steps import steps_to_judge
from warpline.replay.whatif import Prediction
from warpline.sources.health import HealthEntry
from warpline.trace.trace import Trace

LARGEST_REPLAY_ERROR_PCT = 4.0
"""A larger replay error lowers the confidence of every prediction."""
SURE_GAIN = 1.05
LEVELS: tuple[Literal["low"], Literal["medium"], Literal["high"]] = ("low", "medium", "high")


@dataclass(frozen=True, slots=True)
class Judgement:
    """Findings and verdict, with their evidence."""

    findings: list[Finding]
    verdict: Verdict
    evidence: Evidence
    health: list[HealthEntry]
    """Doubts about the profile that the replay shows."""


def judge(trace: Trace) -> Judgement:
    """Findings and verdict of a trace, largest gain first."""
    if not len(trace.gpu) or not len(trace.api):
        raise CannotAnswer("no-replay", "cannot say why, because the trace has no GPU operations with their launches")
    evidence = Evidence(steps_to_judge(trace), all_fixes(), len(trace.steps_in_view))
    findings = [finding for finding in (_apply(rule, evidence) for rule in rules()) if finding is not None]
    findings.sort(key=lambda finding: -finding.gain.expected)
    distortion = profiler_distortion(evidence)
    verdict = cold_start_verdict(findings, evidence) or verdict_of(findings, evidence)
    if not len(evidence.trace.steps_in_view):
        verdict = replace(verdict, sentence=of_recording(verdict.sentence))
    return Judgement(findings, verdict, evidence, [distortion] if distortion else [])


def _apply(rule: Rule, evidence: Evidence) -> Finding | None:
    fix = fix_of(rule.name).name
    if not evidence.gains(fix, rule.least_gain):
        return None
    prediction = evidence.ask(fix)
    advice = rule.advice.to(evidence.framework)
    claim = rule.look(evidence, prediction) if advice else None
    if claim is None or advice is None:
        return None
    gain, after = prediction.gain, prediction.new_step_ns
    # A smaller gain is listed too, so that users see it was checked; it is not worth the effort.
    alone = "" if gain.expected >= SOME_GAIN or claim.once_ns else " Fixing this alone would not help."
    return Finding(
        rule=rule.name,
        cause=rule.cause,
        fix=fix,
        claim=(claim.sentence if len(evidence.trace.steps_in_view) else of_recording(claim.sentence)) + alone,
        lost_ns=max(0, round(prediction.old_step_ns.expected - after.expected)),
        gain=gain.rounded(4),
        new_step_ns=after.rounded(),
        confidence=_confidence(rule, prediction, evidence),
        where=claim.places,
        how=claim.how if claim.how and evidence.framework == "pytorch" else advice,
        verify=f"record again with the fix, then compare the step: predicted {after.expected / 1e6:.3g} ms",
    )


def _confidence(rule: Rule, prediction: Prediction, evidence: Evidence) -> Confidence:
    level = 2
    if prediction.error_pct > LARGEST_REPLAY_ERROR_PCT or evidence.recorded_steps < 2:
        level = 0
    elif prediction.gain.low < SURE_GAIN:
        level = 1 if prediction.gain.expected >= SURE_GAIN else 0
    return LEVELS[min(level, LEVELS.index(rule.most))]
