"""Builds the dependency graph of a trace.

Threads give segments, calls and joins (`threads`), streams give work (`streams`), and the edges between them come
from launches, synchronising calls (`waits`), events (`events`) and hand-overs between threads. Nodes are then put in
an order in which every cause comes before its effect: calls by when they began, work by when it was launched,
returns by when they came.
"""

from __future__ import annotations

from enum import IntEnum
from itertools import pairwise

import numpy as np
from msgspec import Struct, field
from msgspec.structs import astuple

from warpline.errors import NoGpuWork
from warpline.replay.costs.device import DeviceCosts
from warpline.replay.costs.find import Costs
from warpline.replay.graph.events import WorkEdges, event_edges, inferred_edges
from warpline.replay.graph.model import EdgeKind, Graph, Int8s, NodeKind
from warpline.replay.graph.streams import Delays, WorkKind, Works, measured_delays, stream_works
from warpline.replay.graph.threads import Handoffs, TopCalls, handoffs, top_calls
from warpline.replay.graph.waits import CallWaits, WaitKind, call_waits
from warpline.trace.arrays import LONG_AGO, NONE, Floats, Int64s
from warpline.trace.trace import Trace

PROMPT_IN_STARTS = 12.0
"""An event passes between streams in less than this, in times of what a launch takes to the device."""
ORDER_ROUNDS = 64
"""Maximum number of order corrections; edges that still contradict the order are dropped and counted."""
ORDERING_EDGES = [kind for kind in EdgeKind if kind not in (EdgeKind.GONE, EdgeKind.THREAD, EdgeKind.STREAM)]
"""Edges between lanes; those within one follow from the lane's own order."""


class _Timeline(Struct, frozen=True):
    """What the trace says of threads and streams, and how they wait for each other."""

    trace: Trace
    device: DeviceCosts
    calls: TopCalls
    works: Works
    waits: CallWaits
    delays: Delays
    handoffs: Handoffs
    origin_ns: int


class _Nodes(Struct):
    """Some nodes."""

    kind: Int64s
    lane: Int64s
    start: Int64s
    end: Int64s
    row: Int64s
    position: Int64s
    """In the order of its lane."""


class _Edges(Struct):
    """Some edges between nodes."""

    source: Int64s
    target: Int64s
    lag: Floats
    kind: Int8s


class _Draft(Struct):
    """Nodes in order of creation, and edges between them."""

    nodes: list[_Nodes] = field(default_factory=list)
    edges: list[_Edges] = field(default_factory=list)
    count: int = 0

    def add(
        self, kind: NodeKind | Int64s, lane: Int64s, start: Int64s, end: Int64s, row: Int64s | None, position: Int64s
    ) -> Int64s:
        """Add nodes and return their numbers."""
        size = len(lane)
        kinds = np.full(size, kind, np.int64) if isinstance(kind, NodeKind) else kind
        rows = np.full(size, NONE, np.int64) if row is None else row
        self.nodes.append(_Nodes(kinds, lane, start, end, rows, position))
        self.count += size
        return np.arange(self.count - size, self.count)

    def join(self, sources: Int64s, targets: Int64s, lag: Floats | Int64s | float, kind: EdgeKind) -> None:
        """Add edges."""
        lags, kinds = np.empty(len(sources)), np.full(len(sources), kind, np.int8)
        lags[:] = lag
        self.edges.append(_Edges(sources, targets, lags, kinds))


class _CallNodes(Struct, frozen=True):
    """The nodes of each call of `TopCalls`."""

    segment: Int64s
    """What the thread did before it."""
    call: Int64s
    last: Int64s
    """Its return if it waits, else the call itself."""


def build_graph(trace: Trace, costs: Costs) -> Graph:
    """The graph of the whole trace; steps are found in it afterwards."""
    calls = top_calls(trace.api)
    works = stream_works(trace, calls, costs.device)
    if not len(works.start):  # also if pages of unified memory are all that moved
        raise NoGpuWork("a prediction replays launches and what the GPU does, and the trace has no GPU operations")
    waits = call_waits(trace, calls, works, costs)
    first = [calls.start, works.start, trace.all_steps.start_ns, trace.ops.start_ns]
    timeline = _Timeline(
        trace=trace,
        device=costs.device,
        calls=calls,
        works=works,
        waits=waits,
        delays=measured_delays(works, calls, waits.how == WaitKind.OWN, costs.device),
        handoffs=handoffs(trace, calls, costs.host.launched_op.expected),
        origin_ns=int(np.concatenate(first).min()),
    )
    draft = _Draft()
    origin, no_lane = np.array([timeline.origin_ns]), np.array([NONE])
    root = int(draft.add(NodeKind.JOIN, no_lane, origin, origin, None, no_lane)[0])
    call_nodes = _add_threads(draft, timeline)
    work_nodes = _add_work(draft, timeline, call_nodes, root)
    draft.join(work_nodes[waits.work], call_nodes.last[waits.call], waits.release_ns, EdgeKind.SYNC)
    return _ordered(draft, timeline, call_nodes)


# Threads.


class _AtOnce(IntEnum):
    """Which of two stops of a thread at the same moment comes first."""

    JOIN = 0
    CALL = 1
    CUT = 2


class _Stops(Struct, frozen=True):
    """Moments at which segments of threads end: calls, and moments at which threads leave work to each other."""

    thread: Int64s
    start: Int64s
    end: Int64s
    """When the next segment begins."""
    segment_end: Int64s
    """When the segment before it ends: earlier than `start` where the thread waited."""


def _by_thread(*parts: tuple[_AtOnce, _Stops]) -> tuple[_Stops, list[Int64s]]:
    """All stops, one thread after the other and each by time, and where those of each part lie among them."""
    sizes = [len(stops.thread) for _, stops in parts]
    every = _Stops(*(np.concatenate(columns) for columns in zip(*(astuple(stops) for _, stops in parts), strict=True)))
    at_once = np.repeat([rank for rank, _ in parts], sizes)
    order = np.lexsort((at_once, every.start, every.thread))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))  # the inverse of the order
    return _Stops(*(column[order] for column in astuple(every))), np.split(place, np.cumsum(sizes)[:-1])


def _add_threads(draft: _Draft, timeline: _Timeline) -> _CallNodes:
    """Segments, calls, returns and joins of all threads."""
    calls, episodes, waits = timeline.calls, timeline.handoffs, timeline.waits
    thread_of_last, last = _last_moments(timeline.trace, calls)
    ended, (of_call, of_caller, of_worker, of_worker_end, _) = _by_thread(
        (_AtOnce.CALL, _Stops(calls.thread, calls.start, calls.end, calls.start)),
        # A caller leaves when the worker begins, and goes on when it ends.
        (_AtOnce.JOIN, _Stops(episodes.caller, episodes.end, episodes.end, episodes.begin)),
        (_AtOnce.JOIN, _Stops(episodes.worker, episodes.begin, episodes.begin, episodes.idle_since)),
        (_AtOnce.CUT, _Stops(episodes.worker, episodes.end, episodes.end, episodes.end)),
        (_AtOnce.CUT, _Stops(thread_of_last, last, last, last)),
    )
    thread, start, end = ended.thread, ended.start, ended.end
    is_first = np.diff(thread, prepend=NONE - 1) != 0
    segment_start = np.where(is_first, timeline.origin_ns, np.roll(end, 1))
    segment_end = np.clip(ended.segment_end, segment_start, np.maximum(start, segment_start))
    row, kind = np.full(len(thread), NONE, np.int64), np.full(len(thread), NodeKind.JOIN, np.int64)
    row[of_call], kind[of_call] = calls.row, NodeKind.CALL
    # A stop has up to three nodes: the segment before it, itself, and the return of a call that waits.
    position = 3 * np.arange(len(thread))
    segments = draft.add(NodeKind.SEGMENT, thread, segment_start, segment_end, None, position)
    stops = draft.add(kind, thread, start, end, row, position + 1)
    waiting = of_call[waits.how != WaitKind.NOTHING]
    returned = end[waiting]
    returns = draft.add(NodeKind.RELEASE, thread[waiting], returned, returned, row[waiting], position[waiting] + 2)
    last_nodes = stops.copy()
    last_nodes[waiting] = returns
    draft.join(segments, stops, 0.0, EdgeKind.THREAD)
    draft.join(stops[waiting], returns, 0.0, EdgeKind.THREAD)
    follows = np.flatnonzero(~is_first)
    draft.join(last_nodes[follows - 1], segments[follows], 0.0, EdgeKind.THREAD)
    # The worker begins when the caller's segment ends; the caller goes on when the worker's episode ends.
    draft.join(segments[of_caller], stops[of_worker], 0.0, EdgeKind.HANDOFF)
    awaited = episodes.awaited
    draft.join(stops[of_worker_end[awaited]], stops[of_caller[awaited]], 0.0, EdgeKind.HANDOFF)
    return _CallNodes(segments[of_call], stops[of_call], last_nodes[of_call])


def _last_moments(trace: Trace, calls: TopCalls) -> tuple[Int64s, Int64s]:
    """The end of the last op or range of each thread that makes calls, where it lies after its last call."""
    threads = np.unique(calls.thread)
    found, last_call = np.full((2, len(threads)), NONE, np.int64)
    for table in (trace.ops, trace.ranges):
        rows = np.flatnonzero(np.isin(table.thread, threads))
        np.maximum.at(found, np.searchsorted(threads, table.thread[rows]), table.end_ns[rows])
    np.maximum.at(last_call, np.searchsorted(threads, calls.thread), calls.end)
    later = found > last_call
    return threads[later], found[later]


# Streams.


def _add_work(draft: _Draft, timeline: _Timeline, call_nodes: _CallNodes, root: int) -> Int64s:
    """GPU operations with their launches, streams and events; returns their nodes.

    Arrays of calls and of work are indexed with NONE where there is no call or no previous work: they get one more
    element at their end, which is not used.
    """
    calls, works, delays = timeline.calls, timeline.works, timeline.delays
    nodes = draft.add(NodeKind.WORK, works.lane, works.start, works.end, works.row, np.arange(len(works.row)))
    events = event_edges(timeline.trace, calls, works, timeline.device)
    inferred = inferred_edges(works, calls, delays, events, timeline.device)
    unexplained_ns = inferred.unexplained_ns
    is_awaited = np.append(timeline.waits.how, WaitKind.NOTHING)[works.call] == WaitKind.OWN
    call_start, call_end = (np.append(moments, 0)[works.call] for moments in (calls.start, calls.end))
    is_launched = (works.call != NONE) & ~works.in_launch
    # A CUDA graph with memsets in it is sent to the device in parts: the first may run long before the call returns.
    in_parts = is_launched & (works.kind == WorkKind.GRAPH) & (works.start < call_end)
    after_call = is_launched & ~is_awaited & ~in_parts
    during_call = is_launched & (is_awaited | in_parts)
    previous_end = np.where(works.previous == NONE, LONG_AGO, np.append(works.end, 0)[works.previous])
    # A blocking copy is staged by the host once the stream is free (CUDA Runtime API, synchronisation behaviour).
    staging_ns = np.maximum(works.start - np.maximum(call_start, previous_end), 0)
    # A delay that nothing explains comes after the launch, where the stream was free when its call returned.
    is_late = after_call & (unexplained_ns > 0) & (call_end >= previous_end)
    launch_ns = np.where(is_late, np.maximum(works.start - call_end, 0), delays.launch[works.kind])
    draft.join(call_nodes.call[works.call[after_call]], nodes[after_call], launch_ns[after_call], EdgeKind.LAUNCH)
    draft.join(
        call_nodes.segment[works.call[during_call]], nodes[during_call], staging_ns[during_call], EdgeKind.LAUNCH
    )
    # Work without a launch, or that came late for another reason, keeps its measured distance.
    keeps_gap = (works.call == NONE) | ((unexplained_ns > 0) & ~is_late)
    gap_ns = np.where(keeps_gap, works.start - previous_end, np.where(is_awaited, staging_ns, delays.queue_of))
    follows = works.previous != NONE
    draft.join(nodes[works.previous[follows]], nodes[follows], gap_ns[follows], EdgeKind.STREAM)
    alone = np.flatnonzero(keeps_gap & ~follows)
    draft.join(np.full(len(alone), root), nodes[alone], works.start[alone] - timeline.origin_ns, EdgeKind.STREAM)
    beside = inferred.beside
    room_ns = works.start[beside.target] - works.end[beside.source]
    draft.join(nodes[beside.source], nodes[beside.target], room_ns, EdgeKind.CONTENTION)
    for edges, kind in ((events, EdgeKind.EVENT), (inferred.ended, EdgeKind.INFERRED)):
        draft.join(nodes[edges.source], nodes[edges.target], _event_ns(timeline, edges), kind)
    return nodes


def _event_ns(timeline: _Timeline, edges: WorkEdges) -> float:
    """How long an event takes from one stream to another: as measured where work waited for it, else a queue gap."""
    delay = timeline.works.start[edges.target] - timeline.works.end[edges.source]
    prompt = delay[(delay >= 0) & (delay < PROMPT_IN_STARTS * timeline.device.launch_to_start.expected)]
    return float(np.median(prompt)) if len(prompt) else float(timeline.delays.queue[WorkKind.KERNEL])


# Order.


def _ordered(draft: _Draft, timeline: _Timeline, call_nodes: _CallNodes) -> Graph:
    """Sort the nodes topologically, and drop the edges that contradict that order."""
    nodes = _Nodes(*(np.concatenate(columns) for columns in zip(*map(astuple, draft.nodes), strict=True)))
    edges = _Edges(*(np.concatenate(columns) for columns in zip(*map(astuple, draft.edges), strict=True)))
    before = np.full(draft.count, NONE, np.int64)
    before[call_nodes.segment] = timeline.calls.row
    duration = (nodes.end - nodes.start).astype(np.float64)
    duration[call_nodes.call] = timeline.waits.own_ns
    order = np.lexsort((nodes.position, _order_keys(nodes, edges)))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    sources, targets = rank[edges.source], rank[edges.target]
    forward = sources < targets
    by_target = np.flatnonzero(forward)[np.argsort(targets[forward], kind="stable")]
    return Graph(
        kind=nodes.kind[order].astype(np.int8),
        lane=nodes.lane[order],
        row=nodes.row[order],
        before=before[order],
        measured_start=nodes.start[order],
        measured_end=nodes.end[order],
        duration=duration[order],
        edge_from=sources[by_target],
        edge_to=targets[by_target],
        lag=edges.lag[by_target],
        edge_kind=edges.kind[by_target],
        origin_ns=timeline.origin_ns,
        dropped_edges=int((~forward).sum()),
    )


def _order_keys(nodes: _Nodes, edges: _Edges) -> Int64s:
    """When each node takes part in the order: what a thread does at its start, work right after its launch.

    Lanes keep their own order, and whatever waits comes after what it waits for; both are enforced in alternation until
    nothing moves, which seldom takes more than a few rounds.
    """
    is_work = nodes.kind == NodeKind.WORK
    # Moments are four apart, so that what follows from a moment finds a place before the next one.
    key = np.where(is_work, np.iinfo(np.int64).min, 4 * nodes.start)
    across = np.isin(edges.kind, ORDERING_EDGES)
    sources, targets = edges.source[across], edges.target[across]
    by_position = np.lexsort((nodes.position, is_work))  # threads, then streams; numbers of lanes may be the same
    changes = (np.diff(nodes.lane[by_position]) != 0) | (np.diff(is_work[by_position]) != 0)
    bounds = [0, *(np.flatnonzero(changes) + 1).tolist(), len(by_position)]
    lanes = [by_position[first:beyond] for first, beyond in pairwise(bounds)]
    for _ in range(ORDER_ROUNDS):
        before = key.copy()
        for members in lanes:
            key[members] = np.maximum.accumulate(key[members])
        np.maximum.at(key, targets, key[sources] + 1)
        if np.array_equal(before, key):
            break
    return key
