"""A rule's proposal of its fix: the claim, the advice and the prediction, where the trace supports them."""

from __future__ import annotations

from msgspec import Struct

from warpline.fixes.claim import Claim
from warpline.fixes.engine_advice import engine_advice
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Rule
from warpline.replay.whatif import Prediction


class Proposal(Struct, frozen=True):
    """What a rule says about a trace."""

    claim: Claim
    prediction: Prediction
    how: str
    """What to write or to type."""


def proposal(rule: Rule, fix: str, evidence: Evidence, least_gain: float | None = None) -> Proposal | None:
    """The rule's proposal of this fix; None if it gains less than `least_gain` (by default the rule's), does not apply,
    or the evidence is missing."""
    if not evidence.gains(fix, rule.least_gain if least_gain is None else least_gain):
        return None
    prediction, advice = evidence.ask(fix), rule.advice.to(evidence.framework)
    claim = rule.look(evidence, prediction) if advice else None
    if claim is None or advice is None:
        return None
    own = claim.how if claim.how and evidence.framework == "pytorch" else advice
    return Proposal(claim, prediction, engine_advice(fix, evidence.engine) or own)
