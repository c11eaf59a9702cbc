"""What all threads do, prepared once, to say why one of them waited or did nothing.

For a moment in which a thread has no evidence of its own, the evidence of the others is that of all threads: so it is
found once, and each thread looks up only the moments that it is asked about.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from warpline.analyses.idle.host_activity import PRIORITY, WAITING, Activity, prioritised
from warpline.intervals import EMPTY, Spans, at_least, complement, difference, joined, union
from warpline.trace.arrays import Int64s

OF_ANY_THREAD = tuple(label for label in PRIORITY if label not in {"input", "profiler", WAITING})
"""Activities of one launching thread that may block another; loading and recording do not."""
OF_WAKING_THREAD = tuple(label for label in PRIORITY if label not in {"dispatch", "profiler", WAITING})
"""Activities of a thread that explain why another waited for it."""
WAKES_WITHIN = 0.02
"""Share of a wait before its end within which the activity that ended it must end."""
EARLIEST, LATEST = np.iinfo(np.int64).min // 4, np.iinfo(np.int64).max // 4


class OtherThreads:
    """The activity of all threads of a trace; `launching` are those that launch GPU operations."""

    def __init__(self, threads: dict[int, Activity], launching: list[int]) -> None:
        self._threads, self._launching = threads, launching
        self._known = [threads[thread] for thread in launching if thread in threads]

    @cached_property
    def active(self) -> Activity:
        """Activity of any launching thread that may block another one."""
        return prioritised(
            {label: joined([one.labels.get(label, EMPTY) for one in self._known]) for label in OF_ANY_THREAD}
        )

    @cached_property
    def quiet(self) -> Spans:
        """All time without such an activity."""
        return complement(self.active.spans, EARLIEST, LATEST)

    def whole_pauses(self, moments: Spans) -> Spans:
        """The moments, and all of each quiet time that they touch."""
        if not len(moments):
            return EMPTY
        quiet = self.quiet
        first = np.searchsorted(quiet.ends, moments.starts, side="right")
        beyond = np.searchsorted(quiet.starts, moments.ends, side="left")
        touched, _ = _rows(first, beyond)
        return union(
            np.concatenate([moments.starts, quiet.starts[touched]]), np.concatenate([moments.ends, quiet.ends[touched]])
        )

    def waking(self, caller: int, waits: Spans) -> dict[str, Spans]:
        """What the threads did that a thread waited for: the activity that ends with the wait; and where another
        launching thread does not wait itself, the program runs there, which is dispatch."""
        if not len(waits):
            return {}
        found = prioritised({label: self._ending_with(label, caller, waits) for label in OF_WAKING_THREAD})
        rest = difference(waits, found.spans)
        others = len(self._launching) - (caller in self._launching)
        running = difference(rest, self._all_waiting) if others else EMPTY
        return {**{label: found.labels[label] for label in OF_WAKING_THREAD}, "dispatch": running}

    def ends_of(self, label: str) -> Int64s:
        """When an activity of that label ends, of any thread."""
        return self._by_end[label][2]

    @cached_property
    def _all_waiting(self) -> Spans:
        """When all launching threads wait."""
        return at_least(len(self._known), [one.labels.get(WAITING, EMPTY) for one in self._known])

    @cached_property
    def _by_end(self) -> dict[str, tuple[Int64s, Int64s, Int64s]]:
        """By label, thread, begin and end of every activity of any thread, sorted by its end."""
        found = {}
        for label in OF_WAKING_THREAD:
            spans = [(thread, one.labels[label]) for thread, one in self._threads.items() if len(one.labels[label])]
            none = np.empty(0, np.int64)
            threads = np.concatenate([none, *(np.full(len(each), thread) for thread, each in spans)])
            starts = np.concatenate([none, *(each.starts for _, each in spans)])
            ends = np.concatenate([none, *(each.ends for _, each in spans)])
            order = np.argsort(ends, kind="stable")
            found[label] = threads[order], starts[order], ends[order]
        return found

    def _ending_with(self, label: str, caller: int, waits: Spans) -> Spans:
        """The parts, within the waits, of other threads' activities that end where a wait ends."""
        threads, starts, ends = self._by_end[label]
        if not len(ends):
            return EMPTY
        least = waits.ends - np.floor(WAKES_WITHIN * (waits.ends - waits.starts)).astype(np.int64)
        first, beyond = np.searchsorted(ends, least, side="left"), np.searchsorted(ends, waits.ends, side="right")
        row, wait = _rows(first, beyond)
        other = threads[row] != caller
        return union(np.maximum(starts[row], waits.starts[wait])[other], ends[row][other])


def _rows(first: Int64s, beyond: Int64s) -> tuple[Int64s, Int64s]:
    """All positions of the ranges first:beyond, and the range that each belongs to."""
    counts = np.maximum(beyond - first, 0)
    owner = np.repeat(np.arange(len(counts)), counts)
    return np.repeat(first, counts) + np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts), owner
