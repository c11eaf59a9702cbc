"""Whether two steps are steps of one program, about the same amount of work: only then their times can be compared.

A step may be marked, found by repetition (then it may be a part of the program's step, such as a layer, or several), or
a recording without steps, which stands for itself, however long it is. Whether two such units are of the same program
shows in the kernels that both run (without GPU work, the ops), and whether they are about the same work in how often
they do.
"""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from warpline.compare.kernel_similarity import work_kind
from warpline.compare.spread import IDLE_SPREAD
from warpline.compare.typical_step import TypicalStep
from warpline.units import share

MIN_SHARED_TIME = 0.5
"""Kernels that both run must take this share of the GPU time of each side to tell how often they run."""
MAX_COUNT_RATIO = 1.5
"""Below this ratio (and above its inverse) kernels run as often. A change of a program moves a few of them; among 90
recorded changes with so much in common the median ratio is 1.0 each time."""
MIN_SAME_KERNELS = 0.1
"""Of one program, this share of a side's kernels also runs on the other, with the same grid. Of 122 pairs of recordings
of different programs two have more, both of one model."""
MIN_SAME_KINDS = 1 / 3
"""Of one program at another precision or batch size, whose kernels are all others, this share of the kinds of kernels
that either runs is run by both. Of the same 122 pairs four more have as much, and one in twenty has a quarter:
any two programs share copies, sums and Adam."""
BY_REPETITION = "repetition"
WORK = ("kernel", "op")
"""Kinds of operations that tell what a step does: kernels of the GPU and, without GPU work, ops of the CPU."""


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
    if ratio is None and a.found_by != b.found_by and not _hide_kernels(a, b):
        found, marked = (one, other) if a.found_by == BY_REPETITION else (other, one)
        return (
            f"the steps of {found} were found by repetition and those of {marked} are marked, and they run different "
            f"{_noun(a)}s: they need not be about the same work. If a range marks the steps, name it with --step-range"
        )
    return None


def other_program(a: TypicalStep, b: TypicalStep, one: str = "A", other: str = "B") -> str | None:
    """Why the two seem to be different programs, or other steps of one; None if they run the same kernels as often.

    Nothing is known where the kernels are hidden by graphs, or a side has none.
    """
    ratio = times_as_often(a, b)
    if ratio is not None and not 1 / MAX_COUNT_RATIO < ratio < MAX_COUNT_RATIO:
        return f"{_how_often(a, ratio, one, other)}: their steps are not about the same work"
    if a.has_steps and (moved := _moved_out(a, b, one, other)):
        return moved
    if _hide_kernels(a, b) or _have_common_work(a, b):
        return None
    return f"{one} and {other} have hardly any {_noun(a)}s in common: they are not the same program"


def _moved_out(a: TypicalStep, b: TypicalStep, one: str, other: str) -> str | None:
    """Why what one step has less than the other may still run: outside the steps, or in others of them."""
    if len(a.operations) == len(b.operations):
        return None
    if len(a.operations) < len(b.operations):
        return _moved_out(b, a, other, one)
    (work_a, outside_a), (work_b, outside_b) = _work_ns(a), _work_ns(b)
    if 2 * (outside_b - outside_a) > work_a - work_b > 0:
        most, less = share(a.covered, 1), share(b.covered, 1)
        why = f"the steps of {one} hold {most} of its GPU time, and those of {other}, which do less, {less}"
    elif len(a.operations) > MAX_COUNT_RATIO * len(b.operations) and a.waited_ns is not None and b.waited_ns is None:
        why = f"the steps of {one} are alike, and those of {other} run fewer {_noun(a)}s, and different ones by turns"
    else:
        return None
    return f"{why}: they are not about the same work"


def _work_ns(step: TypicalStep) -> tuple[float, float]:
    """The device's work in a step, and what it does outside for each of them."""
    inside = float(step.exposed_ns.sum())
    return inside, inside * (1 / step.covered - 1)


def remark(a: TypicalStep, b: TypicalStep) -> str | None:
    """What to check although nothing forbids the comparison."""
    if _hide_kernels(a, b):
        return "graphs hide the kernels of a step: are both steps about the same work?"
    if a.found_by == b.found_by == BY_REPETITION and times_as_often(a, b) is None:
        return (
            f"the steps of both were found by repetition and run different {_noun(a)}s: are they about the same work?"
        )
    return None


def is_longer_between(a: TypicalStep, b: TypicalStep, least_effect: float) -> bool:
    """Whether B takes longer than A from step to step because more time passes between its steps than is usual."""
    if a.between_ns is None or b.between_ns is None:
        return False
    iteration_ns, grown_ns = a.step_ns + a.between_ns, b.between_ns - a.between_ns
    usual_ns = least_effect * iteration_ns + 2 * IDLE_SPREAD * a.between_ns
    return grown_ns > usual_ns and b.step_ns + b.between_ns > iteration_ns


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


def _have_common_work(a: TypicalStep, b: TypicalStep) -> bool:
    """Whether both run enough of the same kernels, or of the same kinds of kernels; also if one runs none."""
    work_a, work_b = ([one for one in step.operations if one.kind in WORK] for step in (a, b))
    if not work_a or not work_b:
        return True
    counts_a, counts_b = (Counter(one.key for one in work) for work in (work_a, work_b))
    if (counts_a & counts_b).total() >= MIN_SAME_KERNELS * min(len(work_a), len(work_b)):
        return True
    kinds_a, kinds_b = ({work_kind(one) for one in work} for work in (work_a, work_b))
    return len(kinds_a & kinds_b) >= MIN_SAME_KINDS * len(kinds_a | kinds_b)


def _hide_kernels(*steps: TypicalStep) -> bool:
    """Whether most of one's GPU time is graphs that were recorded as one operation each."""
    for step in steps:
        is_graph = np.array([one.kind == "graph" for one in step.operations], bool)
        if step.exposed_ns[is_graph].sum() > MIN_SHARED_TIME * step.exposed_ns.sum():
            return True
    return False


Key = tuple[str, str, tuple[int, ...]]


def _kernels(step: TypicalStep) -> tuple[Counter[Key], dict[Key, float]]:
    """The number and the time of each kernel or op with its grid."""
    counts, times = Counter[Key](), defaultdict[Key, float](float)
    for one, exposed_ns in zip(step.operations, step.exposed_ns.tolist(), strict=True):
        if one.kind in WORK:
            counts[one.key] += 1
            times[one.key] += exposed_ns
    return counts, times


def _noun(step: TypicalStep) -> str:
    return "op" if step.is_on_cpu else "kernel"


def _how_often(a: TypicalStep, ratio: float, one: str = "A", other: str = "B") -> str:
    more, less = (other, one) if ratio > 1 else (one, other)
    times = f"the same {_noun(a)}s {max(ratio, 1 / ratio):.1f} times as often"
    return f"a step of {more} runs {times} as one of {less}" if a.has_steps else f"{more} runs {times} as {less}"
