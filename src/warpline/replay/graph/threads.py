"""The CPU side of the graph: what each thread did between API calls, and which threads waited for each other.

A thread's timeline is a sequence of *stops*: its outermost API calls, and the moments at which it hands work to
another thread or waits for it. Between two stops lies a segment of CPU time whose length is the trace's.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from warpline.intervals import LaneTimes, Spans, union
from warpline.trace.arrays import NONE, Bools, Int64s
from warpline.trace.schema import Api
from warpline.trace.table import filled
from warpline.trace.trace import Trace

BACKWARD_NODE = r"^autograd::engine::evaluate_function"
"""The op that the autograd engine's thread runs for each node of the backward graph."""
ENGINE_THREAD = "pt_autograd_"
"""The name that torch gives to such a thread, which Nsight Systems records."""
LEAST_HANDOFF_CALLS = 3
LEAST_HANDOFF_SHARE = 0.5
"""Without recorded ops, a thread is taken to wait for another when at least this many calls of the other fill at
least this share of its gap: less may be a thread that works beside it."""
LEAST_HANDOFF_IN_OPS = 5.0
"""The same in times of an op with its launch."""


class TopCalls(Struct, frozen=True):
    """The outermost API calls, by thread and time."""

    row: Int64s
    thread: Int64s
    start: Int64s
    end: Int64s
    top_of: Int64s
    """For each row of `api`, the position here of the call around it or of itself."""


class Handoffs(Struct, frozen=True):
    """Episodes in which one thread worked for another: caller leaves at `begin`, waits until `end` if `awaited`."""

    caller: Int64s
    worker: Int64s
    begin: Int64s
    end: Int64s
    idle_since: Int64s
    """When the worker ended what it did before; NONE in its first episode."""
    awaited: Bools


class _Episode(Struct, frozen=True):
    """One of them."""

    caller: int
    worker: int
    begin: int
    end: int
    idle_since: int
    awaited: bool


def top_calls(api: Api) -> TopCalls:
    """Driver calls within runtime calls belong to the outer call."""
    order = np.lexsort((-api.end_ns, api.start_ns, api.thread))  # of two that begin together, the longer is the outer
    threads, starts, ends = api.thread[order], api.start_ns[order], api.end_ns[order]
    outer = np.ones(len(order), bool)
    for begin, beyond in _runs(threads):
        reach = np.maximum.accumulate(ends[begin:beyond])
        outer[begin + 1 : beyond] = starts[begin + 1 : beyond] >= reach[:-1]
    top_of = np.empty(len(order), np.int64)
    top_of[order] = np.cumsum(outer) - 1  # inner calls follow their outer call in this order
    return TopCalls(order[outer], threads[outer], starts[outer], ends[outer], top_of)


def _runs(values: Int64s) -> list[tuple[int, int]]:
    """Begin and end of each run of equal values."""
    if not len(values):
        return []
    edges = np.flatnonzero(np.diff(values)) + 1
    return list(zip([0, *edges.tolist()], [*edges.tolist(), len(values)], strict=True))


def handoffs(trace: Trace, calls: TopCalls, op_ns: float) -> Handoffs:
    """Backward passes on the autograd engine's threads, and other episodes in which a thread waits for another.

    `op_ns` is what an op takes with its launch.
    """
    activity = _activity(trace, calls)
    workers = _autograd_threads(trace)
    known = bool(workers)
    main = _main_thread(trace, calls, workers)
    if not known and not len(trace.ops):
        workers = [thread for thread in activity if thread != main]
    episodes = [
        episode
        for worker in workers
        if worker in activity and main in activity and worker != main
        for episode in _episodes(main, activity[main], worker, activity[worker], calls, None if known else op_ns)
    ]
    return Handoffs(
        caller=np.array([one.caller for one in episodes], np.int64),
        worker=np.array([one.worker for one in episodes], np.int64),
        begin=np.array([one.begin for one in episodes], np.int64),
        end=np.array([one.end for one in episodes], np.int64),
        idle_since=np.array([one.idle_since for one in episodes], np.int64),
        awaited=np.array([one.awaited for one in episodes], bool),
    )


def _activity(trace: Trace, calls: TopCalls) -> dict[int, Spans]:
    """When each thread was inside an op or a call."""
    ops = trace.ops[trace.ops.depth == 0]
    threads = np.concatenate([calls.thread, ops.thread])
    starts = np.concatenate([calls.start, ops.start_ns])
    # An empty event is still something that happened.
    ends = np.maximum(np.concatenate([calls.end, ops.end_ns]), starts + 1)
    line = LaneTimes.of(starts, ends)
    return dict(line.by_lane(union(line.places(threads, starts), line.places(threads, ends))))


def _autograd_threads(trace: Trace) -> list[int]:
    backward = (filled(trace.ops.forward_thread, 0) > 0) | trace.ops.name.like(BACKWARD_NODE)
    return np.union1d(trace.ops.thread[backward], engine_threads(trace)).tolist()


def engine_threads(trace: Trace) -> Int64s:
    """The threads that autograd's engine started for itself, as far as they have its name."""
    return np.flatnonzero([ENGINE_THREAD in (name or "") for name in trace.threads.name.tolist()])


def _main_thread(trace: Trace, calls: TopCalls, workers: list[int]) -> int:
    """The thread with most ops that are not backward ones; with most calls where there are no ops."""
    threads = trace.ops.thread if len(trace.ops) else calls.thread
    others = threads[~np.isin(threads, workers)]
    counted = others if len(others) else threads
    return int(np.bincount(counted[counted >= 0]).argmax()) if (counted >= 0).any() else NONE


def _episodes(
    main: int, main_spans: Spans, worker: int, spans: Spans, calls: TopCalls, op_ns: float | None
) -> Iterator[_Episode]:
    """Runs of the worker's activity between two activities of the main thread; without ops to tell, long ones."""
    position = np.searchsorted(main_spans.starts, spans.starts, side="right")
    own_calls = np.sort(calls.start[calls.thread == worker])
    idle_since = NONE
    for begin, beyond in _runs(position):
        after = int(position[begin])  # the main thread's next activity
        start, end = int(spans.starts[begin]), int(spans.ends[beyond - 1])
        left = int(main_spans.ends[after - 1]) if after else None
        back = int(main_spans.starts[after]) if after < len(main_spans) else None
        since, idle_since = idle_since, end
        if left is None or left > start:
            continue
        awaited = back is not None and end <= back
        if op_ns is not None:
            count = int(np.searchsorted(own_calls, end) - np.searchsorted(own_calls, start))
            gap = (back if back is not None else end) - left
            least_ns = max(LEAST_HANDOFF_IN_OPS * op_ns, LEAST_HANDOFF_SHARE * gap)
            if count < LEAST_HANDOFF_CALLS or end - start < least_ns:
                continue
        yield _Episode(main, worker, start, end, since, awaited)
