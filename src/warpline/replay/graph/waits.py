"""Which calls waited for which work, and which work waited for work of another stream.

Recorded synchronisation is used where the profile has it; otherwise the names of the calls say what they may wait
for, and the times whether they can have done so.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from warpline import api_names
from warpline.replay.costs.find import Costs
from warpline.replay.graph.streams import Works
from warpline.replay.graph.threads import TopCalls
from warpline.trace.arrays import LONG_AGO, NONE, Floats, Int64s, greatest_of, grouped
from warpline.trace.launches import waits_for_room
from warpline.trace.table import Names, filled
from warpline.trace.trace import Trace

CLOCKS_IN_STARTS = 12.0
"""How far the clocks of host and device may disagree, in times of what a launch takes to the device: a call cannot have
waited for work that ended later."""
STAGED_BYTES = 64 << 10
"""Copies from pageable memory up to this size return once staged (CUDA Runtime API, synchronisation behaviour)."""
LONG_COPY_CALL_IN_OPS = 3.0
"""A copy's call that takes as long as so many ops, and ends after the copy, waited for it."""


class WaitKind(IntEnum):
    """What a call waits for."""

    NOTHING = 0
    DEVICE = 1
    """All streams."""
    STREAM = 2
    EVENT = 3
    OWN = 4
    """The copy that the call itself started."""
    ROOM = 5
    """A place in the launch queue."""


NAMED_WAITS = (
    (api_names.DEVICE_WAIT, WaitKind.DEVICE),
    (api_names.FREE, WaitKind.DEVICE),
    (api_names.STREAM_WAIT, WaitKind.STREAM),
    (api_names.EVENT_WAIT, WaitKind.EVENT),
)
"""Names of calls that wait; of several that match, the last counts."""


class CallWaits(Struct, frozen=True):
    """Calls that wait, and what for."""

    how: Int64s
    """For each top call, a `WaitKind`."""
    own_ns: Floats
    """Cost of each top call apart from waiting."""
    call: Int64s
    """Edges: position of the waiting call …"""
    work: Int64s
    """… and of the work it waits for."""
    release_ns: Floats
    """… and the time from the end of the work to the return of the call."""


def call_waits(trace: Trace, calls: TopCalls, works: Works, costs: Costs) -> CallWaits:
    """Every edge from work to the call that it holds up."""
    names = trace.api.name[calls.row]
    how = _kinds(names)
    op_ns = costs.host.launched_op.expected
    copying, copy = _own_copies(trace, calls, works, LONG_COPY_CALL_IN_OPS * op_ns)
    how[copying] = WaitKind.OWN
    lookup = _Launched(calls, works, CLOCKS_IN_STARTS * costs.device.launch_to_start.expected)
    recorded = _recorded_targets(trace, lookup)
    pairs: list[tuple[int, int]] = list(zip(copying.tolist(), copy.tolist(), strict=True))
    how[np.isin(calls.row, waits_for_room(trace.gpu, trace.api)) & (how == WaitKind.NOTHING)] = WaitKind.ROOM
    for position in np.flatnonzero((how != WaitKind.NOTHING) & (how != WaitKind.OWN)).tolist():
        targets = recorded.get(position)
        if targets is None:
            targets = lookup.targets(position, int(how[position]))
        pairs += [(position, target) for target in targets]
    call = np.array([call for call, _ in pairs], np.int64)
    work = np.array([work for _, work in pairs], np.int64)
    return _costs_of(
        CallWaits(how, _lengths(calls), call, work, np.zeros(len(call))), lookup, names, costs.host.call.high
    )


def _lengths(calls: TopCalls) -> Floats:
    return (calls.end - calls.start).astype(np.float64)


def _kinds(names: Names) -> Int64s:
    how = np.full(len(names), WaitKind.NOTHING, np.int64)
    for pattern, kind in NAMED_WAITS:
        how[names.like(pattern)] = kind
    return how


def _own_copies(trace: Trace, calls: TopCalls, works: Works, long_call_ns: float) -> tuple[Int64s, Int64s]:
    """Calls that return only when their copy is done, and its last piece of work."""
    gpu, names = trace.gpu, trace.api.name[calls.row]
    pieces = np.flatnonzero(gpu.kind.equal("memcpy")[works.row] & (works.call != NONE))
    call, copies = works.call[pieces], gpu[works.row[pieces]]
    is_copy, is_async = names.like(api_names.COPY)[call], names.like(api_names.ASYNC_COPY)[call]
    pageable = copies.source_memory.equal("Pageable") | copies.target_memory.equal("Pageable")
    staged = copies.copy_kind.equal("DtoH") | (filled(copies.bytes, 0) > STAGED_BYTES)
    # The last piece of a staged copy may still be on its way when the call returns, but the copy began within it.
    within = calls.end[call] > works.start[pieces]
    long_call = (calls.end[call] >= works.end[pieces]) & (calls.end[call] - calls.start[call] > long_call_ns)
    blocks = is_copy & within & (~is_async | (pageable & staged) | long_call)
    last = dict(zip(call[blocks].tolist(), pieces[blocks].tolist(), strict=True))
    return np.array(list(last), np.int64), np.array(list(last.values()), np.int64)


class _Lane(Struct, frozen=True):
    """The work of one stream, in order."""

    first: int
    """Position of its first work in `Works`."""
    launched: Int64s
    """When each, and all before it, had been launched."""
    ends: Int64s


class _Launched:
    """What was launched before a moment, by stream and by thread."""

    def __init__(self, calls: TopCalls, works: Works, slack_ns: float) -> None:
        self.calls, self.works, self.slack_ns = calls, works, slack_ns
        launched = np.append(calls.start, 0)[works.call]
        launched = np.where(works.call == NONE, works.start, launched)
        self.lanes: list[_Lane] = []
        for lane in range(len(works.streams)):
            begin, beyond = np.searchsorted(works.lane, [lane, lane + 1])
            reached = np.maximum.accumulate(launched[begin:beyond])
            self.lanes.append(_Lane(int(begin), reached, works.end[begin:beyond]))
        # One sorted array of keys for all streams, so that one search finds the last work of each: a key is the stream,
        # times the number of moments, plus the place of the launch among all moments of launches.
        self._reached = np.concatenate([works.end[:0], *(lane.launched for lane in self.lanes)])
        self._by_end = np.argsort(works.end, kind="stable")
        self._ends = works.end[self._by_end]
        self._moments = np.unique(self._reached)
        self._first = np.array([lane.first for lane in self.lanes], np.int64)
        self._lane_keys = np.arange(len(self.lanes)) * (len(self._moments) + 1)
        self._keys = self._lane_keys[works.lane] + np.searchsorted(self._moments, self._reached)
        linked = np.flatnonzero(works.call != NONE)
        self._by_thread: dict[int, tuple[Int64s, Int64s]] = {}
        for thread, rows in grouped(linked, calls.thread[works.call[linked]]):
            own = rows[np.argsort(calls.start[works.call[rows]], kind="stable")]
            self._by_thread[thread] = (calls.start[works.call[own]], own)

    def last_before(self, moment: int) -> Int64s:
        """The last work on each stream that was launched before the moment; NONE where nothing was."""
        last = np.searchsorted(self._keys, self._lane_keys + np.searchsorted(self._moments, moment)) - 1
        return np.where(last >= self._first, last, NONE)

    def last_on(self, lane: int, moment: int) -> int:
        """The same of one stream."""
        last = int(np.searchsorted(self.lanes[lane].launched, moment)) - 1
        return self.lanes[lane].first + last if last >= 0 else NONE

    def last_of_thread(self, thread: int, moment: int) -> int:
        """The last work that the thread had launched before the moment."""
        if thread not in self._by_thread:
            return NONE
        launched, rows = self._by_thread[thread]
        position = int(np.searchsorted(launched, moment)) - 1
        return int(rows[position]) if position >= 0 else NONE

    def targets(self, position: int, how: int) -> list[int]:
        """The work that a call waits for, by the times."""
        start, end = int(self.calls.start[position]), int(self.calls.end[position])
        if how in (WaitKind.EVENT, WaitKind.ROOM):
            return self._ended_last(start, end)
        latest_end = end + self.slack_ns
        possible = self.last_before(start)
        possible = possible[possible != NONE]
        possible = possible[self.works.end[possible] <= latest_end]
        if how == WaitKind.DEVICE or not len(possible):
            return possible.tolist()
        latest = int(possible[np.argmax(self.works.end[possible])])
        if self.works.end[latest] > start:
            return [latest]
        own = self.last_of_thread(int(self.calls.thread[position]), start)
        return [own] if own != NONE and self.works.end[own] <= latest_end else []

    def _ended_last(self, start: int, end: int) -> list[int]:
        """The work, launched before the call, whose end came last before the call returned."""
        first, beyond = np.searchsorted(self._ends, [start, end], side="right")
        ended = self._by_end[first:beyond]
        ended = ended[self._reached[ended] < start]
        return [int(ended[np.argmax(self.works.end[ended])])] if len(ended) else []


def _recorded_targets(trace: Trace, lookup: _Launched) -> dict[int, list[int]]:
    """Waits that the profile records with their stream or event."""
    calls, works, syncs = lookup.calls, lookup.works, trace.syncs
    by_event = syncs.kind.equal("event")
    rows = np.flatnonzero((by_event | syncs.kind.equal("stream")) & (syncs.api_id != NONE))
    if not len(rows):
        return {}
    lanes = {(device, stream): lane for lane, (_, device, _, stream) in enumerate(works.streams)}
    events = _event_records(trace)
    found: dict[int, list[int]] = {}
    for row in rows.tolist():
        position, device, stream = int(calls.top_of[syncs.api_id[row]]), int(syncs.device[row]), int(syncs.stream[row])
        moment = int(calls.start[position])
        if by_event[row]:
            record = _latest(events.get((device, int(syncs.event_id[row])), []), moment)
            if record is None:
                continue
            moment, stream = record
        lane = lanes.get((device, stream)) if NONE not in (device, stream) else None
        if lane is None:
            continue
        target = lookup.last_on(lane, moment)
        late = target != NONE and works.end[target] > calls.end[position] + lookup.slack_ns
        found[position] = [] if target == NONE or late else [target]
    return found


def _event_records(trace: Trace) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Of each event (device and id), when it was recorded and into which stream, by time."""
    events = trace.events[trace.events.api_id != NONE]
    moments = trace.api.start_ns[events.api_id]
    found: dict[tuple[int, int], list[tuple[int, int]]] = {}
    columns = (column.tolist() for column in (events.device, events.event_id, moments, events.stream))
    for device, event, moment, stream in zip(*columns, strict=True):
        found.setdefault((device, event), []).append((moment, stream))
    for records in found.values():
        records.sort()
    return found


def _latest(records: list[tuple[int, int]], moment: int) -> tuple[int, int] | None:
    before = [record for record in records if record[0] <= moment]
    return before[-1] if before else None


def _costs_of(waits: CallWaits, lookup: _Launched, names: Names, call_ns: float) -> CallWaits:
    """The waits with the cost of each call and its release: from calls of that name that show them, else `call_ns`."""
    calls, works, how, call = lookup.calls, lookup.works, waits.how, waits.call
    length = waits.own_ns
    last_end = greatest_of(len(how), call, works.end[waits.work])
    waited = (how != WaitKind.NOTHING) & (last_end > calls.start)
    own, release = length.copy(), waits.release_ns.copy()
    waiting = how != WaitKind.NOTHING
    for code, kind in set(zip(names.codes[waiting].tolist(), how[waiting].tolist(), strict=True)):
        alike = (how == kind) & (names.codes == code)
        idle = alike & ~waited & (last_end > LONG_AGO)
        usual = float(np.median(length[idle])) if idle.any() else call_ns
        blocked = np.flatnonzero(alike & waited)
        after = (calls.end - last_end)[blocked]
        own[blocked] = np.minimum(usual, length[blocked])
        release[alike[call]] = float(np.median(after)) if len(after) else call_ns
    after_work = calls.end[call] - works.end[waits.work]
    # A call that found its work done returned so long after it at most.
    found_done = ~waited[call]
    release[found_done] = np.minimum(release, after_work)[found_done]
    # What the host does after its own copy (it moves the data out of the staging buffer) belongs to that copy's size,
    # and what a free does after its wait to the memory that it frees.
    itself = (how[call] == WaitKind.OWN) | (names.like(api_names.FREE)[call] & waited[call])
    release[itself] = after_work[itself]
    return replace(waits, own_ns=own, release_ns=release)
