"""What a step runs, as far as a fix changes it: kernels, API calls, copies, streams and idle time.

`Fix.was_made` is asked with the contents of a step before and after a change.
"""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from warpline.kernels import identify
from warpline.kernels.identity import MATRIX_CLASSES

MIN_PER_STEP = 0.5
"""Fewer calls or copies than this are not part of a step, such as the one wait at the end of a recording."""
MAX_LEFT = 0.25
"""Share of a number that may be left for most of it to be gone, and by which two that are about equal may differ."""


class StepContents(Struct, frozen=True):
    """The contents of a step of one run."""

    kernels: Counter[str]
    """By name, in the typical step."""
    step_ns: float
    copy_ns: float
    """Time of copies that no kernel hides."""
    calls: dict[str, float]
    """API calls: launches, graph launches, waits, allocations, frees."""
    copies: dict[tuple[str, str, str], tuple[float, float]]
    """Copies by direction and kinds of memory: how many, and how many bytes."""
    streams: int
    """Streams that run kernels."""
    idle_ns: dict[str, float]
    cold_steps: int

    def count(self, *classes: str) -> int:
        """Kernels of these classes."""
        return sum(times for name, times in self.kernels.items() if identify(name).kernel_class in classes)

    def copied(self, direction: str, memory: str | None = None) -> tuple[float, float]:
        """Copies in one direction, with this kind of memory on the host: how many, and how many bytes."""
        chosen = [
            moved
            for (way, source, target), moved in self.copies.items()
            if way == direction and (not memory or memory in (source, target))
        ]
        return sum(count for count, _ in chosen), sum(size for _, size in chosen)

    @property
    def total(self) -> int:
        """All kernels."""
        return self.kernels.total()

    @property
    def fused(self) -> int:
        """Kernels that a compiler fused from several ops."""
        return sum(times for name, times in self.kernels.items() if identify(name).fused_ops)

    @property
    def matrix_types(self) -> Counter[str]:
        """Operand types of kernels that may use tensor cores."""
        found: Counter[str] = Counter()
        for name, times in self.kernels.items():
            known = identify(name)
            if known.kernel_class in MATRIX_CLASSES and known.dtype.a:
                found[known.dtype.a] += times
        return found


def is_gone(before: float, after: float) -> bool:
    """Whether most of a number per step is gone."""
    return before >= MIN_PER_STEP and after <= MAX_LEFT * before


def is_about_equal(before: float, after: float) -> bool:
    """Whether a number is about the same."""
    return before > 0 and abs(after - before) <= MAX_LEFT * before
