"""Why a device is idle: every idle nanosecond gets one cause, from what the CPU does at that time.

An idle gap ends when an operation starts. Until that operation's launch was called, the device waited for the
launching thread, and the gap is split by what that thread was doing; while the call lasts, by what the call does
(loading code, a lock); after it, it is launch latency, or, if the operation had been waiting in its queue all along, a
dependency. An operation that starts far later than any launch takes, on a device with nothing to do, waits for what was
not recorded: that is `unknown`, and so is a moment without any evidence.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from msgspec import Struct

from warpline.analyses.breakdown import communicates, idle_spans
from warpline.analyses.device import rows_by_device
from warpline.analyses.idle.host_activity import (
    FIRST_LAUNCH_NS,
    OS_BLOCK,
    OS_READ,
    WAITING,
    capture_spans,
)
from warpline.analyses.idle.host_time import HostTime
from warpline.intervals import LaneSpans, Spans, complement, covered_before, intersection, pieces, union
from warpline.trace.arrays import NONE, Bools, Int64s, grouped, most_frequent
from warpline.trace.launches import nodes_of_calls
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
QUEUED_GAP_NS = 20_000
"""Between operations that were both launched in time, a device needs 1 to 5 µs, and up to this between
graphs or after a stream switch; longer, the operation was waiting for something else."""
LATE_START_NS = 50_000
"""A launch takes 1 to 20 µs to start on an idle device; an operation that starts later waits for something that was not
recorded, such as another process on the device or work from before the recording."""
NODE_NS = 3_000
"""What the call that launches a graph may take for each node: with a recorder that notes every node 0.8 to 1.7 µs in
graphs of 144 to 337 nodes (torch 2.11 and nsys 2025.3 on an H200, 2026-11-18)."""
WITHIN_A_CALL = ("cold_start", "memory", "profiler", "transfer", "sync", WAITING)
"""What a launching call may do beside launching: load code, allocate, stage, or wait for a lock."""


class GapSpans(Struct, frozen=True):
    """The parts of all gaps in order of time, each with one cause; together they are exactly the gaps."""

    starts: Int64s
    ends: Int64s
    gaps: Int64s
    """Position of the gap that each is a part of."""
    causes: Int64s
    """Position in `CAUSES`."""

    def of(self, cause: str) -> Spans:
        """The parts with that cause."""
        here = self.causes == CAUSES.index(cause)
        return Spans(self.starts[here], self.ends[here])

    def merged(self) -> GapSpans:
        """The same, with neighbours of one gap and one cause as one."""
        if not len(self.starts):
            return self
        new = (self.gaps[1:] != self.gaps[:-1]) | (self.causes[1:] != self.causes[:-1])
        first, last = np.append(True, new), np.append(new, True)
        return GapSpans(self.starts[first], self.ends[last], self.gaps[first], self.causes[first])


class Gaps(Struct, frozen=True):
    """The idle gaps of one device, and the cause of each part."""

    device: int
    starts: Int64s
    ends: Int64s
    ended_by: Int64s
    """Row of `gpu` that starts when the gap ends, or NONE."""
    spans: GapSpans
    """The parts of the gaps, in the order in which they happened."""
    captured_ns: int
    """The part of the cause `cold_start` in which a graph is captured: its launches are recorded, and do not run."""
    unrecorded_ns: int
    """The part of the cause `unknown` in which an operation was launched and waits for what was not recorded."""
    os_waits: dict[str, dict[str, int]]
    """For the causes `input` and `unknown`, the calls of the operating system in which the thread that launches most
    spent a part of them, with the time in each, the longest first."""

    def by_cause(self, chosen: Int64s) -> Int64s:
        """Time of each cause (a row) in each of these gaps (a column)."""
        column = np.full(len(self.starts), NONE)
        column[chosen] = np.arange(len(chosen))
        parts = np.flatnonzero(column[self.spans.gaps] != NONE)
        found = np.zeros((len(CAUSES), len(chosen)), np.int64)
        places = self.spans.causes[parts], column[self.spans.gaps[parts]]
        np.add.at(found, places, self.spans.ends[parts] - self.spans.starts[parts])
        return found

    def totals(self) -> dict[str, int]:
        """Idle time by cause; sums to the idle time."""
        found = np.zeros(len(CAUSES), np.int64)
        np.add.at(found, self.spans.causes, self.spans.ends - self.spans.starts)
        return dict(zip(CAUSES, found.tolist(), strict=True))


def idle_gaps(
    trace: Trace, known: HostTime | None = None, within: Spans | None = None, *, busiest: bool = False
) -> list[Gaps]:
    """For every device with work, its idle gaps within the trace's window; `known` is its host's time.

    With `within`, for example steps, only what of each gap lies in each of these spans, as a gap of its own. With
    `busiest`, only the device that is idle for the shortest time.
    """
    host = known or HostTime(trace)
    idle = [_idle(trace, device, rows, within) for device, rows in rows_by_device(trace.gpu)]
    if busiest and idle:
        idle = [min(idle, key=lambda one: one.spans.total_ns())]
    os_calls, captured = _os_calls(trace), capture_spans(trace.api)
    nodes = nodes_of_calls(trace.gpu, trace.api)
    found = []
    for one, parts in zip(idle, _labelled_parts(host, idle), strict=True):
        spans = _ordered(trace, nodes, one, parts)
        found.append(
            Gaps(
                device=one.device,
                starts=one.spans.starts,
                ends=one.spans.ends,
                ended_by=one.ended_by,
                spans=spans,
                captured_ns=intersection(spans.of("cold_start"), captured).total_ns(),
                unrecorded_ns=int((one.spans.ends - one.done)[_starts_late(trace, one)].sum()),
                os_waits=_os_waits(os_calls, spans),
            )
        )
    return found


class _Idle(Struct, frozen=True, dict=True):
    """The idle gaps of a device, and per gap the operation that ended it and the call that launched that."""

    device: int
    spans: Spans
    whole: Spans
    """The gaps of which these are parts; the same without spans to look in."""
    ended_by: Int64s
    calls: Int64s
    called: Int64s
    returned: Int64s
    """Start and end of the call; the end of the gap where there is none."""
    callers: Int64s

    @cached_property
    def launch(self) -> Int64s:
        """The call's start within the gap."""
        return np.clip(self.called, self.spans.starts, self.spans.ends)

    @cached_property
    def done(self) -> Int64s:
        """The call's end within the gap."""
        return np.clip(self.returned, self.launch, self.spans.ends)

    @cached_property
    def queued_ns(self) -> Int64s:
        """From the call's end to the gap's end."""
        return self.whole.ends - np.clip(self.returned, self.whole.starts, self.whole.ends)

    @cached_property
    def before_launch(self) -> Int64s:
        """The gaps with a part before the launch."""
        return np.flatnonzero((self.callers != NONE) & (self.launch > self.spans.starts))

    @cached_property
    def in_call(self) -> Int64s:
        """The gaps with a part within the call: one that began before the gap, and returns in it, holds the device up
        as one that begins in it."""
        return np.flatnonzero((self.calls != NONE) & (self.done > self.launch))


def _idle(trace: Trace, device: int, rows: Int64s, within: Spans | None) -> _Idle:
    gpu, api = trace.gpu[rows], trace.api
    window = trace.window if within is None else Window(int(within.starts[0]), int(within.ends[-1]))
    idle = whole = idle_spans(gpu, window)
    # No operation starts at the end of selected steps.
    following = np.searchsorted(gpu.start_ns, idle.ends, side="left")
    begins = np.append(gpu.start_ns, NONE)[following] == idle.ends
    ended_by = np.where(begins, np.append(rows, NONE)[following], NONE)
    if within is not None:
        gap, _, starts, ends = pieces(whole.starts, whole.ends, within)
        idle, whole, ended_by = Spans(starts, ends), Spans(whole.starts[gap], whole.ends[gap]), ended_by[gap]
    calls = np.append(trace.gpu.api_id, NONE)[ended_by]
    called = np.where(calls != NONE, np.append(api.start_ns, 0)[calls], idle.ends)
    returned = np.where(calls != NONE, np.append(api.end_ns, 0)[calls], idle.ends)
    # Where no operation ends the gap, the busiest thread's activity gives the cause.
    callers = np.where(ended_by == NONE, most_frequent(trace.api.thread), np.append(api.thread, NONE)[calls])
    return _Idle(device, idle, whole, ended_by, calls, called, returned, callers)


def _os_calls(trace: Trace) -> dict[str, dict[str, Spans]]:
    """Calls of the operating system in which the busiest thread waits, for each cause that they explain, by name."""
    calls = trace.osrt[trace.osrt.thread == most_frequent(trace.api.thread)]
    found: dict[str, dict[str, Spans]] = {}
    for cause, pattern in (("input", OS_READ), ("unknown", OS_BLOCK)):
        waits = np.flatnonzero(calls.name.like(pattern))
        by_name = grouped(waits, calls.name.codes[waits])
        found[cause] = {
            calls.name.words[code]: union(calls.start_ns[rows], calls.end_ns[rows]) for code, rows in by_name
        }
    return found


def _os_waits(calls: dict[str, dict[str, Spans]], spans: GapSpans) -> dict[str, dict[str, int]]:
    """Calls of the operating system within the time of each cause, so that no call takes more than it."""
    found: dict[str, dict[str, int]] = {}
    for cause, named_calls in calls.items():
        part = spans.of(cause)
        times = {name: intersection(waited, part).total_ns() for name, waited in named_calls.items()}
        large = {name: time for name, time in times.items() if time >= NAMED_WAIT * part.total_ns() > 0}
        if large:
            found[cause] = dict(sorted(large.items(), key=lambda pair: (-pair[1], pair[0]))[:NAMED_WAITS])
    return found


class _Parts(Struct, frozen=True):
    """Parts of gaps with one cause; they do not overlap."""

    cause: str
    gaps: Int64s
    starts: Int64s
    ends: Int64s


class _HostParts(Struct, frozen=True):
    """Parts of the gaps of all devices, each with the thread that launched what ended its gap; the devices in turn."""

    device: Int64s
    gaps: Int64s
    callers: Int64s
    starts: Int64s
    ends: Int64s

    @classmethod
    def of(cls, parts: list[tuple[_Idle, Int64s, Int64s, Int64s]]) -> _HostParts:
        """Of these gaps of each device, from these starts to these ends."""
        device = np.repeat(np.arange(len(parts)), [len(gaps) for _, gaps, _, _ in parts])
        columns = [(gaps, one.callers[gaps], starts[gaps], ends[gaps]) for one, gaps, starts, ends in parts]
        return cls(device, *(np.concatenate(column) for column in zip(*columns, strict=True)))

    def with_label(self, cause: str, spans: LaneSpans, devices: int) -> list[_Parts]:
        """What of them lies in the spans of their thread, by device."""
        which, starts, ends = spans.pieces(self.callers, self.starts, self.ends)
        bounds = np.searchsorted(self.device[which], np.arange(1, devices))
        columns = (np.split(column, bounds) for column in (self.gaps[which], starts, ends))
        return [_Parts(cause, *own) for own in zip(*columns, strict=True)]


def _labelled_parts(host: HostTime, idle: list[_Idle]) -> list[list[_Parts]]:
    """Of each device, the parts of its gaps with a label: before the launch of what ended the gap, what the launching
    thread was doing; within the call, what the call did."""
    if not idle:
        return []
    before = _HostParts.of([(one, one.before_launch, one.spans.starts, one.launch) for one in idle])
    in_calls = _HostParts.of([(one, one.in_call, one.launch, one.done) for one in idle])
    asked = LaneSpans.union(before.callers, before.starts, before.ends)
    found = [
        before.with_label(label, spans, len(idle))
        for explained in host.explained(asked)
        for label, spans in explained.items()
    ]
    for label in WITHIN_A_CALL:
        cause = label if label in CAUSES else "unknown"
        found.append(in_calls.with_label(cause, host.activity[label], len(idle)))
    return [list(parts) for parts in zip(*found, strict=True)]


def _ordered(trace: Trace, nodes: Int64s, one: _Idle, parts: list[_Parts]) -> GapSpans:
    """All parts of all gaps by start: what has a label, and between that what the rest of its gap means; `nodes` of
    graphs are those that each call launches."""
    every, unknown = np.arange(len(one.spans)), CAUSES.index("unknown")
    if not len(every):
        return GapSpans(every, every, every, every)
    parts = [*parts, _Parts("unknown", every[:0], every[:0], every[:0])]
    starts, ends = np.concatenate([part.starts for part in parts]), np.concatenate([part.ends for part in parts])
    gaps = np.concatenate([part.gaps for part in parts])
    causes = np.repeat([CAUSES.index(part.cause) for part in parts], [len(part.gaps) for part in parts])
    # What a call takes beyond an ordinary launch, and nothing recorded explains, stays unknown.
    in_call = starts >= one.launch[gaps]
    labelled = np.bincount(gaps[in_call], (ends - starts)[in_call], len(every))
    usual_ns = FIRST_LAUNCH_NS + NODE_NS * np.append(nodes, 0)[one.calls]
    is_usual = (one.calls != NONE) & (one.done - one.launch - labelled <= usual_ns)
    during = np.where(is_usual, CAUSES.index("launch_latency"), unknown)
    free = complement(union(starts, ends), int(one.spans.starts[0]), int(one.spans.ends[-1]))
    found = [(starts, ends, gaps, causes)]
    # Each gap has three parts: before the call, during the call and after it.
    for begin, end, cause in (
        (one.spans.starts, one.launch, np.full(len(every), unknown)),
        (one.launch, one.done, during),
        (one.done, one.spans.ends, _after_call(trace, one)),
    ):
        gap, _, begins, beyond = pieces(begin, end, free)
        found.append((begins, beyond, gap, cause[gap]))
    starts, ends, gaps, causes = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.flatnonzero(ends > starts)
    order = order[np.argsort(starts[order], kind="stable")]
    return GapSpans(starts[order], ends[order], gaps[order], causes[order]).merged()


def _starts_late(trace: Trace, one: _Idle) -> Bools:
    """The gaps in which what was launched starts far later than any launch takes, and waits for nothing recorded: not
    for another device, and not for the collective that it is."""
    gpu, ended = trace.gpu, np.append(communicates(trace.gpu.name), False)
    others = union(*(side[gpu.device != one.device] for side in (gpu.start_ns, gpu.end_ns)))
    works_elsewhere = covered_before(others, one.whole.ends) > covered_before(others, one.whole.starts)
    in_time = one.called < one.whole.starts
    known = in_time & (works_elsewhere | ended[one.ended_by])
    return (one.calls != NONE) & (one.queued_ns > LATE_START_NS) & ~known


def _after_call(trace: Trace, one: _Idle) -> Int64s:
    """The cause after the launching call has returned: latency, a dependency on other GPU activity, or what was not
    recorded."""
    waited = np.flatnonzero((one.calls != NONE) & (one.called < one.whole.starts) & (one.queued_ns > QUEUED_GAP_NS))
    causes = np.full(len(one.spans), CAUSES.index("launch_latency"))
    causes[waited] = CAUSES.index("dependency")
    causes[_starts_late(trace, one)] = CAUSES.index("unknown")
    # A collective that was launched in time, and does not start on an idle device, waits for communication.
    causes[waited[communicates(trace.gpu.name[one.ended_by[waited]])]] = CAUSES.index("comm")
    return causes
