"""Cold steps: those that a recording has only once, set aside so that every number is one of warm steps."""

from __future__ import annotations

from msgspec import Struct


class ColdSteps(Struct, frozen=True):
    """Consecutive steps that take long once, while the program loads, compiles or tunes."""

    first: int
    """Position of the first of them among all steps."""
    count: int
    took_ns: int
    """Their length in total."""
    once_ns: int
    """What they take beyond as many warm steps: one time, not per step."""
    warm_step_ns: int
    """Median length of the other steps."""
    recorded: int
    """Number of steps in the recording."""
    recorded_ns: int
    """Length of all steps together."""
    ops: tuple[tuple[str, int], ...]
    """The outermost ops, or calls, that take longest in them beyond what is usual, with that time."""
