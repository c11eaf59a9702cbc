"""A finding and the verdict, as in the JSON contract."""

from __future__ import annotations

import math
from typing import Any

from msgspec import Struct, to_builtins

from warpline.estimate import Estimate
from warpline.fixes.claim import Cause, Confidence, Effort, Place
from warpline.notebook import ShownAsCard
from warpline.replay.ranges import is_useless, is_vague, likely_gain
from warpline.units import duration, speedup


class Finding(ShownAsCard, Struct, frozen=True):
    """One cause of lost time, with its replayed fix.

    >>> [(finding.fix, finding.gain.expected) for finding in warpline.diagnose("trace.json.gz").findings]
    """

    rule: str
    cause: Cause
    fix: str
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
    explained_ns: float = math.inf
    """GPU time that the fix touches, and idle time of its cause, per step as recorded. A larger saving comes from what
    the GPU waits for besides: the CPU, once it is free, does that sooner."""

    calm_gain: float = math.inf
    """The gain if the host was slow only while it recorded."""

    @property
    def is_likely(self) -> bool:
        """Whether it gains something with a probability of 80 %; if the host was slow, on a usual one, too."""
        usual = min(self.calm_gain / max(self.gain.expected, 1e-9), 1.0)
        return usual * likely_gain(self.gain) > 1.0

    @property
    def is_vague(self) -> bool:
        """Whether the trace cannot tell how much the fix gains: its step is known within a factor of 3 at best."""
        return is_vague(self.new_step_ns)

    @property
    def cannot_tell(self) -> bool:
        """Whether the trace cannot even tell that the fix gains something."""
        return is_useless(self.new_step_ns, self.gain)

    @property
    def known_gain(self) -> float:
        """The gain that counts beside others: the expected one, or, where that is not known, the one it likely has."""
        return likely_gain(self.gain) if self.is_vague else self.gain.expected

    @property
    def certain_part(self) -> float:
        """Part of the saving that counts which the fix has with a probability of 80 %."""
        known, likely = (1 - 1 / max(gain, 1.0) for gain in (self.known_gain, likely_gain(self.gain)))
        return min(likely / known, 1.0) if known else 0.0

    @property
    def gain_words(self) -> str:
        """The gain, with no more than the trace can tell."""
        if self.cannot_tell:
            return "cannot tell"
        return f"≥ {speedup(self.gain.low)}" if self.is_vague else speedup(self.gain.expected)

    @property
    def new_step_words(self) -> str:
        """The step after the fix, with no more than the trace can tell; empty if it cannot tell that."""
        if self.cannot_tell:
            return ""
        after = self.new_step_ns
        return f"≤ {duration(after.high)}" if self.is_vague else duration(after.expected)

    @property
    def explained_share(self) -> float:
        """Share of the step that it can save by what its cause explains."""
        return self.explained_ns / max(self.lost_ns + self.new_step_ns.expected, 1.0)

    def to_dict(self) -> dict[str, Any]:
        """The finding as JSON."""
        entries = to_builtins(self)
        del entries["explained_ns"], entries["calm_gain"]  # for the plan alone
        return entries

    def __repr__(self) -> str:
        return f"<Finding {self.rule}: {self.fix} {speedup(self.gain.expected)}, confidence {self.confidence}>"


class Verdict(ShownAsCard, Struct, frozen=True):
    """What to fix first, in one sentence: the first step of the plan.

    >>> verdict = warpline.diagnose("trace.json.gz").verdict
    >>> verdict.cause, verdict.fix, verdict.gain.expected
    """

    cause: Cause
    fix: str | None
    sentence: str
    gain: Estimate
    new_step_ns: Estimate | None
    why: str | None = None
    """Why this comes first, where another fix would gain more."""

    def to_dict(self) -> dict[str, Any]:
        """The verdict as JSON."""
        return to_builtins(self)

    def __repr__(self) -> str:
        return f"<Verdict {self.cause}: {f'{self.fix} {speedup(self.gain.expected)}' if self.fix else 'no fix'}>"
