"""All rules over one trace: findings with replayed gains, ranked, and the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from warpline.errors import CannotAnswer
from warpline.findings.distortion import profiler_distortion
from warpline.findings.evidence import Evidence
from warpline.findings.model import Confidence, Finding, Gain, StepTime, Verdict
from warpline.findings.rule import Rule
from warpline.findings.rules import RULES
from warpline.findings.verdict import verdict_of
from warpline.replay.interventions import interventions
from warpline.replay.judged_steps import steps_to_judge
from warpline.replay.whatif import Estimate, Prediction
from warpline.sources.health import HealthEntry
from warpline.trace.trace import Trace

LARGEST_REPLAY_ERROR_PCT = 4.0
"""A replay that misses the measured step by more supports no confident prediction."""
SURE_GAIN = 1.05
SOME_GAIN = 1.01
"""Below, a finding is listed so that nobody has to wonder about it, not because it is worth the work."""
LEVELS: tuple[Literal["low"], Literal["medium"], Literal["high"]] = ("low", "medium", "high")


@dataclass(frozen=True, slots=True)
class Judgement:
    """What was found, and the evidence it rests on."""

    findings: list[Finding]
    verdict: Verdict
    evidence: Evidence
    health: list[HealthEntry]
    """What the replay shows to be doubtful about the profile."""


def judge(trace: Trace) -> Judgement:
    """Findings and verdict of a trace, largest gain first."""
    if not len(trace.gpu) or not len(trace.api):
        raise CannotAnswer("no-replay", "cannot say why, because the trace has no GPU work with its launches")
    evidence = Evidence(steps_to_judge(trace), len(trace.steps_in_view))
    findings = [finding for finding in (_apply(rule, evidence) for rule in RULES) if finding is not None]
    findings.sort(key=lambda finding: -finding.gain.expected)
    distortion = profiler_distortion(evidence)
    return Judgement(findings, verdict_of(findings, evidence), evidence, [distortion] if distortion else [])


def _apply(rule: Rule, evidence: Evidence) -> Finding | None:
    if rule.fix not in interventions():
        return None
    if not evidence.gains(rule.fix, rule.least_gain):
        return None
    prediction = evidence.ask(rule.fix)
    claim = rule.look(evidence, prediction)
    if claim is None:
        return None
    gain, after = prediction.gain, prediction.new_step_ns
    return Finding(
        rule=rule.name,
        cause=rule.cause,
        fix=rule.fix,
        claim=claim.sentence
        if gain.expected >= SOME_GAIN
        else f"{claim.sentence} By itself, its removal gains nothing.",
        lost_ns=max(0, round(prediction.old_step_ns.expected - after.expected)),
        gain=Gain(round(gain.low, 4), round(gain.expected, 4), round(gain.high, 4)),
        new_step_ns=_rounded(after),
        confidence=_confidence(rule, prediction, evidence),
        where=claim.places,
        how=claim.how or rule.how,
        verify=f"record again with the fix, then compare the step: predicted {after.expected / 1e6:.3g} ms",
    )


def _rounded(estimate: Estimate) -> StepTime:
    return StepTime(round(estimate.low), round(estimate.expected), round(estimate.high))


def _confidence(rule: Rule, prediction: Prediction, evidence: Evidence) -> Confidence:
    level = 2
    if prediction.error_pct > LARGEST_REPLAY_ERROR_PCT or evidence.recorded_steps < 2:
        level = 0
    elif prediction.gain.low < SURE_GAIN:
        level = 1 if prediction.gain.expected >= SURE_GAIN else 0
    return LEVELS[min(level, LEVELS.index(rule.most))]
