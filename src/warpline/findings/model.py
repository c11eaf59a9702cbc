"""A finding and the verdict, as in the JSON contract."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, to_builtins

from warpline.estimate import Estimate
from warpline.fixes.claim import Cause, Confidence, Effort, Place
from warpline.fixes.registry import all_fixes
from warpline.notebook import ShownAsCard
from warpline.units import duration, speedup

MEASURE_IT = "measure it"
"""What is said of a gain whose range is wide, everywhere in the same words."""


def how_to_measure(*fixes: str) -> str:
    """What to type to measure these fixes together."""
    recorded = "record the program with the fix (`warpline run`) and compare"
    if not all(all_fixes()[name].tried for name in fixes):
        return recorded
    options = " ".join(f"--fix {name}" for name in fixes)
    return f"`warpline try {options} -- PROGRAM`, or {recorded}"


class Finding(ShownAsCard, Struct, frozen=True):
    """One cause of lost time, with its replayed fix.

    >>> [(finding.fix, finding.gain.expected) for finding in warpline.diagnose("trace.json.gz").findings]
    """

    rule: str
    cause: Cause
    fix: str
    words: str
    """What the fix is called in a sentence about this program."""
    claim: str
    """One sentence with numbers."""
    lost_ns: int
    """Saved per step by the fix."""
    evidence_ns: int
    """Time per step of what the fix touches: GPU operations, host segments and calls, and the waits that it ends."""
    gain: Estimate
    """Speed-up of the step without a profiler: old time over new time."""
    new_step_ns: Estimate
    """Step time after the fix, without a profiler."""
    confidence: Confidence
    where: tuple[Place, ...]
    how: str
    """What to write or to type."""
    verify: str = ""
    """How to verify the fix afterwards."""
    effort: Effort = "few_lines"
    """What it takes to make the fix in this program."""
    device_share: float = 0.0
    """Share of the busiest device's time that the fix touches."""
    once_ns: int = 0
    """Time that the recording loses once, where the steps lose none: no gain of a step counts it."""

    @property
    def gain_words(self) -> str:
        """The gain, or that it must be measured, or what it saves once."""
        if self.once_ns:
            return f"{duration(self.once_ns)} once"
        return MEASURE_IT if self.gain.is_wide else speedup(self.gain.expected)

    @property
    def new_step_words(self) -> str:
        """The step after the fix, or its range."""
        after = self.new_step_ns
        if self.gain.is_wide:
            return f"{duration(after.low)} to {duration(after.high)}"
        return duration(after.expected)

    def to_dict(self) -> dict[str, Any]:
        """The finding as JSON."""
        return to_builtins(self)

    def __repr__(self) -> str:
        return f"<Finding {self.rule}: {self.fix} {speedup(self.gain.expected)}, confidence {self.confidence}>"


class Verdict(ShownAsCard, Struct, frozen=True):
    """What the step waits for, and what to do first.

    >>> verdict = warpline.diagnose("trace.json.gz").verdict
    >>> verdict.cause, verdict.fix, verdict.gain.expected
    """

    cause: Cause
    """What the step waits for: the first of the limits."""
    fix: str | None
    """What to do first: the plan's first step."""
    sentence: str
    gain: Estimate
    new_step_ns: Estimate | None
    why: str | None = None
    """Why this fix comes first, where another one would gain more."""
    also: Cause | None = None
    """A second cause that is as good an answer as the first."""

    def to_dict(self) -> dict[str, Any]:
        """The verdict as JSON."""
        return to_builtins(self)

    def __repr__(self) -> str:
        return f"<Verdict {self.cause}: {f'{self.fix} {speedup(self.gain.expected)}' if self.fix else 'no fix'}>"
