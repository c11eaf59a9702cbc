"""What a rule is: a cause, a fix whose gain is replayed, and a look at the evidence that makes the claim."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from warpline.findings.evidence import Evidence
from warpline.findings.model import Cause, Confidence, Place
from warpline.replay.whatif import Prediction


@dataclass(frozen=True, slots=True)
class Claim:
    """What a rule says when it has found something."""

    sentence: str
    places: tuple[Place, ...] = ()
    how: str | None = None
    """What this program should write, where the trace shows enough to say it; replaces the rule's."""


Look = Callable[[Evidence, Prediction], Claim | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule; each has a page in docs/findings."""

    name: str
    cause: Cause
    fix: str
    how: str
    """What to write, for any program."""
    look: Look
    most: Confidence = "high"
    """The highest confidence that the evidence can ever support."""
    specific: bool = True
    """Whether it names one fault; general fixes give way to a specific one that explains most of the gain."""
    least_gain: float = 1.01
    """A smaller gain is not worth a finding."""
