"""What-if questions by the names of fixes: one, several together, or each alone."""

from __future__ import annotations

from warpline.errors import CannotAnswer
from warpline.fixes.registry import all_fixes, find_fixes
from warpline.replay.bounds import DeviceWork, bounded
from warpline.replay.judged_steps import steps_to_judge
from warpline.replay.whatif import Prediction, WhatIf
from warpline.trace.trace import Trace


def question_about(trace: Trace) -> WhatIf:
    """A trace prepared for what-if questions about every fix."""
    return WhatIf(trace, all_fixes())


def whatif(trace: Trace, fixes: list[str]) -> Prediction:
    """Predicts the step time with the fixes applied, all on one graph.

    >>> whatif(warpline.open("trace.json.gz"), ["cuda_graph", "tf32"]).gain
    """
    question = question_about(steps_to_judge(trace))
    prediction = held(question, *fixes)
    if not prediction.applies:
        raise CannotAnswer(
            "nothing-to-fix",
            f"{' or '.join(fixes)} would change nothing in the selected steps",
            "`warpline diagnose` shows what costs time",
        )
    return prediction


def every_fix(trace: Trace) -> list[Prediction]:
    """Each fix alone, if it changes something, the largest gain first."""
    question = question_about(steps_to_judge(trace))
    predictions = [held(question, name) for name in all_fixes() if any(question.trial(name).changed)]
    return sorted(predictions, key=lambda one: (-one.gain.expected, one.fixes[0].name))


def held(question: WhatIf, *names: str) -> Prediction:
    """The prediction for fixes together, held to what the devices must still do."""
    same_work = all(fix.same_work for fix in find_fixes(names))
    least = DeviceWork(question).least_after(question.trial(*names), same_work=same_work)
    return bounded(question.ask(*names), least)
