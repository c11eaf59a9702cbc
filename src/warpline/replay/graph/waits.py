"""Which calls waited for which work, and which work waited for work of another stream.

Recorded synchronisation is used where the profile has it; otherwise the names of the calls say what they may wait
for, and the times whether they can have done so.
"""

from __future__ import annotations

import re

import numpy as np
import polars as pl
from msgspec import Struct

from warpline import api_names
from warpline.replay.costs.find import Costs
from warpline.replay.graph.streams import Works
from warpline.replay.graph.threads import TopCalls
from warpline.trace.arrays import NONE, Bools, Floats, Int64s, Texts, integers
from warpline.trace.names import rows_like
from warpline.trace.trace import Trace

CLOCKS_IN_STARTS = 12.0
"""How far the clocks of host and device may disagree, in times of what a launch takes to the device: a call cannot have
waited for work that ended later."""
STAGED_BYTES = 64 << 10
"""Copies from pageable memory up to this size return once staged (CUDA Runtime API, synchronisation behaviour)."""
QUEUE_FULL_PENDING = 500
QUEUE_FULL_IN_OPS = 5.0
"""A launch that takes as long as so many ops while so much work is pending waited for room in the launch queue (1,024
entries in current drivers)."""
LONG_COPY_CALL_IN_OPS = 3.0
"""A copy's call that takes as long as so many ops, and ends after the copy, waited for it."""
NO_WAIT, DEVICE, STREAM, EVENT, OWN, ROOM = range(6)


class Waits(Struct, frozen=True):
    """Calls that wait, and what for."""

    how: Int64s
    """For each top call, NO_WAIT or the kind of wait."""
    own_ns: Floats
    """Cost of each top call apart from waiting."""
    call: Int64s
    """Edges: position of the waiting call …"""
    work: Int64s
    """… and of the work it waits for."""
    release_ns: Floats
    """… and the time from the end of the work to the return of the call."""


def call_waits(trace: Trace, calls: TopCalls, works: Works, costs: Costs) -> Waits:
    """Every edge from work to the call that it holds up."""
    names = trace.api.name.texts[calls.row]
    how = _kinds(names)
    op_ns = costs.host.launched_op.expected
    own_work = _own_copies(trace, calls, works, names, LONG_COPY_CALL_IN_OPS * op_ns)
    how[own_work[0]] = OWN
    lookup = _Lookup(calls, works, CLOCKS_IN_STARTS * costs.device.launch_to_start.expected)
    recorded = _recorded_targets(trace, calls, works, lookup)
    pairs: list[tuple[int, int]] = list(zip(own_work[0].tolist(), own_work[1].tolist(), strict=True))
    _mark_full_queue(calls, works, how, lookup, QUEUE_FULL_IN_OPS * op_ns)
    for position in np.flatnonzero((how != NO_WAIT) & (how != OWN)).tolist():
        targets = recorded.get(position)
        if targets is None:
            targets = lookup.targets(position, int(how[position]))
        pairs += [(position, target) for target in targets]
    call = np.array([pair[0] for pair in pairs], np.int64)
    work = np.array([pair[1] for pair in pairs], np.int64)
    return _with_costs(calls, works, names, how, call, work, costs.host.call.high)


def _kinds(names: Texts) -> Int64s:
    how = np.zeros(len(names), np.int64)
    for name in set(names.tolist()):
        kind = NO_WAIT
        for pattern, meaning in (
            (api_names.DEVICE_WAIT, DEVICE),
            (api_names.FREE, DEVICE),
            (api_names.STREAM_WAIT, STREAM),
            (api_names.EVENT_WAIT, EVENT),
        ):
            if re.search(pattern, name):
                kind = meaning
        if kind != NO_WAIT:
            how[names == name] = kind
    return how


def _matching(names: Texts, pattern: str) -> Bools:
    known = {name: re.search(pattern, name) is not None for name in set(names.tolist())}
    return np.array([known[name] for name in names.tolist()], bool)


def _own_copies(
    trace: Trace, calls: TopCalls, works: Works, names: Texts, long_call_ns: float
) -> tuple[Int64s, Int64s]:
    """Copies whose call returns only when the copy is done, with their last piece of work."""
    gpu = trace.stored("gpu")
    rows = np.flatnonzero(rows_like(gpu, "^memcpy$", "kind")[works.row] & (works.call != NONE))
    position, copies = works.call[rows], works.row[rows]
    name_blocks, is_copy = _matching(names, api_names.BLOCKING_COPY), _matching(names, api_names.COPY)
    source, target = (rows_like(gpu, "^Pageable$", f"{end}_memory")[copies] for end in ("source", "target"))
    to_host = rows_like(gpu, "^DtoH$", "copy_kind")[copies]
    large = integers(gpu["bytes"], 0)[copies] > STAGED_BYTES
    # The last piece of a staged copy may still be on its way when the call returns, but the copy began within it.
    within = calls.end[position] > works.start[rows]
    long_call = calls.end[position] >= works.end[rows]
    long_call &= calls.end[position] - calls.start[position] > long_call_ns
    blocks = is_copy[position] & within & (name_blocks[position] | ((source | target) & (to_host | large)) | long_call)
    position, rows = position[blocks], rows[blocks]
    last = {int(call): int(row) for call, row in zip(position, rows, strict=True)}
    return np.array(list(last), np.int64), np.array(list(last.values()), np.int64)


class _Lookup:
    """What was launched before a moment, by stream and by thread."""

    def __init__(self, calls: TopCalls, works: Works, slack_ns: float) -> None:
        self.calls, self.works, self.slack_ns = calls, works, slack_ns
        launched = np.append(calls.start, 0)[works.call]
        launched = np.where(works.call == NONE, works.start, launched)
        self.lanes: list[tuple[int, Int64s, Int64s]] = []
        for lane in range(len(works.streams)):
            begin, beyond = np.searchsorted(works.lane, [lane, lane + 1])
            self.lanes.append((int(begin), np.maximum.accumulate(launched[begin:beyond]), works.end[begin:beyond]))
        # One sorted array for all streams, so that one search finds the last work of each: by stream, then by the place
        # of its launch among all launches.
        reached = np.concatenate([works.end[:0], *(times for _, times, _ in self.lanes)])
        self._moments = np.unique(reached)
        self._first = np.array([begin for begin, _, _ in self.lanes], np.int64)
        self._lane_keys = np.arange(len(self.lanes)) * (len(self._moments) + 1)
        self._keys = self._lane_keys[works.lane] + np.searchsorted(self._moments, reached)
        linked = np.flatnonzero(works.call != NONE)
        self._by_thread: dict[int, tuple[Int64s, Int64s]] = {}
        for thread in np.unique(calls.thread[works.call[linked]]) if len(linked) else []:
            mine = linked[calls.thread[works.call[linked]] == thread]
            mine = mine[np.argsort(calls.start[works.call[mine]], kind="stable")]
            self._by_thread[int(thread)] = (calls.start[works.call[mine]], mine)

    def last_before(self, moment: int) -> Int64s:
        """The last work on each stream that was launched before the moment; NONE where nothing was."""
        last = np.searchsorted(self._keys, self._lane_keys + np.searchsorted(self._moments, moment)) - 1
        return np.where(last >= self._first, last, NONE)

    def last_on(self, lane: int, moment: int) -> int:
        """The same of one stream."""
        begin, launched, _ = self.lanes[lane]
        last = int(np.searchsorted(launched, moment)) - 1
        return begin + last if last >= 0 else NONE

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
        if how in (EVENT, ROOM):
            return self._ended_last(start, end)
        latest_end = end + self.slack_ns
        possible = self.last_before(start)
        possible = possible[possible != NONE]
        possible = possible[self.works.end[possible] <= latest_end]
        if how == DEVICE or not len(possible):
            found: list[int] = possible.tolist()
            return found
        latest = int(possible[np.argmax(self.works.end[possible])])
        if self.works.end[latest] > start:
            return [latest]
        own = self.last_of_thread(int(self.calls.thread[position]), start)
        return [own] if own != NONE and self.works.end[own] <= latest_end else []

    def _ended_last(self, start: int, end: int) -> list[int]:
        """The work, launched before the call, whose end came last before the call returned."""
        best, best_end = NONE, start
        for begin, launched, ends in self.lanes:
            known = int(np.searchsorted(launched, start))
            reach = int(np.searchsorted(ends[:known], end + 1))
            if reach and ends[reach - 1] > best_end:
                best, best_end = begin + reach - 1, int(ends[reach - 1])
        return [best] if best != NONE else []

    def pending(self, position: int) -> int:
        """Work launched but not ended on the fullest stream when the call began."""
        start = int(self.calls.start[position])
        return max(
            (int(np.searchsorted(launched, start) - np.searchsorted(ends, start)) for _, launched, ends in self.lanes),
            default=0,
        )


def _mark_full_queue(calls: TopCalls, works: Works, how: Int64s, lookup: _Lookup, slow_ns: float) -> None:
    """Launches that waited for room in the queue."""
    launches = np.zeros(len(calls.row), bool)
    launches[works.call[works.call != NONE]] = True
    slow = np.flatnonzero(launches & (how == NO_WAIT) & (calls.end - calls.start > slow_ns))
    for position in slow.tolist():
        if lookup.pending(position) >= QUEUE_FULL_PENDING:
            how[position] = ROOM


def _recorded_targets(trace: Trace, calls: TopCalls, works: Works, lookup: _Lookup) -> dict[int, list[int]]:
    """Waits that the profile records with their stream or event."""
    if not len(trace.syncs):
        return {}
    kinds = pl.col("kind").cast(pl.String).is_in(["stream", "event"])
    syncs = trace.stored("syncs").filter(pl.col("api_id").is_not_null(), kinds)
    if not len(syncs):
        return {}
    lanes = {(device, stream): lane for lane, (_, device, _, stream) in enumerate(works.streams)}
    events = _event_records(trace, calls)
    found: dict[int, list[int]] = {}
    columns = (syncs["kind"].cast(pl.String), syncs["device"], syncs["stream"], syncs["event_id"], syncs["api_id"])
    for kind, device, stream, event, row in zip(*(column.to_list() for column in columns), strict=True):
        position = int(calls.top_of[row])
        moment = int(calls.start[position])
        if kind == "event":
            record = _latest(events.get((device, event), []), moment)
            if record is None:
                continue
            moment, stream = record  # noqa: PLW2901
        lane = lanes.get((device, stream))
        if lane is None:
            continue
        target = lookup.last_on(lane, moment)
        late = target != NONE and works.end[target] > calls.end[position] + lookup.slack_ns
        found[position] = [] if target == NONE or late else [target]
    return found


def _event_records(trace: Trace, calls: TopCalls) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Of each event, when it was recorded and into which stream."""
    events = trace.stored("events").filter(pl.col("api_id").is_not_null())
    starts = trace.api.start_ns
    found: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for device, event, stream, row in events.select("device", "event_id", "stream", "api_id").iter_rows():
        found.setdefault((device, event), []).append((int(starts[row]), stream))
    for records in found.values():
        records.sort()
    return found


def _latest(records: list[tuple[int, int]], moment: int) -> tuple[int, int] | None:
    before = [record for record in records if record[0] <= moment]
    return before[-1] if before else None


def _with_costs(
    calls: TopCalls, works: Works, names: Texts, how: Int64s, call: Int64s, work: Int64s, call_ns: float
) -> Waits:
    """Own cost and release time of each waiting call: from calls of that name that show them, else `call_ns`."""
    length = (calls.end - calls.start).astype(np.float64)
    last_end = np.full(len(calls.row), np.iinfo(np.int64).min // 2)
    np.maximum.at(last_end, call, works.end[work])
    waited = (how != NO_WAIT) & (last_end > calls.start)
    own, release = length.copy(), np.zeros(len(call))
    waiting = how != NO_WAIT
    for name, kind in set(zip(names[waiting].tolist(), how[waiting].tolist(), strict=True)):
        mine = (how == kind) & (names == name)
        idle = mine & ~waited & (last_end > np.iinfo(np.int64).min // 2)
        usual = float(np.median(length[idle])) if idle.any() else call_ns
        held = np.flatnonzero(mine & waited)
        after = (calls.end - last_end)[held]
        usual_release = float(np.median(after)) if len(after) else call_ns
        own[held] = np.minimum(usual, length[held])
        release[mine[call]] = usual_release
    # A call that found its work done returned so long after it at most.
    found_done = ~waited[call]
    release[found_done] = np.minimum(release, calls.end[call] - works.end[work])[found_done]
    # What the host does after its own copy (it moves the data out of the staging buffer) belongs to that copy's size.
    itself = how[call] == OWN
    release[itself] = (calls.end[call] - works.end[work])[itself]
    return Waits(how, own, call, work, release)
