"""What the time of a step is about: two steps can be compared if they are about the same amount of work.

A marked step is what the program calls a step. One that was found by repetition may be a part of it, such as a layer,
or several. A recording without steps stands for itself, however long it is. Whether two such units are the same shows
in the kernels that both run, and how often they do.
"""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from warpline.compare.typical_step import TypicalStep

MIN_SHARED_TIME = 0.5
"""Kernels that both run must take this share of the GPU time of each side to tell how often they run."""
MAX_COUNT_RATIO = 1.5
"""Below this ratio (and above its inverse) kernels run as often. A change of a program moves a few of them; among 90
recorded changes with so much in common the median ratio is 1.0 each time."""
BY_REPETITION = "repetition"


def obstacle(a: TypicalStep, b: TypicalStep, one: str = "A", other: str = "B") -> str | None:
    """Why the two times are not about the same work; None if they are, or nothing speaks against it."""
    if a.has_steps != b.has_steps:
        known, unknown = (one, other) if a.has_steps else (other, one)
        return (
            f"the time of {known} is that of a step, and the time of {unknown}, which has no steps, that of the whole "
            "recording. If a range marks its steps, name it with --step-range"
        )
    if a.has_steps and BY_REPETITION not in (a.found_by, b.found_by):
        return None
    ratio = times_as_often(a, b)
    if ratio is not None and not 1 / MAX_COUNT_RATIO < ratio < MAX_COUNT_RATIO:
        return f"{_how_often(a, ratio, one, other)}, and no marks say what a step is"
    if ratio is None and a.found_by != b.found_by:
        found, marked = (one, other) if a.found_by == BY_REPETITION else (other, one)
        return (
            f"the steps of {found} were found by repetition and those of {marked} are marked, and they run different "
            "kernels: they need not be about the same work. If a range marks the steps, name it with --step-range"
        )
    return None


def remark(a: TypicalStep, b: TypicalStep) -> str | None:
    """What to check although nothing forbids the comparison."""
    if obstacle(a, b) is not None:
        return None
    ratio = times_as_often(a, b)
    if ratio is not None:
        return (
            None if 1 / MAX_COUNT_RATIO < ratio < MAX_COUNT_RATIO else f"{_how_often(a, ratio)}: is it the same work?"
        )
    if a.found_by == b.found_by == BY_REPETITION:
        return "the steps of both were found by repetition and run different kernels: are they about the same work?"
    return None


def times_as_often(a: TypicalStep, b: TypicalStep) -> float | None:
    """How often B runs a kernel that A runs once, by the median over time; None if they have too little in common."""
    (count_a, time_a), (count_b, time_b) = _kernels(a), _kernels(b)
    both = sorted(count_a.keys() & count_b.keys())
    shares = [sum(time[key] for key in both) / max(sum(time.values()), 1.0) for time in (time_a, time_b)]
    if not both or min(shares) < MIN_SHARED_TIME:
        return None
    ratios = np.array([count_b[key] / count_a[key] for key in both])
    weights = np.array([time_a[key] + time_b[key] for key in both])
    order = np.argsort(ratios, kind="stable")
    half = np.searchsorted(np.cumsum(weights[order]), weights.sum() / 2)
    return float(ratios[order][min(half, len(both) - 1)])


Key = tuple[str, tuple[int, int, int]]


def _kernels(step: TypicalStep) -> tuple[Counter[Key], dict[Key, float]]:
    """The number and the time of each kernel with its grid."""
    counts, times = Counter[Key](), defaultdict[Key, float](float)
    for one, exposed_ns in zip(step.operations, step.exposed_ns.tolist(), strict=True):
        if one.kind == "kernel":
            counts[one.name, one.grid] += 1
            times[one.name, one.grid] += exposed_ns
    return counts, times


def _how_often(a: TypicalStep, ratio: float, one: str = "A", other: str = "B") -> str:
    more, less = (other, one) if ratio > 1 else (one, other)
    times = f"the same kernels {max(ratio, 1 / ratio):.1f} times as often"
    return f"a step of {more} runs {times} as one of {less}" if a.has_steps else f"{more} runs {times} as {less}"
