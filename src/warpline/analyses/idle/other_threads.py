"""What all threads do, prepared once, to say why one of them waited or did nothing.

For a moment in which a thread has no evidence of its own, the evidence of the others is that of all threads: so it is
found once, and each thread looks up only the moments that it is asked about.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from warpline.analyses.idle.host_activity import PRIORITY, WAITING, prioritised
from warpline.intervals import EMPTY, LaneLine, LaneSpans, Spans, at_least, complement, difference, joined, union
from warpline.trace.arrays import LONG_AGO, NEVER, Int64s

OF_ANY_THREAD = tuple(label for label in PRIORITY if label not in {"input", "profiler", WAITING})
"""Activities of one launching thread that may block another; loading and recording do not."""
OF_WAKING_THREAD = tuple(label for label in PRIORITY if label not in {"dispatch", "profiler", WAITING})
"""Activities of a thread that explain why another waited for it."""
WAKES_WITHIN = 0.02
"""Share of a wait before its end within which the activity that ended it must end."""


class OtherThreads:
    """The activity of all threads of a trace; `launching` are those that launch GPU operations."""

    def __init__(self, activity: dict[str, LaneSpans], launching: Int64s) -> None:
        self._activity, self._launching = activity, launching

    @cached_property
    def active(self) -> dict[str, Spans]:
        """Activity of any launching thread that may block another one."""
        return prioritised({label: union(*self._of_launching(label)) for label in OF_ANY_THREAD})

    @cached_property
    def quiet(self) -> Spans:
        """All time without such an activity."""
        return complement(joined(list(self.active.values())), LONG_AGO, NEVER)

    def whole_pauses(self, line: LaneLine, moments: Spans) -> Spans:
        """The moments on a line of threads, and all of each quiet time that they touch."""
        starts = line.times(moments.starts)
        lane = moments.starts - starts
        first = np.searchsorted(self.quiet.ends, starts, side="right")
        beyond = np.searchsorted(self.quiet.starts, line.times(moments.ends), side="left")
        touched, owner = _rows(first, beyond)
        # The first pause begins, and the last one ends, far outside of the line.
        earliest, latest = line.first, line.first + line.length - 2
        begins, stops = (np.clip(side, earliest, latest)[touched] for side in (self.quiet.starts, self.quiet.ends))
        return union(
            np.concatenate([moments.starts, begins + lane[owner]]), np.concatenate([moments.ends, stops + lane[owner]])
        )

    def waking(self, line: LaneLine, waits: Spans) -> dict[str, Spans]:
        """What the threads did that each thread on a line waited for: the activity that ends with the wait; and where
        another launching thread does not wait itself, the program runs there, which is dispatch."""
        if not len(waits):
            return {}
        found = prioritised({label: self._ending_with(label, line, waits) for label in OF_WAKING_THREAD})
        rest = difference(waits, joined(list(found.values())))
        has_others = len(self._launching) > np.isin(line.lanes, self._launching)
        chosen = has_others[line.number(rest.starts)]
        rest = Spans(rest.starts[chosen], rest.ends[chosen])
        running = line.cut(rest, complement(self._all_waiting, LONG_AGO, NEVER))
        return {**{label: found[label] for label in OF_WAKING_THREAD}, "dispatch": running}

    def ends_of(self, label: str) -> Int64s:
        """When an activity of that label ends, of any thread."""
        return self._by_end[label].ends

    def _of_launching(self, label: str) -> tuple[Int64s, Int64s]:
        """Starts and ends of the launching threads' activity of that label."""
        own = self._activity[label]
        chosen = np.isin(own.lanes, self._launching)
        return own.starts[chosen], own.ends[chosen]

    @cached_property
    def _all_waiting(self) -> Spans:
        """When all launching threads wait that have any activity."""
        active = np.unique(np.concatenate([own.lanes for own in self._activity.values()]))
        return at_least(int(np.isin(active, self._launching).sum()), *self._of_launching(WAITING))

    @cached_property
    def _by_end(self) -> dict[str, LaneSpans]:
        """By label, every activity of any thread, sorted by its end."""
        found = {}
        for label in OF_WAKING_THREAD:
            own = self._activity[label]
            order = np.argsort(own.ends, kind="stable")
            found[label] = LaneSpans(own.lanes[order], own.starts[order], own.ends[order])
        return found

    def _ending_with(self, label: str, line: LaneLine, waits: Spans) -> Spans:
        """The parts, within the waits on a line, of other threads' activities that end where a wait ends."""
        activity = self._by_end[label]
        if not len(activity):
            return EMPTY
        starts, ends = line.times(waits.starts), line.times(waits.ends)
        lane, caller = waits.starts - starts, line.lanes[line.number(waits.starts)]
        least = ends - np.floor(WAKES_WITHIN * (ends - starts)).astype(np.int64)
        first = np.searchsorted(activity.ends, least, side="left")
        row, wait = _rows(first, np.searchsorted(activity.ends, ends, side="right"))
        other = activity.lanes[row] != caller[wait]
        row, wait = row[other], wait[other]
        return union(np.maximum(activity.starts[row], starts[wait]) + lane[wait], activity.ends[row] + lane[wait])


def _rows(first: Int64s, beyond: Int64s) -> tuple[Int64s, Int64s]:
    """All positions of the ranges first:beyond, and the range that each belongs to."""
    counts = np.maximum(beyond - first, 0)
    owner = np.repeat(np.arange(len(counts)), counts)
    return np.repeat(first, counts) + np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts), owner
