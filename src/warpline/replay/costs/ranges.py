"""The three cases in which every fix is tried, and constants that are known within limits."""

from __future__ import annotations

from dataclasses import dataclass

OPTIMISTIC, EXPECTED, PESSIMISTIC = range(3)


@dataclass(frozen=True, slots=True)
class Range:
    """A constant that is known within limits: best for the step, expected, worst; and where it comes from."""

    best: float
    expected: float
    worst: float
    source: str

    def at(self, case: int) -> float:
        """The value in one of the three cases."""
        return (self.best, self.expected, self.worst)[case]
