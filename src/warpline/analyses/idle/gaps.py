"""Why a device is idle: every idle nanosecond gets one cause, from what the CPU does at that time.

An idle gap ends when an operation starts. Until that operation's launch was called, the device waited for the
launching thread, and the gap is split by what that thread was doing; while the call lasts, by what the call does
(loading code, a lock); after it, it is launch latency, or, if the operation had been waiting in its queue all along, a
dependency. A moment without any evidence is `unknown`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl
from msgspec import Struct

from warpline.analyses.breakdown import activity, idle_spans
from warpline.analyses.idle.host_activity import FIRST_LAUNCH_NS, OS_BLOCK, OS_READ, WAITING, Activity
from warpline.analyses.idle.host_time import HostTime
from warpline.intervals import Spans, complement, intersection, pieces, union
from warpline.trace.arrays import NONE, Int64s, integers, per_device
from warpline.trace.names import named
from warpline.trace.trace import Trace, Window

CAUSES = (
    "dispatch",
    "sync",
    "transfer",
    "input",
    "memory",
    "comm",
    "cold_start",
    "launch_latency",
    "dependency",
    "profiler",
    "unknown",
)
NAMED_WAITS, NAMED_WAIT = 3, 0.1
"""Calls of the operating system that are named for a cause, and the share of it that each must have."""
GAPS_AT_ONCE = 1 << 15
QUEUED_GAP_NS = 20_000
"""Between operations that were both launched in time, a device needs 1 to 5 µs, and up to this between
graphs or after a stream switch; longer, the operation was waiting for something else on the device."""

WITHIN_A_CALL = ("cold_start", "memory", "profiler", "transfer", "sync", WAITING)
"""What a launching call may do beside launching: load code, allocate, stage, or wait for a lock."""


class GapSpans(Struct, frozen=True):
    """The parts of all gaps in order of time, each with one cause; together they are exactly the gaps."""

    starts: Int64s
    ends: Int64s
    gaps: Int64s
    """Row of `Gaps.table` that each is a part of."""
    causes: npt.NDArray[np.integer]
    """Position in `CAUSES`."""

    @classmethod
    def joined(cls, parts: list[GapSpans]) -> GapSpans:
        """Those of some gaps, then those of later ones. Empties the list, so that no more than a column is in memory
        twice."""
        if len(parts) < 2:
            return parts.pop() if parts else cls(*(np.empty(0, np.int64) for _ in range(4)))
        columns = [[getattr(part, name) for part in parts] for name in ("causes", "gaps", "ends", "starts")]
        parts.clear()
        starts, ends, gaps, causes = (np.concatenate(columns.pop()) for _ in range(4))
        return cls(starts, ends, gaps, causes)

    def moved(self, by: int) -> GapSpans:
        """The same as parts of gaps that are so many rows further down, and in little memory."""
        return GapSpans(self.starts, self.ends, self.gaps + by, self.causes.astype(np.int8))

    def merged(self) -> GapSpans:
        """The same, with neighbours of one gap and one cause as one."""
        if not len(self.starts):
            return self
        new = (self.gaps[1:] != self.gaps[:-1]) | (self.causes[1:] != self.causes[:-1])
        first, last = np.append(True, new), np.append(new, True)
        return GapSpans(self.starts[first], self.ends[last], self.gaps[first], self.causes[first])

    def totals(self, count: int) -> Int64s:
        """Time of each cause (a row) in each of so many gaps (a column)."""
        found = np.zeros((len(CAUSES), count), np.int64)
        np.add.at(found, (self.causes, self.gaps), self.ends - self.starts)
        return found


class Gaps(Struct, frozen=True):
    """The idle gaps of one device, and the cause of each part."""

    device: int
    table: pl.DataFrame
    """One row per gap: start_ns, end_ns, the operation that ended it (`gpu_id`), and `<cause>_ns` for each cause."""
    spans: GapSpans
    """The parts behind those sums, in the order in which they happened."""
    os_waits: dict[str, dict[str, int]]
    """For the causes `input` and `unknown`, the calls of the operating system in which the thread that launches most
    spent a part of them, with the time in each, the longest first."""

    def totals(self) -> dict[str, int]:
        """Idle time by cause; sums to the idle time."""
        return {cause: int(self.table[f"{cause}_ns"].sum()) for cause in CAUSES}


def idle_gaps(
    trace: Trace, known: HostTime | None = None, within: Spans | None = None, *, busiest: bool = False
) -> list[Gaps]:
    """For every device with work, its idle stretches within the trace's window; `known` is its host's time.

    With `within`, for example steps, only what of each stretch lies in each of these spans, as a row of its own. With
    `busiest`, only the device that is idle for the shortest time.
    """
    host = known or HostTime(trace)
    gpu = trace.stored("gpu")[["device", "start_ns", "end_ns"]].with_row_index("gpu_id")
    columns = _Columns.of(trace)
    idle = [_idle(trace, columns, device, rows, within) for device, rows in per_device(gpu)]
    if busiest and idle:
        idle = [min(idle, key=lambda one: one.spans.total_ns())]
    explained, threads = _explained(host, idle), host.threads
    del host  # with all that it knows of the calls
    os_calls = _os_calls(trace, columns.busiest_thread)
    return [_device_gaps(trace, columns, threads, one, explained, os_calls) for one in idle]


def loading_spans(host: HostTime) -> dict[int, Spans]:
    """When each launching thread was loading data, by the same evidence: ranges, frames, and long gaps before an
    upload."""
    return host.with_label("input")


class _Columns(Struct, frozen=True):
    """What all devices look up."""

    call: Int64s
    """Of each GPU operation, with NONE at the end."""
    thread: Int64s
    """Of each API call, with NONE at the end."""
    start: Int64s
    end: Int64s
    """Of each API call; at least one, so that there is something under NONE, which nobody uses."""
    busiest_thread: int

    @classmethod
    def of(cls, trace: Trace) -> _Columns:
        """Of a trace."""
        thread, call = (
            np.append(integers(column), NONE)
            for column in (trace.stored("api")["thread"], trace.stored("gpu")["api_id"])
        )
        start, end = trace.api.start_ns, trace.api.end_ns
        if not len(start):
            start = end = np.zeros(1, np.int64)
        return cls(call, thread, start, end, _busiest_thread(trace))


class _Idle(Struct, frozen=True):
    """The idle gaps of a device, and per gap the operation and the call that ended it."""

    device: int
    spans: Spans
    whole: Spans
    """The gaps of which these are parts; the same without spans to look in."""
    ended_by: Int64s
    calls: Int64s
    called: Int64s
    launch: Int64s
    """The call's begin within the gap …"""
    done: Int64s
    """… and its end."""
    callers: Int64s

    def some(self, rows: slice) -> _Idle:
        """Some of the gaps."""
        spans, whole = (Spans(one.starts[rows], one.ends[rows]) for one in (self.spans, self.whole))
        columns = (self.ended_by, self.calls, self.called, self.launch, self.done, self.callers)
        return _Idle(self.device, spans, whole, *(column[rows] for column in columns))

    def before_launch(self) -> Int64s:
        """The gaps with a part before the launch, by caller and time."""
        rows = np.flatnonzero((self.callers != NONE) & (self.launch > self.spans.starts))
        return rows[np.argsort(self.callers[rows], kind="stable")]


def _idle(trace: Trace, columns: _Columns, device: int, rows: pl.DataFrame, within: Spans | None) -> _Idle:
    window = trace.window if within is None else Window(int(within.starts[0]), int(within.ends[-1]))
    idle = whole = idle_spans(rows, window)
    ended_by = _next_operation(rows, idle)
    if within is not None:
        gap, _, starts, ends = pieces(whole.starts, whole.ends, within)
        idle, whole, ended_by = Spans(starts, ends), Spans(whole.starts[gap], whole.ends[gap]), ended_by[gap]
    calls = columns.call[ended_by]
    called = np.where(calls != NONE, columns.start[calls], idle.ends)
    launch = np.clip(called, idle.starts, idle.ends)
    done = np.clip(np.where(calls != NONE, columns.end[calls], idle.ends), launch, idle.ends)
    # No operation starts at the end of selected steps; the busiest thread's activity gives the cause.
    callers = np.where(ended_by == NONE, columns.busiest_thread, columns.thread[calls])
    return _Idle(device, idle, whole, ended_by, calls, called, launch, done, callers)


def _explained(host: HostTime, idle: list[_Idle]) -> dict[int, dict[str, Spans]]:
    """By thread, what it did in the gaps of all devices before it launched what ended them."""
    parts = [(one, one.before_launch()) for one in idle]
    callers = np.concatenate([np.empty(0, np.int64), *(one.callers[rows] for one, rows in parts)])
    if host.explains_all:
        found = np.unique(callers).tolist()
        del parts, callers  # as many as there are gaps
        return {caller: host.explained(caller) for caller in found}
    starts = np.concatenate([callers[:0], *(one.spans.starts[rows] for one, rows in parts)])
    ends = np.concatenate([callers[:0], *(one.launch[rows] for one, rows in parts)])
    order = np.argsort(callers, kind="stable")
    return {
        caller: host.explained(caller, union(starts[order[mine]], ends[order[mine]]))
        for caller, mine in _groups(callers[order])
    }


def _groups(ordered: Int64s) -> Iterator[tuple[int, slice]]:
    """Each value of a sorted array, with its place."""
    bounds = np.append(np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1)), len(ordered)).tolist()
    for first, beyond in pairwise(bounds):
        yield int(ordered[first]), slice(first, beyond)


def _device_gaps(
    trace: Trace,
    columns: _Columns,
    threads: dict[int, Activity],
    one: _Idle,
    explained: dict[int, dict[str, Spans]],
    os_calls: dict[str, dict[str, Spans]],
) -> Gaps:
    idle = one.spans
    told: list[GapSpans] = []
    parts: dict[str, Int64s] = {}
    # Gaps do not depend on one another: so many at a time, their parts take little memory.
    for first in range(0, len(idle), GAPS_AT_ONCE):
        some = one.some(slice(first, first + GAPS_AT_ONCE))
        labelled = [*_before_launch(some, explained), *_within_calls(columns, some, threads)]
        ordered = _ordered(columns, trace.stored("gpu"), some, labelled)
        sums = ordered.totals(len(some.spans))
        for number in np.flatnonzero(sums.any(axis=1)).tolist():
            times = parts.setdefault(CAUSES[number], np.zeros(len(idle), np.int64))
            times[first : first + GAPS_AT_ONCE] = sums[number]
        told.append(ordered.moved(first))
    spans = GapSpans.joined(told)
    ended_by = pl.Series("gpu_id", one.ended_by)
    no_time = pl.Series(np.zeros(len(idle), np.int64))  # of all causes that no gap has
    table = pl.DataFrame(
        [
            pl.Series("start_ns", idle.starts),
            pl.Series("end_ns", idle.ends),
            ended_by.set(ended_by == NONE, None),
            *((pl.Series(parts.pop(cause)) if cause in parts else no_time).alias(f"{cause}_ns") for cause in CAUSES),
        ]
    )
    return Gaps(one.device, table, spans, _os_waits(os_calls, spans))


def _os_calls(trace: Trace, thread: int) -> dict[str, dict[str, Spans]]:
    """Calls of the operating system in which a thread waits, for each cause that they explain, by name."""
    if not len(trace.osrt):
        return {}
    mine = trace.stored("osrt").filter(pl.col("thread") == thread)
    return {
        cause: {
            str(name): union(integers(rows["start_ns"]), integers(rows["end_ns"]))
            for (name,), rows in mine.filter(named(pattern)).group_by("name")
        }
        for cause, pattern in (("input", OS_READ), ("unknown", OS_BLOCK))
    }


def _os_waits(calls: dict[str, dict[str, Spans]], spans: GapSpans) -> dict[str, dict[str, int]]:
    """Calls of the operating system within the time of each cause, so that no call takes more than it."""
    found: dict[str, dict[str, int]] = {}
    for cause, named_calls in calls.items():
        here = spans.causes == CAUSES.index(cause)
        part = Spans(spans.starts[here], spans.ends[here])
        times = {name: intersection(waited, part).total_ns() for name, waited in named_calls.items()}
        large = {name: time for name, time in times.items() if time >= NAMED_WAIT * part.total_ns() > 0}
        if large:
            found[cause] = dict(sorted(large.items(), key=lambda pair: (-pair[1], pair[0]))[:NAMED_WAITS])
    return found


def _next_operation(rows: pl.DataFrame, idle: Spans) -> Int64s:
    """Row of `gpu` that starts when the gap ends; NONE at the end of the window."""
    starts, numbers = integers(rows["start_ns"]), integers(rows["gpu_id"])
    slot = np.searchsorted(starts, idle.ends, side="left")
    begins = (slot < len(starts)) & (np.append(starts, -1)[slot] == idle.ends)
    return np.where(begins, np.append(numbers, NONE)[slot], NONE)


def _busiest_thread(trace: Trace) -> int:
    threads = trace.api.thread
    counts = np.bincount(threads[threads != NONE])
    return int(counts.argmax()) if len(counts) else NONE


class _Labelled(Struct, frozen=True):
    """Parts of gaps with one cause; they do not overlap."""

    cause: str
    gaps: Int64s
    starts: Int64s
    ends: Int64s


def _covered(cause: str, gaps: Int64s, starts: Int64s, ends: Int64s, spans: Spans | None) -> Iterator[_Labelled]:
    """What of these parts of gaps lies in the spans."""
    if spans is not None and len(spans):
        which, _, begins, beyond = pieces(starts, ends, spans)
        yield _Labelled(cause, gaps[which], begins, beyond)


def _before_launch(one: _Idle, explained: dict[int, dict[str, Spans]]) -> Iterator[_Labelled]:
    """The part before the launch, by what the launching thread was doing; empty without a launch."""
    rows = one.before_launch()
    for caller, mine in _groups(one.callers[rows]):
        gaps = rows[mine]
        for label, spans in explained[caller].items():
            yield from _covered(label, gaps, one.spans.starts[gaps], one.launch[gaps], spans)


def _within_calls(columns: _Columns, one: _Idle, threads: dict[int, Activity]) -> Iterator[_Labelled]:
    """The part within the launching call, by what the call did."""
    # A call that began before the gap, and returns in it, holds the device up as one that begins in it.
    callers = columns.thread[one.calls]
    within = np.flatnonzero((one.calls != NONE) & (one.done > one.launch))
    within = within[np.argsort(callers[within], kind="stable")]
    for caller, rows in _groups(callers[within]):
        gaps = within[rows]
        for label in WITHIN_A_CALL if caller in threads else ():
            cause = label if label in CAUSES else "unknown"
            yield from _covered(cause, gaps, one.launch[gaps], one.done[gaps], threads[caller].labels.get(label))


def _ordered(columns: _Columns, gpu: pl.DataFrame, one: _Idle, labelled: list[_Labelled]) -> GapSpans:
    """All parts of all gaps by begin: what has a label, and between that what the rest of its gap means."""
    linked, unknown = one.calls != NONE, CAUSES.index("unknown")
    spent = np.zeros(len(one.spans), np.int64)
    for part in labelled:
        np.add.at(spent, part.gaps, np.where(part.starts >= one.launch[part.gaps], part.ends - part.starts, 0))
    # What a call takes beyond an ordinary launch, and nothing recorded explains, stays unknown.
    usual = linked & (one.done - one.launch - spent <= FIRST_LAUNCH_NS)
    in_call = np.where(usual, CAUSES.index("launch_latency"), unknown)
    every = np.arange(len(one.spans))
    rest_gaps = np.concatenate([every] * 3)
    rest_starts = np.concatenate([one.spans.starts, one.launch, one.done])
    rest_ends = np.concatenate([one.launch, one.done, one.spans.ends])
    rest_causes = np.concatenate([np.full(len(every), unknown), in_call, _after_call(columns, gpu, one)])
    told = [*labelled, _Labelled("unknown", every[:0], every[:0], every[:0])]
    starts, ends, gaps = (np.concatenate([getattr(part, name) for part in told]) for name in ("starts", "ends", "gaps"))
    causes = np.repeat([CAUSES.index(part.cause) for part in told], [len(part.gaps) for part in told])
    if len(every):
        free = complement(union(starts, ends), int(one.spans.starts[0]), int(one.spans.ends[-1]))
        which, _, begins, beyond = pieces(rest_starts, rest_ends, free)
        starts, ends = np.concatenate([starts, begins]), np.concatenate([ends, beyond])
        gaps, causes = np.concatenate([gaps, rest_gaps[which]]), np.concatenate([causes, rest_causes[which]])
    order = np.flatnonzero(ends > starts)
    order = order[np.argsort(starts[order], kind="stable")]
    return GapSpans(starts[order], ends[order], gaps[order], causes[order]).merged()


def _after_call(columns: _Columns, gpu: pl.DataFrame, one: _Idle) -> Int64s:
    """The cause after the launching call has returned: latency, or a dependency on other GPU activity."""
    returned = np.where(one.calls != NONE, columns.end[one.calls], one.spans.ends)
    queued = one.whole.ends - np.clip(returned, one.whole.starts, one.whole.ends)
    waited = (one.calls != NONE) & (one.called < one.whole.starts) & (queued > QUEUED_GAP_NS)
    causes = np.where(waited, CAUSES.index("dependency"), CAUSES.index("launch_latency"))
    rows = np.flatnonzero(waited)
    if len(rows):
        # A collective that was launched in time, and does not start on an idle device, waits for communication.
        names = gpu["name"].gather(one.ended_by[rows]).cast(pl.String)
        known = {name: activity("kernel", name) == "comm" for name in names.unique().to_list()}
        causes[rows[np.array([known[name] for name in names.to_list()], bool)]] = CAUSES.index("comm")
    return causes
