"""Work that waits for work of another stream: through events, or by the evidence of the times alone."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from warpline import api_names
from warpline.replay.costs.device import DeviceCosts
from warpline.replay.graph.streams import Delays, Works
from warpline.replay.graph.threads import TopCalls
from warpline.replay.graph.waits import CLOCKS_IN_STARTS
from warpline.trace.arrays import NONE, Floats, Int64s
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
        return WorkEdges(np.empty(0, np.int64), np.empty(0, np.int64))
    starts, threads = api.start_ns, api.thread
    launches = _Launches(calls, works)
    record_times, wait_times = starts[records], starts[waits]
    slack = CLOCKS_IN_STARTS / 10 * device.launch_to_start.expected
    pairs: set[tuple[int, int]] = set()
    for wait, moment in zip(waits.tolist(), wait_times.tolist(), strict=True):
        target = launches.next_of_thread(int(threads[wait]), moment)
        if target == NONE:
            continue
        known = int(np.searchsorted(record_times, moment))
        recorded = [
            int(starts[record])
            for record in records[max(0, known - LOOK_BACK) : known][::-1].tolist()
            if threads[record] == threads[wait]
        ]
        # Older versions of Kineto leave cudaEventRecord out; the event is then as old as the wait at most.
        for since in recorded if len(records) else [moment]:
            source = launches.last_elsewhere(since, int(works.lane[target]))
            if source != NONE and works.end[source] <= works.start[target] + slack:
                pairs.add((source, target))
                break
    ordered = sorted(pairs)
    return WorkEdges(
        np.array([source for source, _ in ordered], np.int64), np.array([target for _, target in ordered], np.int64)
    )


class _Launches:
    """Launches by time, for all streams and for each thread."""

    def __init__(self, calls: TopCalls, works: Works) -> None:
        linked = np.flatnonzero(works.call != NONE)
        moments = calls.start[works.call[linked]]
        order = np.argsort(moments, kind="stable")
        self._work, self._moment = linked[order], moments[order]
        self._lane = works.lane[self._work]
        thread = calls.thread[works.call[self._work]]
        self._of_thread = {
            int(one): (self._work[thread == one], self._moment[thread == one]) for one in np.unique(thread)
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
        for back in range(position, max(-1, position - 4096), -1):
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
    device = np.array([stream[1] for stream in works.streams], np.int64)[works.lane] if len(works.row) else works.lane
    launched = np.append(calls.start, 0)[works.call]
    by_end = np.argsort(works.end, kind="stable")
    ends = works.end[by_end]
    source, target, beside, held = [], [], [], []
    rest = np.zeros(len(works.row))
    longest = int((works.end - works.start).max(initial=0))
    by_start = np.argsort(works.start, kind="stable")
    starts = works.start[by_start]
    for work in late.tolist():
        reach = int(np.searchsorted(ends, works.start[work], side="right"))
        cause = NONE
        for candidate in by_end[max(0, reach - 8) : reach][::-1].tolist():
            if works.end[candidate] < works.start[work] - CAUSE_WINDOW_IN_STARTS * start_ns:
                break
            earlier = works.call[candidate] != NONE and launched[candidate] < launched[work]
            if earlier and works.lane[candidate] != works.lane[work] and device[candidate] == device[work]:
                cause = candidate
                break
        if cause != NONE:
            source.append(cause)
            target.append(work)
            continue
        if works.start[work] - explained[work] <= UNEXPLAINED_IN_STARTS * start_ns:
            continue
        moment = int(works.start[work])
        running = by_start[np.searchsorted(starts, moment - longest) : np.searchsorted(starts, moment)]
        fits = (works.end[running] > moment) & (works.lane[running] != works.lane[work]) & (works.call[running] != NONE)
        running = running[fits & (device[running] == device[work]) & (launched[running] < launched[work])]
        if len(running):
            beside.append(int(running[(works.end - works.start)[running].argmax()]))
            held.append(work)
        else:
            rest[work] = works.start[work] - explained[work]
    ended = WorkEdges(np.array(source, np.int64), np.array(target, np.int64))
    return Inferred(ended, WorkEdges(np.array(beside, np.int64), np.array(held, np.int64)), rest)


def _explained(works: Works, calls: TopCalls, delays: Delays) -> Floats:
    """When each work could have begun by its launch and its stream."""
    by_launch = np.append(calls.end, 0)[works.call] + delays.launch[works.kind]
    by_launch = np.where(works.call == NONE, -np.inf, by_launch)
    by_stream = np.append(works.end, 0)[works.previous] + delays.queue_of
    by_stream = np.where(works.previous == NONE, -np.inf, by_stream)
    result: Floats = np.where(works.in_launch, by_stream, np.maximum(by_launch, by_stream))
    return result
