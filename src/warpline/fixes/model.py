"""Definition of a fix: how it changes the graph, the rules that propose it, and the advice."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from warpline.analyses.framework import Framework
from warpline.estimate import NOTICEABLE_GAIN
from warpline.fixes.claim import Cause, Claim, Confidence, Effort
from warpline.fixes.evidence import Evidence
from warpline.fixes.step_contents import StepContents
from warpline.fixes.tryable import TryableChange
from warpline.replay.fix import Apply
from warpline.replay.whatif import Prediction

Look = Callable[[Evidence, Prediction], Claim | None]
"""Returns a claim if the evidence supports it."""


class Advice(Struct, frozen=True):
    """What to write, by framework; None where the fix does not apply."""

    pytorch: str
    cuda: str | None = None
    """In CUDA C++."""
    other: str | None = None
    """In JAX, TensorFlow or a serving engine."""
    neutral: str | None = None
    """In words that name no framework: for Julia, OpenMP, CuPy and similar, and for `other` without its own text."""

    def to(self, framework: Framework) -> str | None:
        """What to write in a program of that framework."""
        texts = {"pytorch": self.pytorch, "cuda": self.cuda, "other": self.other or self.neutral}
        return texts.get(framework, self.neutral)


class Rule(Struct, frozen=True):
    """One reason to propose a fix; each rule has a page in docs/findings."""

    name: str
    cause: Cause
    summary: str
    """A few words for the index of the pages."""
    look: Look
    advice: Advice
    most: Confidence = "high"
    """The highest confidence that the evidence can support."""
    specific: bool = True
    """Whether it names one fault; of equal gains these are listed first."""
    least_gain: float = NOTICEABLE_GAIN
    """A smaller gain is not worth a finding."""
    words: str = ""
    """Subject of the verdict's sentence, where that of the fix does not name what it does about this fault."""


class Fix(Struct, frozen=True):
    """A fix: the object named FIX in each module of this package."""

    name: str
    """Same as the module's name."""
    words: str
    """Subject of the verdict's sentence: "… would bring the step to 2 ms"."""
    summary: str
    assumptions: tuple[str, ...]
    effort: Effort
    apply: Apply
    findings: tuple[Rule, ...]
    """The rules that propose it, the preferred one first."""
    words_elsewhere: str = ""
    """The same for programs without PyTorch, if `words` names something of PyTorch's."""
    needs: tuple[str, ...] = ()
    """What the trace must record for a prediction."""
    shows_in_ops: bool = False
    """Whether a framework's ops alone show its fault, or most forms of it."""
    after: tuple[str, ...] = ()
    """Fixes that must change the graph before this one when several are applied together."""
    same_work: bool = False
    """Whether the kernels that it changes still do what they did: then the roofline bounds them."""
    replaces_kernels: bool = False
    """Whether every kernel of a step may be another one after it, so that two versions have none in common."""
    keeps_result: bool = True
    """Whether the program computes what it did, to rounding: a plan has the others last."""
    is_limit: bool = False
    """Whether it is a limit rather than a change: planned only where no other fix is worth making."""
    first: tuple[str, ...] = ()
    """Fixes to make before this one, where they are worth making: without them this one can be made only in part."""
    was_made: Callable[[StepContents, StepContents], bool] | None = None
    """Whether a step before and one after a change show that this fix was made; None if nothing would show it."""
    implies: tuple[str, ...] = ()
    """Fixes whose marks this one leaves too: where it was made, `was_made` of those says nothing."""

    why_nothing: Callable[[Evidence], str] | None = None
    """Why it changes nothing in the judged steps, with numbers; else what its rules look for is not there."""
    tried: tuple[TryableChange, ...] = ()
    """How `warpline try` makes it from outside."""
    not_tried: str = "it has no change that can be injected"
    """Why it cannot be made from outside, where `tried` is empty."""

    def is_hidden(self, evidence: Evidence) -> bool:
        """Whether its fault may be there, and the recording cannot show it."""
        return self.shows_in_ops and evidence.framework == "pytorch" and not len(evidence.trace.ops)

    def reason_for_nothing(self, evidence: Evidence) -> str:
        """Why it changes nothing in the judged steps."""
        if self.why_nothing is not None:
            return self.why_nothing(evidence)
        wanted = " or ".join(dict.fromkeys(rule.summary for rule in self.findings))
        return f"the steps have nothing of what it fixes ({wanted})"

    def subject(self, framework: Framework, rule: Rule | None = None) -> str:
        """Subject of the verdict's sentence for a program of that framework in which this rule found a fault."""
        if rule is not None and rule.words:
            return rule.words
        return self.words if framework == "pytorch" else self.words_elsewhere or self.words
