"""What a fix is: how it changes the graph, what speaks for it, and what to write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from warpline.analyses.framework import Framework
from warpline.fixes.claim import Cause, Claim, Confidence
from warpline.fixes.evidence import Evidence
from warpline.replay.fix import Apply
from warpline.replay.whatif import Prediction

Effort = Literal["setting", "few_lines", "rewrite"]
"""What the fix costs whoever makes it: one line or flag, a few lines, or code written anew."""
SOME_GAIN = 1.01
"""A smaller gain is not worth a finding."""
WORTH_TRYING_FIRST = 1.05
"""What another fix must gain for a rule to leave the matter to it."""

Look = Callable[[Evidence, Prediction], Claim | None]
"""Makes the claim where the evidence supports it."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What to write, by framework; None where there is nothing to write in it."""

    pytorch: str
    cuda: str | None = None
    """In CUDA C++."""
    other: str | None = None
    """Elsewhere: JAX, TensorFlow, a serving engine."""

    def to(self, framework: Framework) -> str | None:
        """What to write in a program of that framework."""
        return {"pytorch": self.pytorch, "cuda": self.cuda, "other": self.other}[framework]


@dataclass(frozen=True, slots=True)
class Rule:
    """One reason for which a fix is proposed; each has a page in docs/findings."""

    name: str
    cause: Cause
    summary: str
    """In a few words, as the index of the pages has it."""
    look: Look
    advice: Advice
    most: Confidence = "high"
    """The highest confidence that the evidence can ever support."""
    specific: bool = True
    """Whether it names one fault; general fixes give way to a specific one that explains most of the gain."""
    least_gain: float = SOME_GAIN


@dataclass(frozen=True, slots=True)
class Fix:
    """A fix: the object that each file of this package calls FIX."""

    name: str
    """As the file is called."""
    words: str
    """As a sentence has it: "… would bring the step to 2 ms"."""
    summary: str
    assumptions: tuple[str, ...]
    effort: Effort
    apply: Apply
    findings: tuple[Rule, ...]
    """The rules that propose it, the one that is preferred first."""
    needs: tuple[str, ...] = ()
    """What the trace must tell for the fix to be predicted."""
    after: tuple[str, ...] = ()
    """The fixes that must have changed the graph before it, where several are applied together."""
