"""A finding and the verdict, as the JSON contract has them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Cause = Literal["dispatch", "sync", "kernel", "transfer", "input", "memory", "comm", "cold_start", "healthy"]
Confidence = Literal["high", "medium", "low"]


@dataclass(frozen=True, slots=True)
class Gain:
    """Speed-up of the step as it runs without a profiler: old time over new time."""

    low: float
    expected: float
    high: float


@dataclass(frozen=True, slots=True)
class StepTime:
    """Step time that a stopwatch would show after the fix, in nanoseconds."""

    low: int
    expected: int
    high: int


@dataclass(frozen=True, slots=True)
class Place:
    """Where to look: an op, and the user's own line where frames were recorded."""

    op: str | None
    file: str | None
    line: int | None
    count: int

    @property
    def spot(self) -> str:
        """`train.py:12`, the line on which a function begins; empty where no frames were recorded."""
        return f"{self.file}:{self.line}" if self.file else ""


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
    gain: Gain
    new_step_ns: StepTime
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
    gain: Gain
    new_step_ns: StepTime | None

    def to_dict(self) -> dict[str, Any]:
        """The verdict as JSON."""
        return asdict(self)
