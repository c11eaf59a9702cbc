"""Work that waits for work of another stream: through events, or by the evidence of the times alone."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from warpline import api_names
from warpline.replay.costs.device import DeviceCosts
from warpline.replay.graph.streams import Delays, Works
from warpline.replay.graph.threads import TopCalls
from warpline.replay.graph.waits import CLOCKS_IN_STARTS
from warpline.trace.arrays import NONE, Bools, Floats, Int64s
from warpline.trace.trace import Trace

LOOK_BACK = 16
"""How many event records before a wait are looked at."""
LATE_IN_STARTS = 3.5
"""Work that begins this long after everything that it is known to wait for has waited for something else. This and the
next are in times of what a launch takes to the device."""
UNEXPLAINED_IN_STARTS = 30.0
"""A delay this long for which nothing recorded answers is kept as measured: something that was not recorded held the
stream (dropped kernels, other processes). Shorter ones are noise, and are not copied."""
CAUSE_WINDOW_IN_STARTS = 7.0
"""That something ended at most this long before: an event passes between streams in a few microseconds."""
CAUSES_TO_TRY = 8
"""How many of the last ends before late work are looked at."""
LAUNCHES_TO_TRY = 4096
"""How many launches before an event's record are looked at for one on another stream."""


class WorkEdges(Struct, frozen=True):
    """Work that waits for work."""

    source: Int64s
    target: Int64s


def event_edges(trace: Trace, calls: TopCalls, works: Works, device: DeviceCosts) -> WorkEdges:
    """A stream's wait for an event, as edges from the last work before the record to the first after the wait.

    Where the profile does not say which stream, the wait belongs to the stream of the thread's next launch, and the
    record to another stream that this thread, or the thread that recorded, launched on before; an edge that the times
    contradict is left out.
    """
    api = trace.api
    waits = np.flatnonzero(api.name.like(api_names.STREAM_WAIT_EVENT))
    records = np.flatnonzero(api.name.like(api_names.EVENT_RECORD))
    linked = works.call != NONE
    if not len(waits) or not linked.any():
        return _edges([])
    starts, threads = api.start_ns, api.thread
    launches = _Launches(calls, works)
    record_times, wait_times = starts[records], starts[waits]
    slack = CLOCKS_IN_STARTS / 10 * device.launch_to_start.expected
    pairs: set[tuple[int, int]] = set()
    for wait, moment in zip(waits.tolist(), wait_times.tolist(), strict=True):
        target = launches.next_of_thread(int(threads[wait]), moment)
        if target == NONE:
            continue
        known = int(np.searchsorted(record_times, moment))  # `api` is by start time, and so are the records
        latest = records[max(0, known - LOOK_BACK) : known][::-1]
        recorded = starts[latest[threads[latest] == threads[wait]]].tolist()
        # Older versions of Kineto leave cudaEventRecord out; the event is then as old as the wait at most.
        for since in recorded if len(records) else [moment]:
            source = launches.last_elsewhere(since, int(works.lane[target]))
            if source != NONE and works.end[source] <= works.start[target] + slack:
                pairs.add((source, target))
                break
    return _edges(sorted(pairs))


def _edges(pairs: list[tuple[int, int]]) -> WorkEdges:
    return WorkEdges(*np.array(pairs, np.int64).reshape(-1, 2).T)


class _Launches:
    """Launches by time, for all streams and for each thread."""

    def __init__(self, calls: TopCalls, works: Works) -> None:
        linked = np.flatnonzero(works.call != NONE)
        moments = calls.start[works.call[linked]]
        order = np.argsort(moments, kind="stable")
        self._work, self._moment = linked[order], moments[order]
        self._lane = works.lane[self._work]
        threads = calls.thread[works.call[self._work]]
        self._of_thread = {
            int(thread): (self._work[threads == thread], self._moment[threads == thread])
            for thread in np.unique(threads)
        }

    def next_of_thread(self, thread: int, moment: int) -> int:
        """The first work that the thread launches after the moment."""
        if thread not in self._of_thread:
            return NONE
        work, moments = self._of_thread[thread]
        position = int(np.searchsorted(moments, moment))
        return int(work[position]) if position < len(work) else NONE

    def last_elsewhere(self, moment: int, lane: int) -> int:
        """The last work launched before the moment on another stream than that one."""
        position = int(np.searchsorted(self._moment, moment)) - 1
        for back in range(position, max(-1, position - LAUNCHES_TO_TRY), -1):
            if self._lane[back] != lane:
                return int(self._work[back])
        return NONE


class Inferred(Struct, frozen=True):
    """What the times alone say of late work."""

    ended: WorkEdges
    """It began right after this ended."""
    beside: WorkEdges
    """It waited for room on the device while this ran."""
    unexplained_ns: Floats
    """For each work, the delay beyond everything known."""


def inferred_edges(works: Works, calls: TopCalls, delays: Delays, known: WorkEdges, costs: DeviceCosts) -> Inferred:
    """Explains late work by what ended just before it on another stream of its device, or ran on it meanwhile."""
    explained, start_ns = _explained(works, calls, delays), costs.launch_to_start.expected
    np.maximum.at(explained, known.target, works.end[known.source].astype(np.float64))
    late = np.flatnonzero((works.start - explained > LATE_IN_STARTS * start_ns) & (works.call != NONE))
    others = _OtherStreams(works, calls)
    ended: list[tuple[int, int]] = []
    beside: list[tuple[int, int]] = []
    unexplained = np.zeros(len(works.row))
    for work in late.tolist():
        cause = others.ended_before(work, CAUSE_WINDOW_IN_STARTS * start_ns)
        delay = works.start[work] - explained[work]
        if cause != NONE:
            ended.append((cause, work))
        elif delay > UNEXPLAINED_IN_STARTS * start_ns:
            longest = others.running_beside(work)
            if longest != NONE:
                beside.append((longest, work))
            else:
                unexplained[work] = delay
    return Inferred(_edges(ended), _edges(beside), unexplained)


class _OtherStreams:
    """Work of other streams of the same device that was launched before a given one."""

    def __init__(self, works: Works, calls: TopCalls) -> None:
        self._works = works
        devices = np.array([device for _, device, _, _ in works.streams], np.int64)
        self._device = devices[works.lane]
        self._launched = np.append(calls.start, 0)[works.call]
        self._by_end, self._by_start = (np.argsort(moments, kind="stable") for moments in (works.end, works.start))
        self._ends, self._starts = works.end[self._by_end], works.start[self._by_start]
        self._longest_ns = int((works.end - works.start).max(initial=0))

    def _precedes(self, others: Int64s, work: int) -> Bools:
        """Which of these are on another stream of the device and were launched before."""
        works = self._works
        elsewhere = (works.lane[others] != works.lane[work]) & (self._device[others] == self._device[work])
        return elsewhere & (works.call[others] != NONE) & (self._launched[others] < self._launched[work])

    def ended_before(self, work: int, window_ns: float) -> int:
        """The last that ended by the start of this, and within this time before it; NONE if none did."""
        start = self._works.start[work]
        reach = int(np.searchsorted(self._ends, start, side="right"))
        latest = self._by_end[max(0, reach - CAUSES_TO_TRY) : reach][::-1]
        latest = latest[self._works.end[latest] >= start - window_ns]
        found = latest[self._precedes(latest, work)]
        return int(found[0]) if len(found) else NONE

    def running_beside(self, work: int) -> int:
        """The longest that was running when this began; NONE if none was."""
        works, start = self._works, int(self._works.start[work])
        # What was still running began no earlier than the longest work takes.
        first, beyond = np.searchsorted(self._starts, [start - self._longest_ns, start])
        running = self._by_start[first:beyond]
        running = running[(works.end[running] > start) & self._precedes(running, work)]
        return int(running[(works.end - works.start)[running].argmax()]) if len(running) else NONE


def _explained(works: Works, calls: TopCalls, delays: Delays) -> Floats:
    """When each work could have begun by its launch and its stream."""
    by_launch = np.append(calls.end, 0)[works.call] + delays.launch[works.kind]
    by_launch = np.where(works.call == NONE, -np.inf, by_launch)
    by_stream = np.append(works.end, 0)[works.previous] + delays.queue_of
    by_stream = np.where(works.previous == NONE, -np.inf, by_stream)
    return np.where(works.in_launch, by_stream, np.maximum(by_launch, by_stream))
