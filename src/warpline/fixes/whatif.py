"""What-if questions by the names of fixes: one, several together, or each alone."""

from __future__ import annotations

from warpline.errors import CannotAnswer
from warpline.fixes.evidence import Evidence
from warpline.fixes.proposal import proposal
from warpline.fixes.registry import all_fixes
from warpline.replay.bounds import DeviceWork, bounded
from warpline.replay.fix import chosen_fixes
from warpline.replay.representative_steps import steps_to_judge
from warpline.replay.whatif import Prediction, WhatIf
from warpline.trace.trace import Trace

ANY_GAIN = 0.0


def question_about(trace: Trace) -> WhatIf:
    """A trace prepared for what-if questions about every fix."""
    return WhatIf(trace, all_fixes())


def whatif(trace: Trace, fixes: list[str]) -> Prediction:
    """Predicts the step time with the fixes applied, all on one graph; a fix that no finding names gets a warning.

    >>> whatif(warpline.open("trace.json.gz"), ["cuda_graph", "tf32"]).gain
    """
    evidence = evidence_of(trace)
    prediction = predict(evidence.question, *fixes)
    if not prediction.applies:
        raise CannotAnswer(
            "nothing-to-fix",
            f"{' or '.join(fixes)} would change nothing in the selected steps",
            "`warpline diagnose` shows what costs time",
        )
    return _with_doubts(prediction, evidence)


def every_fix(trace: Trace) -> list[Prediction]:
    """Each fix alone, if it changes something, the largest gain first."""
    evidence = evidence_of(trace)
    question = evidence.question
    applied = [predict(question, name) for name in all_fixes() if any(question.trial(name).changed)]
    predictions = [_with_doubts(prediction, evidence) for prediction in applied]
    return sorted(predictions, key=lambda one: (-one.gain.expected, one.fixes[0].name))


def evidence_of(trace: Trace) -> Evidence:
    """The evidence about the judged steps of a trace: every answer about its fixes is of this one base."""
    return Evidence(steps_to_judge(trace), all_fixes(), len(trace.steps_in_view))


def _with_doubts(prediction: Prediction, evidence: Evidence) -> Prediction:
    # A fix may gain only together with another: the evidence for it counts, not what it gains alone.
    least_gain = ANY_GAIN if len(prediction.fixes) > 1 else None
    unnamed = [fix.name for fix in prediction.fixes if fix.changed and not _is_named(fix.name, evidence, least_gain)]
    return prediction.without_finding(unnamed) if unnamed else prediction


def _is_named(name: str, evidence: Evidence, least_gain: float | None) -> bool:
    """Whether a rule of the fix finds its fault in the trace."""
    return any(proposal(rule, name, evidence, least_gain) is not None for rule in all_fixes()[name].findings)


def predict(question: WhatIf, *names: str) -> Prediction:
    """The prediction for fixes together; no step is shorter than what the devices must still do."""
    same_work = all(fix.same_work for fix in chosen_fixes(all_fixes(), names))
    least = DeviceWork(question).least_after(question.trial(*names), same_work=same_work)
    return bounded(question.ask(*names), least)
