"""Finds the program's loop in its Python frames: the calls that one function repeats."""

from __future__ import annotations

import re

import numpy as np
from msgspec import Struct

from warpline.library_names import PROFILER_FRAME, TORCH_FRAME
from warpline.trace.arrays import NONE, Hashes, Int64s
from warpline.trace.launches import Launches
from warpline.trace.schema import Python
from warpline.trace.steps.choice import FoundSteps
from warpline.trace.steps.loops import FILLED, OWN_WORK
from warpline.trace.steps.period import LEAST_REPEATS, find_period

ADDRESS = re.compile(r" object at 0x[0-9a-fA-F]+")
SAME_CALLS = 0.98
MOST_OF = 0.5
"""Share of a function's launches below which none of its calls is looked into."""
MAX_LEVELS = 1_000
"""Calls within calls that are looked into: Python itself allows no more, unless told to."""


class Calls(Struct, frozen=True):
    """The calls that one frame makes itself."""

    row: Int64s
    start_ns: Int64s
    end_ns: Int64s
    launches: Int64s
    """Number of launches in each call."""


class Frames:
    """Python frames of one thread, in order of time."""

    def __init__(self, python: Python, thread: int, launches: Launches) -> None:
        first, beyond = np.searchsorted(python.thread, [thread, thread + 1]).tolist()
        own = python[first:beyond]
        self.thread, self.offset, self.moments = thread, first, launches.moments
        self.starts, self.ends = own.start_ns, own.end_ns
        self.by_parent: Int64s = np.argsort(own.parent, kind="stable")
        self.sorted_parents = own.parent[self.by_parent]
        self.names = own.name
        self.codes: Hashes = own.name.renamed(lambda name: ADDRESS.sub("", name)).codes.astype(np.uint64)
        self.library = own.name.like(TORCH_FRAME)
        self.profiler = own.name.like(PROFILER_FRAME)

    def calls(self, row: int) -> Calls:
        """The calls of a frame; for None, the outermost frames of the thread."""
        parent = row + self.offset if row != NONE else NONE
        first, beyond = np.searchsorted(self.sorted_parents, [parent, parent + 1])
        rows = self.by_parent[first:beyond]
        rows = rows[~self.profiler[rows]]
        starts, ends = self.starts[rows], self.ends[rows]
        launched = np.searchsorted(self.moments, ends) - np.searchsorted(self.moments, starts)
        return Calls(rows, starts, ends, launched)


def loop_of_frames(python: Python, launches: Launches) -> FoundSteps | None:
    """The iterations of the outermost loop of the thread with the most launches; none without frames.

    From the outermost frame inwards, while one call has most launches: the first function whose calls repeat
    is the one that runs the loop.
    """
    recorded = set(np.unique(python.thread).tolist())
    threads = sorted(launches.of_thread, key=lambda thread: -len(launches.of_thread[thread]))
    thread = next((thread for thread in threads if thread in recorded), None)
    if thread is None:
        return None
    frames, row = Frames(python, thread, launches), NONE
    for _ in range(MAX_LEVELS):
        calls = frames.calls(row)
        total = int(calls.launches.sum())
        turns = _turns(frames, calls, launches)
        if turns is not None or not total or calls.launches.max() < MOST_OF * total:
            return turns
        row = int(calls.row[calls.launches.argmax()])
    return None


def _turns(frames: Frames, calls: Calls, launches: Launches) -> FoundSteps | None:
    """The calls as loop iterations: launching calls repeat in the same order, or one function fills the time."""
    for found in (_same_order(frames, calls), _one_function(frames, calls)):
        if found is None or len(found.names) < LEAST_REPEATS:
            continue
        if launches.share(int(found.start_ns[0]), int(found.end_ns[-1])) >= OWN_WORK:
            return found
    return None


def _same_order(frames: Frames, calls: Calls) -> FoundSteps | None:
    """An iteration starts with a launching call, includes all calls up to the next, and is named after the longest."""
    working = np.flatnonzero(calls.launches)
    period = find_period(frames.codes[calls.row[working]], SAME_CALLS) if len(working) >= LEAST_REPEATS else None
    if period is None:
        return None
    turns = working[period.first :][: period.repeats * period.length].reshape(period.repeats, period.length)
    if frames.library[calls.row[turns[0]]].all():
        return None
    last = int(turns[-1, -1]) + 1
    starts, ends = calls.start_ns[turns[:, 0]], np.maximum.reduceat(calls.end_ns[:last], turns[:, 0])
    longest = int((calls.end_ns - calls.start_ns)[turns].sum(axis=0).argmax())
    return _steps(frames, calls.row[turns[:, longest]], starts, ends)


def _one_function(frames: Frames, calls: Calls) -> FoundSteps | None:
    """The calls of the function that takes longest, if they fill the time from the first to the last."""
    own = np.flatnonzero(~frames.library[calls.row] & (calls.launches > 0))
    if not len(own):
        return None
    length = calls.end_ns - calls.start_ns
    _, which = np.unique(frames.codes[calls.row[own]], return_inverse=True)
    longest = own[which == np.bincount(which, length[own]).argmax()]
    whole = calls.end_ns[longest[-1]] - calls.start_ns[longest[0]]
    if len(longest) < LEAST_REPEATS or length[longest].sum() < FILLED * whole:
        return None
    return _steps(frames, calls.row[longest], calls.start_ns[longest], calls.end_ns[longest])


def _steps(frames: Frames, named_after: Int64s, starts: Int64s, ends: Int64s) -> FoundSteps:
    return FoundSteps(frames.names[named_after].texts.tolist(), starts, ends, frames.thread, "python")
