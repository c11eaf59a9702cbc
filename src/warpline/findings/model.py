"""A finding and the verdict, as the JSON contract has them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from warpline.estimate import Estimate
from warpline.fixes.claim import Cause, Confidence, Place


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that costs time, with the fix that was replayed."""

    rule: str
    cause: Cause
    fix: str
    claim: str
    """One sentence with numbers."""
    lost_ns: int
    """Per step."""
    gain: Estimate
    """Speed-up of the step as it runs without a profiler: old time over new time."""
    new_step_ns: Estimate
    """Step time that a stopwatch would show after the fix."""
    confidence: Confidence
    where: tuple[Place, ...]
    how: str
    """What to write or to type."""
    verify: str
    """The command that proves it afterwards."""

    def to_dict(self) -> dict[str, Any]:
        """The finding as JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The cause of the largest replayed gain, in a sentence that can be repeated to a colleague."""

    cause: Cause
    fix: str | None
    sentence: str
    gain: Estimate
    new_step_ns: Estimate | None

    def to_dict(self) -> dict[str, Any]:
        """The verdict as JSON."""
        return asdict(self)
