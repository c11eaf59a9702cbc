"""A cost: nanoseconds per unit, with a range and a source; and the three cases of every prediction."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

OPTIMISTIC, EXPECTED, PESSIMISTIC = range(3)
"""A fix is tried with low, expected and high costs."""


class Cost(Struct, frozen=True):
    """Nanoseconds per unit, or a ratio of times: low, expected and high, and their source."""

    low: float
    expected: float
    high: float
    source: str

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.expected <= self.high:
            raise ValueError(f"a cost needs 0 <= low <= expected <= high: {self}")

    def at(self, case: int) -> float:
        """The optimistic case (0) takes the low cost, the pessimistic one (2) the high cost."""
        return (self.low, self.expected, self.high)[case]

    def times(self, factor: float) -> Cost:
        """The cost of this many units, or on a machine slower by this factor."""
        return replace(self, low=self.low * factor, expected=self.expected * factor, high=self.high * factor)

    def widened(self, factor: float) -> Cost:
        """The same expected cost with a range wider by this factor in both directions."""
        return replace(self, low=self.low / factor, high=self.high * factor)

    def plus(self, other: Cost) -> Cost:
        """The sum; the ranges add up, because both depend on the same host or chip."""
        source = self.source if self.source == other.source else f"{self.source}; {other.source}"
        return Cost(self.low + other.low, self.expected + other.expected, self.high + other.high, source)

    def at_least(self, bound: Cost) -> Cost:
        """The same cost, but at least the expected cost of another."""
        least = bound.expected
        source = f"{self.source}; at least {least:,.4g} ns ({bound.source})"
        return Cost(max(self.low, least), max(self.expected, least), max(self.high, least), source)

    def from_(self, source: str) -> Cost:
        """The same numbers with another source."""
        return replace(self, source=source)

    def __str__(self) -> str:
        return f"{self.expected:,.4g} ns ({self.low:,.4g} to {self.high:,.4g}; {self.source})"
