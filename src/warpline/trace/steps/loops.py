"""Loops of the program: ranges, or calls of a function, that follow one another with nothing else between them."""

from __future__ import annotations

import re

import numpy as np

from warpline.library_names import ENGINE_STEP, OPTIMIZER_STEP
from warpline.trace.arrays import LONG_AGO, NONE, Bools, Int64s, combinations, greatest_of, least_of
from warpline.trace.launches import Launches
from warpline.trace.schema import Ranges
from warpline.trace.steps.choice import FoundSteps, steps_of_ranges
from warpline.trace.steps.period import LEAST_REPEATS, find_period

FILLED = 0.9
"""Share of the time from the first to the last iteration that the iterations must cover."""
OWN_WORK = 0.5
"""Share of the device's busy time whose launches the loop must hold, or else of its window."""
MOST_WORK = 2 / 3
"""The same where ranges are too few to be seen to repeat, and only their name says that they are steps."""
WORKING = 0.9
"""Share of the iterations in which their thread must launch something."""
GROUPS_TRIED = 32
SAME_PARTS = 0.98
"""Share of the ranges that must come again in the next round."""
LIBRARY_RANGE = (
    r"^(Optimizer\.|enumerate\(DataLoader\)|DistributedDataParallel\.|FullyShardedDataParallel|FSDP|nccl:|gloo:|c10d::|"
    r"autograd::|aten::|## Call CompiledFxGraph|CUDAGraphNode\.|Torch-Compiled Region|CompiledFunction|Pregraph|cub::)|"
    r"_data: |compile_id="
)
"""Ranges that torch or a library adds around its own operations."""
PART_OF_A_STEP = r"(?i)layer|block|stage|head|expert|level|attention|attn|mlp|micro|chunk|bucket"
"""Names of ranges that occur several times a step: they may fill the time, but are not steps."""
SEVERAL_STEPS = r"(?i)^\W*epoch\W*\d*\W*$"
"""Names of ranges that hold many steps."""
NAMED_STEP = r"(?i)^\W*(\w+[ _.:/-])?(step|iter|iteration)s?([ _#:.=\[({-]*\d+.*)?\W*$"
"""Names that say that a range is an iteration of a loop: `step 3`, `iteration_7`, `train_step`."""
MOST_LAUNCHES = 1.5
"""Steps between those of an optimizer launch about equally often; several optimizers take turns otherwise."""
LIBRARY_DOMAIN = r"(?i)^(nccl|cccl|cub|thrust|cublas|cublaslt|cudnn|cufft|cusparse|cusolver|nvshmem|mpi|ucx)\b"


def steps_of_engine(ranges: Ranges, launches: Launches) -> FoundSteps | None:
    """The ranges in which an engine or a trainer puts each iteration of its loop, the outermost ones: prefills and
    decodes follow one another, and one alone is a step too."""
    marked = ranges[ranges.name.like(ENGINE_STEP) & (ranges.end_ns != NONE)]
    own = marked[_of_launching_threads(marked, launches) | (marked.thread == NONE)]
    if not len(own):
        return None
    found = steps_of_ranges(own, "range")
    ended = np.append(LONG_AGO, np.maximum.accumulate(found.end_ns)[:-1])
    outer = np.flatnonzero(found.start_ns >= ended)
    starts, ends = found.start_ns[outer], found.end_ns[outer]
    if launches.share(int(starts[0]), int(ends[-1])) < OWN_WORK:
        return None
    return FoundSteps([found.names[row] for row in outer], starts, ends, found.thread, "range")


def loop_of_ranges(ranges: Ranges, launches: Launches) -> FoundSteps | None:
    """The ranges of the outermost loop, in order; names that differ in a number are of one loop (`step 3`).

    Of the groups of ranges that form a loop it is the one with the longest total time. One or two ranges are a loop if
    their name says so.
    """
    own = ranges[
        _of_launching_threads(ranges, launches)
        & (ranges.end_ns > ranges.start_ns)
        & ~ranges.name.like(LIBRARY_RANGE)
        & ~ranges.name.like(PART_OF_A_STEP)
        & ~ranges.name.like(SEVERAL_STEPS)
        & ~ranges.domain.like(LIBRARY_DOMAIN)
    ]
    groups, group = combinations(own.thread, _names_of_loops(own))
    count, total = np.bincount(group), np.bincount(group, own.end_ns - own.start_ns)
    whole = greatest_of(len(groups), group, own.end_ns) - least_of(len(groups), group, own.start_ns)
    repeats = (count >= LEAST_REPEATS) | own.name.like(NAMED_STEP)[groups]
    fitting = np.flatnonzero(repeats & (total >= FILLED * whole) & (total <= whole))
    longest = fitting[np.lexsort((count[fitting], -total[fitting]))]
    for candidate in longest[:GROUPS_TRIED]:
        rows = np.flatnonzero(group == candidate)
        loop = own[rows[np.argsort(own.start_ns[rows], kind="stable")]]
        thread = int(loop.thread[0])
        if _is_loop(loop.start_ns, loop.end_ns, thread, launches):
            return FoundSteps(loop.name.texts.tolist(), loop.start_ns, loop.end_ns, thread, "range")
    return None


def _names_of_loops(own: Ranges) -> Int64s:
    """A code for each range's loop. Names that differ in a number are of one, if the number counts; where most ranges
    have the number of the one before, it labels a section of the program that runs many times."""
    exact, loops = own.name.codes, own.name.renamed(lambda name: re.sub(r"\d+", "", name)).codes
    first, loop = combinations(own.thread, loops)
    order = np.lexsort((own.start_ns, loop))
    in_loop = loop[order][1:] == loop[order][:-1]
    stays = in_loop & (exact[order][1:] == exact[order][:-1])
    pairs, staying = (np.bincount(loop[order][1:], which, len(first)) for which in (in_loop, stays))
    return np.where((2 * staying > pairs)[loop], len(own.name.words) + exact, loops)


def cycle_of_ranges(ranges: Ranges, launches: Launches) -> FoundSteps | None:
    """Parts of a step that follow one another in the same order again and again, with no range around the step: from
    the first part of one round to that of the next."""
    own = ranges[
        _of_launching_threads(ranges, launches)
        & (ranges.end_ns > ranges.start_ns)
        & ~ranges.name.like(LIBRARY_RANGE)
        & ~ranges.domain.like(LIBRARY_DOMAIN)
    ]
    if not len(own):
        return None
    threads, count = np.unique(own.thread, return_counts=True)
    own = own[own.thread == threads[count.argmax()]]
    own = own[np.lexsort((-own.end_ns, own.start_ns))]
    ended = np.append(LONG_AGO, np.maximum.accumulate(own.end_ns)[:-1])
    outer = own[own.start_ns >= ended]
    codes = outer.name.codes
    period = find_period(codes.astype(np.uint64), SAME_PARTS)
    if period is None or period.length < 2:
        return None
    # A round begins with the part that the program runs first.
    round_of = codes[period.first : period.first + period.length].tolist()
    first = period.first + min(range(period.length), key=lambda part: int((codes == round_of[part]).argmax()))
    repeats = (period.beyond - first) // period.length
    if repeats < LEAST_REPEATS:
        return None
    marks = first + period.length * np.arange(repeats)
    starts = outer.start_ns[marks]
    ends = np.append(starts[1:], outer.end_ns[marks[-1] + period.length - 1])
    if not _is_loop(starts, ends, int(outer.thread[0]), launches):
        return None
    return FoundSteps(outer.name.texts[marks].tolist(), starts, ends, int(outer.thread[0]), "range")


def _of_launching_threads(ranges: Ranges, launches: Launches) -> Bools:
    return np.isin(ranges.thread, list(launches.of_thread))


def _is_loop(starts: Int64s, ends: Int64s, thread: int, launches: Launches) -> bool:
    """Consecutive spans, with launches in each and most of the launches in total."""
    return bool(
        (starts[1:] >= ends[:-1]).all()
        and launches.share(int(starts[0]), int(ends[-1])) >= (OWN_WORK if len(starts) >= LEAST_REPEATS else MOST_WORK)
        and launches.working(thread, starts, ends) >= WORKING
    )


def steps_of_optimizer(ranges: Ranges, launches: Launches) -> FoundSteps | None:
    """Training steps that nothing else marks: from the end of one step of the optimizer to the end of the next.

    The first one begins with the first kernel, after the model was loaded; if it launches far more or less than the
    others, it is not a step.
    """
    chosen = ranges.name.like(OPTIMIZER_STEP) & _of_launching_threads(ranges, launches) & (ranges.end_ns != NONE)
    own = ranges[chosen]
    if len(own) < 2 or len(combinations(own.thread, own.name.codes)[0]) > 1:
        return None
    ends = np.sort(own.end_ns)
    marks = np.append(min(launches.first_kernel, ends[0]), ends)
    count = np.diff(np.searchsorted(launches.moments, marks))
    others = count[1:]
    if not others.all() or others.max() > MOST_LAUNCHES * others.min():
        return None
    first = 0 if others.max() <= MOST_LAUNCHES * count[0] and count[0] <= MOST_LAUNCHES * others.min() else 1
    names = own.name.texts[first:].tolist()
    return FoundSteps(names, marks[first:-1], marks[first + 1 :], int(own.thread[0]), "optimizer")
