"""A number with its range: the one type for low, expected and high."""

from __future__ import annotations

from msgspec import Struct

from warpline.units import speedup

LEAST_EFFECT = 0.02
"""Two times that differ by a smaller share are the same, unless another share is asked for."""
NOTICEABLE_GAIN = 1.01
"""Nobody would notice a smaller speed-up of the step: it is none."""
SHOWN_GAIN = 1.02
"""A smaller speed-up is not worth a place on the first screen, or in a plan."""
WIDE = 3.0
"""A range whose ends are farther apart says only that the fix is to be measured."""
CLEAR_GAIN = 1.05
"""A smaller speed-up can hardly be told from noise: no plan starts with it, and no rule gives way to it."""


class Estimate(Struct, frozen=True):
    """A number that is known within limits: a step time in nanoseconds, or a speed-up."""

    low: float
    expected: float
    high: float

    @classmethod
    def exactly(cls, value: float) -> Estimate:
        """A number without doubt."""
        return cls(value, value, value)

    @property
    def is_wide(self) -> bool:
        """Whether the range says only: measure it."""
        return self.high > WIDE * self.low

    @property
    def speedups(self) -> str:
        """Both ends, of a speed-up: 1.10–1.41×."""
        return f"{speedup(self.low).removesuffix('×')}–{speedup(self.high)}"

    def rounded(self, digits: int | None = None) -> Estimate:
        """The same with so many decimals; without, in whole numbers."""
        return Estimate(round(self.low, digits), round(self.expected, digits), round(self.high, digits))

    def plus(self, more: float) -> Estimate:
        """The same with a known amount added."""
        return Estimate(self.low + more, self.expected + more, self.high + more)

    def to_dict(self) -> dict[str, float]:
        """As the JSON contracts have it."""
        return {"low": self.low, "expected": self.expected, "high": self.high}
