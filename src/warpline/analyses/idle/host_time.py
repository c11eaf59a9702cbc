"""How each launching thread spends its time, gaps included: the host side of every idle moment.

A thread's own evidence counts first (`host_activity`), then the activity of other threads that launch, and of those
that wake it; then the meaning of a gap: mostly Python between ops, which is dispatch; before a copy to the device, data
loading. A thread that launches nothing and wakes nobody explains nothing: pools and watchers sleep all the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import chain

import numpy as np
from msgspec import Struct

from warpline.analyses.idle.host_activity import LONGEST_PYTHON_NS, PRIORITY, WAITING, activities
from warpline.analyses.idle.other_threads import OtherThreads
from warpline.api_names import HOST_WAIT
from warpline.intervals import (
    EMPTY,
    LaneLine,
    LaneSpans,
    Spans,
    covered_before,
    difference,
    intersection,
    joined,
    union,
)
from warpline.trace.arrays import NONE, Bools, Int64s, containing
from warpline.trace.schema import Api, Ops
from warpline.trace.trace import Trace, Window

NUMBER_BYTES = 8
"""A copy to the host up to this size is a loss or a flag; the next batch does not depend on it."""
FEW_THREADS = 4
"""Launching threads whose whole time is explained at once, for all questions; of more, only the moments asked about."""
PARTS_AT_ONCE = 1 << 21
"""Intervals of all threads together that are held in memory; a bound of memory only."""


class _Calls(Struct, frozen=True):
    """Calls that launched GPU operations."""

    thread: Int64s
    start: Int64s
    end: Int64s
    upload: Bools
    """Whether it was a copy from the host …"""
    result: Bools
    """… or of more than a number to it."""

    def of(self, rows: Int64s) -> _Calls:
        """Some of them."""
        return _Calls(self.thread[rows], self.start[rows], self.end[rows], self.upload[rows], self.result[rows])


def _recorded(trace: Trace) -> Window:
    """From the start of the first step or GPU operation to the end of the last."""
    starts = np.append(trace.all_steps.start_ns, trace.gpu.start_ns)
    ends = np.append(trace.all_steps.end_ns, trace.gpu.end_ns)
    return Window(int(starts.min()), int(ends.max())) if len(starts) else Window(0, 0)


class HostTime:
    """The threads of a trace, prepared for queries; `cold` is the time of steps that are long once."""

    def __init__(self, trace: Trace, cold: Spans = EMPTY) -> None:
        self.trace, self.cold, self.window = trace, cold, _recorded(trace)
        self.step_starts = np.sort(trace.all_steps.start_ns)
        self.step_end = int(trace.all_steps.end_ns.max(initial=0))
        self.activity = activities(trace)
        if len(cold):
            self.activity = self._without_first_waits(self.activity)
        self._whole: dict[bytes, list[dict[str, LaneSpans]]] = {}

    def in_start(self, starts: Int64s, ends: Int64s) -> Bools:
        """Whether all of the time between two moments is in a cold step, and more than a warm step takes: no warm step
        has that."""
        steps = self.trace.all_steps
        warm = covered_before(self.cold, steps.end_ns) == covered_before(self.cold, steps.start_ns)
        usual = float(np.median((steps.end_ns - steps.start_ns)[warm])) if warm.any() else np.inf
        inside = covered_before(self.cold, ends) - covered_before(self.cold, starts) == ends - starts
        return inside & (ends - starts > usual)

    def _without_first_waits(self, activity: dict[str, LaneSpans]) -> dict[str, LaneSpans]:
        """What a cold step reads or sleeps for longer than a warm step takes is its cold start: a compiler's processes,
        the first batch of workers that start."""
        waits, known = activity["input"], activity["cold_start"]
        first = self.in_start(waits.starts, waits.ends)
        others = LaneSpans(waits.lanes[~first], waits.starts[~first], waits.ends[~first])
        columns = zip(*((one.lanes, one.starts, one.ends) for one in (known, waits)), strict=True)
        chosen = np.append(np.ones(len(known), bool), first)
        lanes, starts, ends = (np.concatenate(column)[chosen] for column in columns)
        return {**activity, "input": others, "cold_start": LaneSpans.union(lanes, starts, ends)}

    def explained(self, within: LaneSpans) -> Iterator[dict[str, LaneSpans]]:
        """By label, when threads have it: by their own evidence, then other threads', then the meaning of gaps.
        Complete for the threads and moments asked about; some of the threads at a time."""
        callers = np.unique(within.lanes)
        if self.explains_all:
            yield from self._explained_whole(np.union1d(callers, self.launching))
            return
        for line in self._lines(callers, within.starts, within.ends):
            yield _taken(line, _ThreadsOnLine(self, line).explained(line.put(within)))

    def loading(self) -> LaneSpans:
        """When each launching thread loads data: ranges, frames, and long gaps before an upload."""
        if self.explains_all:
            return LaneSpans.chained([found["input"] for found in self._explained_whole(self.launching)])
        every = [_ThreadsOnLine(self, line) for line in self._lines(self.launching)]
        return LaneSpans.chained([some.line.taken(some.explained(some.may_load())["input"]) for some in every])

    def is_labelled(self, label: str, threads: Int64s, moments: Int64s) -> Bools:
        """Whether each moment of a thread has that label in its own activity."""
        return self.activity[label].covered_ns(threads, moments, moments + 1) > 0

    @property
    def explains_all(self) -> bool:
        """Whether labels are complete everywhere: few threads launch."""
        return len(self.launching) <= FEW_THREADS

    def _explained_whole(self, callers: Int64s) -> list[dict[str, LaneSpans]]:
        """The same for all time of a few threads, once for all questions."""
        key = callers.tobytes()
        if key not in self._whole:
            lines = self._lines(callers)
            self._whole[key] = [_taken(line, _ThreadsOnLine(self, line).explained(None)) for line in lines]
        return self._whole[key]

    def _lines(self, threads: Int64s, *moments: Int64s) -> Iterator[LaneLine]:
        """The threads on a line, on which all times of the trace and these moments have a place."""
        trace = self.trace
        tables = [(own.start_ns, own.end_ns) for own in (trace.gpu, trace.api, trace.ops, trace.all_steps)]
        tables += [(own.starts, own.ends) for own in self.activity.values()]
        # Each thread may look up all activities of the others.
        together = max(PARTS_AT_ONCE // (len(self.others.quiet) + 1), 1)
        for begin in range(0, len(threads), together):
            some = threads[begin : begin + together]
            yield from LaneLine.lines(some, *chain.from_iterable(tables), *moments)

    @cached_property
    def others(self) -> OtherThreads:
        """What all threads do."""
        return OtherThreads(self.activity, self.launching)

    @cached_property
    def launching(self) -> Int64s:
        """The threads that launch GPU operations."""
        return np.unique(self.calls.thread)

    @cached_property
    def calls(self) -> _Calls:
        """The calls of all threads that launched GPU operations, in order."""
        gpu = self.trace.gpu[self.trace.gpu.api_id != NONE]
        gpu = gpu[np.argsort(self.trace.api.start_ns[gpu.api_id], kind="stable")]
        api = self.trace.api[gpu.api_id]
        result = gpu.copy_kind.equal("DtoH") & (gpu.bytes > NUMBER_BYTES)
        return _Calls(api.thread, api.start_ns, api.end_ns, gpu.copy_kind.equal("HtoD"), result)

    @cached_property
    def last_end(self) -> Int64s:
        """The latest end of each call for work and of all before it."""
        return np.maximum.accumulate(self.calls.end)

    @cached_property
    def calls_by_thread(self) -> _Calls:
        """The same calls by thread, then by start."""
        return self.calls.of(np.argsort(self.calls.thread, kind="stable"))

    @cached_property
    def waits(self) -> Api:
        """Calls that wait for the device, by thread, then by start."""
        api = self.trace.api
        waits = np.flatnonzero(api.name.like(HOST_WAIT))
        return api[waits[np.lexsort((api.start_ns[waits], api.thread[waits]))]]

    @cached_property
    def outermost_ops(self) -> Ops:
        """The outermost ops, by thread, then by start."""
        ops = self.trace.ops
        outermost = np.flatnonzero(ops.parent == NONE)
        return ops[outermost[np.lexsort((ops.start_ns[outermost], ops.thread[outermost]))]]


def _taken(line: LaneLine, labelled: dict[str, Spans]) -> dict[str, LaneSpans]:
    return {label: line.taken(spans) for label, spans in labelled.items()}


class _ThreadsOnLine:
    """Some threads, one after another on a line: all sets are places on it."""

    def __init__(self, host: HostTime, line: LaneLine) -> None:
        self._host, self.line = host, line
        self._own = {label: line.put(spans) for label, spans in host.activity.items()}
        self._calls = host.calls_by_thread.of(line.rows(host.calls_by_thread.thread))
        self._called = line.places(self._calls.thread, self._calls.start)
        self._call_lane = line.number(self._called)

    def may_load(self) -> Spans:
        """Moments outside a thread's own evidence in which it may load data."""
        others, line, upload = self._host.others, self.line, self._calls.upload
        ends = others.ends_of("input")
        waiting = line.cut(self._own[WAITING], union(ends - 1, ends))
        follows = np.append(NONE, self._call_lane)[:-1] == self._call_lane
        before = np.where(follows, np.append(0, self._called)[:-1], self._call_lane * line.length)
        long = others.quiet.ends - others.quiet.starts > LONGEST_PYTHON_NS
        pauses = Spans(others.quiet.starts[long], others.quiet.ends[long])
        return joined([waiting, line.cut(union(before[upload], self._called[upload]), pauses)])

    def explained(self, within: Spans | None) -> dict[str, Spans]:
        """By label, when each thread has it; complete within these places, or everywhere."""
        host, line, others = self._host, self.line, self._host.others
        waiting = self._own[WAITING]
        holes = difference(line.on_each(host.window.start_ns, host.window.end_ns), joined(list(self._own.values())))
        starts, ends = self._upload_gaps()
        if within is not None:
            # Whether a gap is long, and what ends a wait, is seen only in the whole of it.
            looked_at = others.whole_pauses(line, joined([within, union(starts, ends)]))
            waiting, holes = intersection(waiting, looked_at), intersection(holes, looked_at)
        free = joined([holes, waiting])
        result = {
            label: [self._own[label], line.cut(free, others.active[label])] for label in PRIORITY if label != WAITING
        }
        silence = line.cut(holes, others.quiet)
        for label, spans in others.waking(line, line.cut(waiting, others.quiet)).items():
            result[label].append(spans)
        looking = self._after_results()
        making = self._making_batches(starts, ends, joined([silence, *result["dispatch"][:1]]))
        making = difference(making, looking)
        result["dispatch"] = [difference(spans, making) for spans in result["dispatch"]]
        result["dispatch"].append(intersection(silence, looking))
        result["input"].append(making)
        for label, spans in self._silence(difference(silence, joined([making, looking]))).items():
            result[label].append(spans)
        return {label: joined(spans) for label, spans in result.items()}

    def _silence(self, holes: Spans) -> dict[str, Spans]:
        """Meaning of a thread's unrecorded time: mostly Python between ops, which is dispatch.

        A long gap within a step that ends in a copy to the device is data loading. A gap before the first
        step, in a trace with steps, is program start-up, and so is a long one in a cold step. Without steps, a long
        gap says nothing.
        """
        host, line = self._host, self.line
        if not len(host.step_starts):
            short = (holes.ends - holes.starts) <= LONGEST_PYTHON_NS
            return {"dispatch": Spans(holes.starts[short], holes.ends[short])}
        begin, end = int(host.step_starts[0]), host.step_end
        # A step begins with some Python: the gap before it is not a part of it.
        cut = line.number(holes.starts) * line.length + (begin - line.first)
        cut = cut[(holes.starts < cut) & (holes.ends > cut)]
        if len(cut):
            holes = Spans(*(np.sort(np.concatenate([side, cut])) for side in (holes.starts, holes.ends)))
        starts, ends = line.times(holes.starts), line.times(holes.ends)
        long = ends - starts > LONGEST_PYTHON_NS
        in_cold_step = covered_before(host.cold, ends) - covered_before(host.cold, starts) == ends - starts
        starting = long & ((ends <= begin) | in_cold_step)
        loading = long & ~starting & (starts < end) & (ends > begin) & self._before_batch(holes.ends)
        rest = ~(loading | starting)
        kinds = {"input": loading, "cold_start": starting, "dispatch": rest}
        return {label: Spans(holes.starts[chosen], holes.ends[chosen]) for label, chosen in kinds.items()}

    def _upload_gaps(self) -> tuple[Int64s, Int64s]:
        """Before each copy to the device of a trace with steps, from the last launch of any thread to the op that
        copies."""
        uploads = self._called[self._calls.upload]
        if not len(uploads) or not len(self._host.step_starts):
            return uploads[:0], uploads[:0]
        return self._free_since(uploads), self._entered(uploads)

    def _making_batches(self, starts: Int64s, ends: Int64s, free: Spans) -> Spans:
        """Long gaps between the last launch of any thread and a copy to the device.

        All CPU functions and ops in such a gap prepare the copied data, unless only a cold step has such
        a gap.
        """
        if not len(starts):
            return EMPTY
        host, line = self._host, self.line
        begin, end = line.times(starts), line.times(ends)
        chosen = (begin < host.step_end) & (end > int(host.step_starts[0])) & ~host.in_start(begin, end)
        chosen &= self._before_batch(self._called[self._calls.upload])
        chosen &= covered_before(free, ends) - covered_before(free, starts) > LONGEST_PYTHON_NS
        return intersection(free, union(starts[chosen], ends[chosen]))

    def _free_since(self, places: Int64s) -> Int64s:
        """Return time of the last launch of any thread, or of this thread's last wait, that started before each place;
        the start of the first step if there is none."""
        host, line, moments = self._host, self.line, self.line.times(places)
        waits = host.waits[line.rows(host.waits.thread)]
        waited = np.append(np.maximum.accumulate(line.places(waits.thread, waits.end_ns)), NONE)
        waits_before = np.searchsorted(line.places(waits.thread, waits.start_ns), places, side="left")
        lane = places - moments
        last_wait = waited[waits_before - 1]
        has_waited = line.number(last_wait) == line.number(places)
        calls_before = np.searchsorted(host.calls.start, moments, side="left")
        last_call = np.append(host.last_end, 0)[calls_before - 1] + lane
        begin = int(host.step_starts[0]) + lane
        latest = np.where(calls_before > 0, last_call, np.where(has_waited, last_wait, begin))
        return np.where(has_waited, np.maximum(latest, last_wait), latest)

    def _after_results(self) -> Spans:
        """From each copy of a result that no launch follows in its step, to the end of that step: the program processes
        the result, and the next batch starts with the next step."""
        calls, begins, lane = self._calls, self._host.step_starts, self._call_lane
        if not len(calls.start) or not len(begins):
            return EMPTY
        following = np.searchsorted(begins, calls.start, side="right")
        last = np.append((following[1:] != following[:-1]) | (lane[1:] != lane[:-1]), True)
        chosen = np.flatnonzero(calls.result & last & (following > 0) & (following < len(begins)))
        chosen = chosen[begins[following[chosen]] > calls.end[chosen]]
        ends, threads = begins[following[chosen]], calls.thread[chosen]
        return union(self.line.places(threads, calls.end[chosen]), self.line.places(threads, ends))

    def _entered(self, called: Int64s) -> Int64s:
        """Start of the outermost op around each place of its thread; the place itself if there is none."""
        ops = self._host.outermost_ops
        ops = ops[self.line.rows(ops.thread)]
        starts, ends = (self.line.places(ops.thread, side) for side in (ops.start_ns, ops.end_ns))
        around = containing(starts, ends, called)
        return np.where(around != NONE, np.append(starts, 0)[around], called)

    def _before_batch(self, places: Int64s) -> Bools:
        """Whether the thread's next launch is a copy from the host, which may be a batch.

        It is not a batch if the previous operation fetched more than a number in the same step.
        """
        following, lane = np.searchsorted(self._called, places, side="left"), self.line.number(places)
        upload, result = np.append(self._calls.upload, False), np.append(self._calls.result, False)
        of_lane = np.append(self._call_lane, NONE)
        step = np.searchsorted(self._host.step_starts, np.append(self._calls.start, 0), side="right")
        is_upload = upload[following] & (of_lane[following] == lane)
        fetched = result[following - 1] & (of_lane[following - 1] == lane) & (step[following - 1] == step[following])
        return is_upload & ~fetched
