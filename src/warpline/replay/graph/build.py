"""Builds the dependency graph of a trace.

Threads give segments, calls and joins (`threads`), streams give work (`streams`), and the edges between them come
from launches, synchronising calls (`waits`), events (`events`) and hand-overs between threads. Nodes are then put in
an order in which every cause comes before its effect: calls by when they began, work by when it was launched,
returns by when they came.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from msgspec import Struct, field

from warpline.errors import CannotAnswer
from warpline.replay.costs.device import DeviceCosts
from warpline.replay.costs.find import Costs
from warpline.replay.graph.events import WorkEdges, event_edges, inferred_edges
from warpline.replay.graph.model import (
    CALL,
    CONTENTION,
    EVENT,
    HANDOFF,
    INFERRED,
    JOIN,
    LAUNCH,
    RELEASE,
    SEGMENT,
    STREAM,
    SYNC,
    THREAD,
    WORK,
    Graph,
    Int8s,
)
from warpline.replay.graph.streams import KINDS, Delays, Works, measured_delays, stream_works
from warpline.replay.graph.threads import Handoffs, TopCalls, handoffs, top_calls
from warpline.replay.graph.waits import NO_WAIT, OWN, Waits, call_waits
from warpline.trace.arrays import NONE, Floats, Int64s
from warpline.trace.trace import Trace

PROMPT_IN_STARTS = 12.0
"""An event passes between streams in less than this, in times of what a launch takes to the device."""

_JOIN_FIRST, _CALL_NEXT, _CUT_LAST = range(3)
ORDER_ROUNDS = 64
"""Maximum number of order corrections; edges that still contradict the order are dropped and counted."""


class _Nodes(Struct):
    """Some nodes of one sort."""

    kind: Int64s
    lane: Int64s
    start: Int64s
    end: Int64s
    row: Int64s
    before: Int64s
    turn: Int64s
    duration: Floats


class _Draft(Struct):
    """Nodes in order of creation, and edges between them."""

    nodes: list[_Nodes] = field(default_factory=list)
    edges: list[tuple[Int64s, Int64s, Floats, int]] = field(default_factory=list)
    count: int = 0

    def add(
        self,
        kind: int | Int64s,
        lane: Int64s,
        start: Int64s,
        end: Int64s,
        *,
        row: Int64s | None = None,
        before: Int64s | None = None,
        duration: Floats | None = None,
        turn: Int64s | None = None,
    ) -> Int64s:
        """Add nodes and return their numbers."""
        size = len(lane)
        none = np.full(size, NONE, np.int64)
        self.nodes.append(
            _Nodes(
                np.full(size, kind, np.int64) if isinstance(kind, int) else kind,
                lane,
                start,
                end,
                none if row is None else row,
                none if before is None else before,
                none if turn is None else turn,
                (end - start).astype(np.float64) if duration is None else duration,
            )
        )
        self.count += size
        return np.arange(self.count - size, self.count)

    def join(self, sources: Int64s, targets: Int64s, lag: Floats | float, kind: int) -> None:
        """Add edges."""
        lags = np.full(len(sources), lag) if isinstance(lag, float | int) else lag
        self.edges.append((sources, targets, lags.astype(np.float64), kind))


class _Places(Struct, frozen=True):
    """Where the calls' nodes are in the draft."""

    segment: Int64s
    call: Int64s
    returned: Int64s
    root: int
    origin: int


def build_graph(trace: Trace, costs: Costs) -> Graph:
    """The graph of the whole trace; steps are found in it afterwards."""
    calls = top_calls(trace.stored("api"))
    works = stream_works(trace, calls, costs.device)
    if not len(works.start):  # also if pages of unified memory are all that moved
        raise CannotAnswer("no-gpu-work", "the trace has no GPU operations to replay", "record with CUDA activities")
    waits = call_waits(trace, calls, works, costs)
    delays = measured_delays(works, calls, waits.how == OWN, costs.device)
    handed = handoffs(trace, calls, costs.host.launched_op.expected)
    begun = [calls.start, works.start, trace.all_steps.start_ns, trace.ops.start_ns]
    origin = int(np.concatenate(begun).min())
    draft = _Draft()
    root = draft.add(JOIN, np.array([NONE]), np.array([origin]), np.array([origin]))
    segment_of, call_of, return_of = _threads(draft, trace, calls, waits, handed, origin)
    places = _Places(segment_of, call_of, return_of, int(root[0]), origin)
    unexplained = _works(draft, trace, works, calls, waits, delays, places, costs.device)
    return _ordered(draft, origin, unexplained)


def _threads(
    draft: _Draft, trace: Trace, calls: TopCalls, waits: Waits, handed: Handoffs, origin: int
) -> tuple[Int64s, Int64s, Int64s]:
    """Segments, calls, returns and joins of all threads; for each call, its segment, its node and its return."""
    count, episodes = len(calls.row), len(handed.begin)
    ends = _last_moments(trace, calls)
    stop_thread = np.concatenate([calls.thread, handed.caller, handed.worker, handed.worker, ends[0]])
    stop_start = np.concatenate([calls.start, handed.end, handed.begin, handed.end, ends[1]])
    stop_end = np.concatenate([calls.end, handed.end, handed.begin, handed.end, ends[1]])
    segment_end = np.concatenate([calls.start, handed.begin, handed.idle_since, handed.end, ends[1]])
    rank = np.repeat(
        [_CALL_NEXT, _JOIN_FIRST, _JOIN_FIRST, _CUT_LAST, _CUT_LAST],
        [count, episodes, episodes, episodes, len(ends[0])],
    )
    order = np.lexsort((rank, stop_start, stop_thread))
    thread, start, end = stop_thread[order], stop_start[order], stop_end[order]
    first = np.concatenate([[True], np.diff(thread) != 0]) if len(thread) else np.empty(0, bool)
    segment_start = np.where(first, origin, np.concatenate([[origin], end[:-1]]))
    segment_stop = np.clip(segment_end[order], segment_start, np.maximum(start, segment_start))
    row = np.concatenate([calls.row, np.full(len(order) - count, NONE)])[order]
    own = np.concatenate([waits.own_ns, np.zeros(len(order) - count)])[order]
    is_call = order < count
    turns = np.arange(len(order))
    segments = draft.add(SEGMENT, thread, segment_start, segment_stop, before=row, turn=3 * turns)
    bodies = draft.add(np.where(is_call, CALL, JOIN), thread, start, end, row=row, duration=own, turn=3 * turns + 1)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    waiting = np.flatnonzero(waits.how != NO_WAIT)
    held = place[waiting]
    returns = draft.add(RELEASE, thread[held], end[held], end[held], row=row[held], turn=3 * held + 2)
    last = bodies.copy()
    last[held] = returns
    draft.join(segments, bodies, 0.0, THREAD)
    draft.join(bodies[held], returns, 0.0, THREAD)
    after = np.flatnonzero(~first)
    draft.join(last[after - 1], segments[after], 0.0, THREAD)
    _hand_over(draft, handed, segments, bodies, place, count, episodes)
    return segments[place[:count]], bodies[place[:count]], last[place[:count]]


def _hand_over(
    draft: _Draft, handed: Handoffs, segments: Int64s, bodies: Int64s, place: Int64s, count: int, episodes: int
) -> None:
    """The worker begins when the caller's segment ends; the caller goes on when the worker's episode ends."""
    joins = place[count : count + episodes]
    begins = place[count + episodes : count + 2 * episodes]
    cuts = place[count + 2 * episodes : count + 3 * episodes]
    draft.join(segments[joins], bodies[begins], 0.0, HANDOFF)
    draft.join(bodies[cuts][handed.awaited], bodies[joins][handed.awaited], 0.0, HANDOFF)


def _last_moments(trace: Trace, calls: TopCalls) -> tuple[Int64s, Int64s]:
    """The end of the last op or range of each thread that makes calls, where it lies after its last call."""
    threads = np.unique(calls.thread)
    tables = (trace.ops, trace.ranges)
    found = np.full(len(threads), -1, np.int64)
    for table in tables:
        rows, ends = table.thread, table.end_ns
        spot = np.searchsorted(threads, rows)
        fits = (spot < len(threads)) & (np.append(threads, -2)[np.minimum(spot, len(threads))] == rows)
        np.maximum.at(found, spot[fits], ends[fits])
    last_call = np.full(len(threads), -1, np.int64)
    np.maximum.at(last_call, np.searchsorted(threads, calls.thread), calls.end)
    later = found > last_call
    return threads[later], found[later]


def _works(
    draft: _Draft,
    trace: Trace,
    works: Works,
    calls: TopCalls,
    waits: Waits,
    delays: Delays,
    places: _Places,
    device: DeviceCosts,
) -> int:
    """GPU operations with their launches, streams, events and waits; returns the unexplained delay."""
    nodes = draft.add(WORK, works.lane, works.start, works.end, row=works.row, turn=np.arange(len(works.row)))
    known = event_edges(trace, calls, works, device)
    guessed = inferred_edges(works, calls, delays, known, device)
    unexplained = guessed.unexplained_ns
    own = np.append(waits.how, NO_WAIT)[works.call] == OWN
    linked = (works.call != NONE) & ~works.in_launch
    # A CUDA graph with memsets in it is sent to the device in parts: the first may run long before the call returns.
    in_parts = linked & (works.kind == KINDS.index("graph")) & (works.start < np.append(calls.end, 0)[works.call])
    plain, blocking = np.flatnonzero(linked & ~own & ~in_parts), np.flatnonzero(linked & (own | in_parts))
    before_end = np.where(works.previous == NONE, np.iinfo(np.int64).min // 2, np.append(works.end, 0)[works.previous])
    # A blocking copy is staged by the host once the stream is free (CUDA Runtime API, synchronisation behaviour).
    free = np.maximum(np.append(calls.start, 0)[works.call], before_end)
    lead = np.maximum(works.start - free, 0).astype(np.float64)
    # A delay that nothing explains comes after the launch, where the stream was free when its call returned.
    returned = np.append(calls.end, 0)[works.call]
    late = linked & ~own & ~in_parts & (unexplained > 0) & (returned >= before_end)
    launch = np.where(late, np.maximum(works.start - returned, 0), delays.launch[works.kind])
    draft.join(places.call[works.call[plain]], nodes[plain], launch[plain], LAUNCH)
    draft.join(places.segment[works.call[blocking]], nodes[blocking], lead[blocking], LAUNCH)
    follows = np.flatnonzero(works.previous != NONE)
    orphan = works.call == NONE
    measured_gap = (works.start - before_end).astype(np.float64)
    fixed = orphan | ((unexplained > 0) & ~late)
    gap = np.where(fixed, measured_gap, np.where(own, lead, delays.queue_of))
    draft.join(nodes[works.previous[follows]], nodes[follows], gap[follows], STREAM)
    alone = np.flatnonzero(fixed & (works.previous == NONE))
    since_origin = (works.start[alone] - places.origin).astype(np.float64)
    draft.join(np.full(len(alone), places.root), nodes[alone], since_origin, STREAM)
    beside = guessed.beside
    room = (works.start[beside.target] - works.end[beside.source]).astype(np.float64)
    draft.join(nodes[beside.source], nodes[beside.target], room, CONTENTION)
    for edges, kind in ((known, EVENT), (guessed.ended, INFERRED)):
        draft.join(nodes[edges.source], nodes[edges.target], _passing(works, edges, delays, device), kind)
    draft.join(nodes[waits.work], places.returned[waits.call], waits.release_ns, SYNC)
    return int(unexplained.sum())


def _passing(works: Works, edges: WorkEdges, delays: Delays, device: DeviceCosts) -> Floats:
    """How long an event takes from one stream to another: as measured where it held work up, else a queue gap."""
    delay = (works.start[edges.target] - works.end[edges.source]).astype(np.float64)
    prompt = delay[(delay >= 0) & (delay < PROMPT_IN_STARTS * device.launch_to_start.expected)]
    usual = float(np.median(prompt)) if len(prompt) else float(delays.queue[0])
    return np.full(len(delay), usual)


def _ordered(draft: _Draft, origin: int, unexplained: int) -> Graph:
    """Sort the nodes topologically, and drop the edges that contradict that order."""
    kind, lane, row, before, start, end, turn = (
        np.concatenate([getattr(part, name) for part in draft.nodes])
        for name in ("kind", "lane", "row", "before", "start", "end", "turn")
    )
    duration: Floats = np.concatenate([part.duration for part in draft.nodes])
    sources = np.concatenate([edge[0] for edge in draft.edges])
    targets = np.concatenate([edge[1] for edge in draft.edges])
    lag = np.concatenate([edge[2] for edge in draft.edges])
    edge_kind = np.concatenate([np.full(len(edge[0]), edge[3], np.int8) for edge in draft.edges])
    key = _keys(kind, lane, start, turn, sources, targets, edge_kind)
    order = np.lexsort((turn, key))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    sources, targets = rank[sources], rank[targets]
    forward = sources < targets
    by_target = np.flatnonzero(forward)[np.argsort(targets[forward], kind="stable")]
    return Graph(
        kind[order].astype(np.int8),
        lane[order],
        row[order],
        before[order],
        start[order],
        end[order],
        duration[order],
        sources[by_target],
        targets[by_target],
        lag[by_target],
        edge_kind[by_target],
        origin,
        dropped_edges=int((~forward).sum()),
        unexplained_ns=unexplained,
    )


def _keys(
    kind: Int64s, lane: Int64s, start: Int64s, turn: Int64s, sources: Int64s, targets: Int64s, edge_kind: Int8s
) -> Int64s:
    """When each node takes part in the order: what a thread does at its begin, work right after its launch.

    Lanes keep their own order, and whatever waits comes after what it waits for; both are enforced in turn until
    nothing moves, which seldom takes more than a few rounds.
    """
    key = np.where(kind == WORK, np.iinfo(np.int64).min, 4 * start)
    across = np.isin(edge_kind, [LAUNCH, SYNC, EVENT, INFERRED, CONTENTION, HANDOFF])
    sources, targets = sources[across], targets[across]
    by_turn = np.lexsort((turn, kind == WORK))
    change = (np.diff(lane[by_turn]) != 0) | (np.diff((kind == WORK)[by_turn]) != 0)
    edges = [0, *(np.flatnonzero(change) + 1).tolist(), len(by_turn)]
    lanes = [by_turn[begin:end] for begin, end in pairwise(edges)]
    for _ in range(ORDER_ROUNDS):
        before = key.copy()
        for members in lanes:
            key[members] = np.maximum.accumulate(key[members])
        np.maximum.at(key, targets, key[sources] + 1)
        if np.array_equal(before, key):
            break
    return key
