"""How each launching thread spends its time, gaps included: the host side of every idle moment.

A thread's own evidence counts first (`host_activity`), then the activity of other threads that launch, and of those
that wake it; then the meaning of a gap: mostly Python between ops, which is dispatch; before a copy to the device, data
loading. A thread that launches nothing and wakes nobody explains nothing: pools and watchers sleep all the time.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from msgspec import Struct

from warpline.analyses.idle.host_activity import (
    LONGEST_PYTHON_NS,
    PRIORITY,
    SYNCHRONISE,
    WAITING,
    Activity,
    activities,
)
from warpline.analyses.idle.other_threads import EARLIEST, OtherThreads
from warpline.intervals import EMPTY, Spans, complement, covered_before, difference, intersection, joined, union
from warpline.trace.arrays import NONE, Bools, Int64s, grouped
from warpline.trace.trace import Trace, Window

NUMBER_BYTES = 8
"""A copy to the host up to this size is a loss or a flag; the next batch does not depend on it."""
FEW_THREADS = 4
"""Launching threads whose whole time is explained at once, for all questions; of more, only the moments asked about."""


class _Calls(Struct, frozen=True):
    """Calls that launched GPU operations, in order."""

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


class _ByThread(Struct, frozen=True):
    """Rows sorted by thread, and within a thread by their begin."""

    rows: Int64s
    threads: Int64s

    @classmethod
    def sort(cls, threads: Int64s, starts: Int64s, rows: Int64s) -> _ByThread:
        """Build it from these rows of a table."""
        ordered = rows[np.lexsort((starts[rows], threads[rows]))]
        return cls(ordered, threads[ordered])

    def of(self, thread: int) -> Int64s:
        """The rows of one thread."""
        first, beyond = np.searchsorted(self.threads, [thread, thread + 1])
        return self.rows[first:beyond]


def _recorded(trace: Trace) -> Window:
    """From the start of the first step or GPU operation to the end of the last."""
    starts = np.append(trace.all_steps.start_ns, trace.gpu.start_ns)
    ends = np.append(trace.all_steps.end_ns, trace.gpu.end_ns)
    return Window(int(starts.min()), int(ends.max())) if len(starts) else Window(0, 0)


class HostTime:
    """The threads of a trace, prepared for queries; `known` are the trace's `activities`, `cold` is the time of steps
    that are long once."""

    def __init__(self, trace: Trace, known: dict[int, Activity] | None = None, cold: Spans = EMPTY) -> None:
        self.threads = activities(trace) if known is None else known
        self._trace, self._window, self._cold = trace, _recorded(trace), cold
        self._step_starts = np.sort(trace.all_steps.start_ns)
        self._step_end = int(trace.all_steps.end_ns.max(initial=0))
        self._explained: dict[int, dict[str, Spans]] = {}

    def explained(self, caller: int, within: Spans | None = None) -> dict[str, Spans]:
        """Labels of all time for one thread: its own evidence, then other threads', then the meaning of gaps.

        With `within`, labels are complete only in these spans.
        """
        if within is not None and not self.explains_all:
            return self._explain(caller, within)
        if caller not in self._explained:
            self._explained[caller] = self._explain(caller, None)
        return self._explained[caller]

    def is_labelled(self, label: str, threads: Int64s, moments: Int64s) -> Bools:
        """Whether each moment of a thread has that label in its own activity."""
        found = np.zeros(len(moments), bool)
        for thread, rows in grouped(np.arange(len(moments)), threads):
            if thread in self.threads and len(spans := self.threads[thread].labels[label]):
                found[rows] = covered_before(spans, moments[rows] + 1) > covered_before(spans, moments[rows])
        return found

    @property
    def explains_all(self) -> bool:
        """Whether labels are complete everywhere: few threads launch."""
        return len(self.launching) <= FEW_THREADS

    def with_label(self, label: str) -> dict[int, Spans]:
        """When each launching thread is explained by `input` or `cold_start`."""
        return {thread: self.explained(thread, self._candidates(thread, label))[label] for thread in self.launching}

    def _candidates(self, caller: int, label: str) -> Spans:
        """Moments outside the thread's own evidence that may have the label `input` or `cold_start`."""
        quiet, waiting = self._others.quiet, self.threads.get(caller, Activity({})).labels.get(WAITING, EMPTY)
        ends = self._others.ends_of(label)
        found = [intersection(waiting, union(ends - 1, ends)), self._others.active.labels.get(label, EMPTY)]
        long = quiet.ends - quiet.starts > LONGEST_PYTHON_NS
        if label == "input":
            calls = self._calls.of(self._calls_of.of(caller))
            before = np.append(np.int64(EARLIEST), calls.start)[:-1]
            uploads = union(before[calls.upload], calls.start[calls.upload])
            found.append(intersection(uploads, Spans(quiet.starts[long], quiet.ends[long])))
        elif len(self._step_starts):
            long &= (quiet.starts < self._step_starts[0]) | self._is_cold(quiet)
            found.append(Spans(quiet.starts[long], quiet.ends[long]))
        return joined(found)

    def _explain(self, caller: int, within: Spans | None) -> dict[str, Spans]:
        own = self.threads.get(caller, Activity({}))
        others, calls = self._others, self._calls.of(self._calls_of.of(caller))
        starts, ends = self._upload_gaps(calls, caller)
        waiting = own.labels.get(WAITING, EMPTY)
        holes = complement(own.spans, self._window.start_ns, self._window.end_ns)
        if within is not None:
            # Whether a gap is long, and what ends a wait, is seen only in the whole of it.
            looked_at = others.whole_pauses(joined([within, union(starts, ends)]))
            waiting, holes = intersection(waiting, looked_at), intersection(holes, looked_at)
        result = {label: [own.labels.get(label, EMPTY)] for label in PRIORITY if label != WAITING}
        silence, unexplained = holes, waiting
        if self.launching != [caller]:  # nothing else that could block it
            free = joined([holes, waiting])
            for label, found in result.items():
                found.append(intersection(free, others.active.labels.get(label, EMPTY)))
            silence, unexplained = intersection(holes, others.quiet), intersection(waiting, others.quiet)
        for label, spans in others.waking(caller, unexplained).items():
            result[label].append(spans)
        looking = self._after_results(calls)
        making = self._making_batches(calls, starts, ends, joined([silence, *result["dispatch"][:1]]))
        making = difference(making, looking)
        result["dispatch"] = [difference(spans, making) for spans in result["dispatch"]]
        result["dispatch"].append(intersection(silence, looking))
        result["input"].append(making)
        for label, spans in self._silence(calls, difference(silence, joined([making, looking]))).items():
            result[label].append(spans)
        return {label: joined(spans) for label, spans in result.items()}

    @cached_property
    def _others(self) -> OtherThreads:
        return OtherThreads(self.threads, self.launching)

    @cached_property
    def launching(self) -> list[int]:
        """The threads that launch GPU operations."""
        return np.unique(self._calls.thread).tolist()

    @cached_property
    def _calls(self) -> _Calls:
        """The calls of all threads that launched GPU operations, in order."""
        gpu = self._trace.gpu[self._trace.gpu.api_id != NONE]
        gpu = gpu[np.argsort(self._trace.api.start_ns[gpu.api_id], kind="stable")]
        api = self._trace.api[gpu.api_id]
        result = gpu.copy_kind.equal("DtoH") & (gpu.bytes > NUMBER_BYTES)
        return _Calls(api.thread, api.start_ns, api.end_ns, gpu.copy_kind.equal("HtoD"), result)

    @cached_property
    def _calls_of(self) -> _ByThread:
        calls = self._calls
        return _ByThread.sort(calls.thread, calls.start, np.arange(len(calls.start)))

    @cached_property
    def _waits_of(self) -> _ByThread:
        api = self._trace.api
        waits = np.flatnonzero(api.name.like(SYNCHRONISE))
        return _ByThread.sort(api.thread, api.start_ns, waits)

    @cached_property
    def _outermost_ops_of(self) -> _ByThread:
        ops = self._trace.ops
        return _ByThread.sort(ops.thread, ops.start_ns, np.flatnonzero(ops.parent == NONE))

    @cached_property
    def _last_end(self) -> Int64s:
        """The latest end of each call for work and of all before it."""
        return np.maximum.accumulate(self._calls.end)

    def _silence(self, calls: _Calls, holes: Spans) -> dict[str, Spans]:
        """Meaning of a thread's unrecorded time: mostly Python between ops, which is dispatch.

        A long gap within a step that ends in a copy to the device is data loading. A gap before the first
        step, in a trace with steps, is program start-up, and so is a long one in a cold step. Without steps, a long
        gap says nothing.
        """
        if not len(self._step_starts):
            short = (holes.ends - holes.starts) <= LONGEST_PYTHON_NS
            return {"dispatch": Spans(holes.starts[short], holes.ends[short])}
        begin, end = int(self._step_starts[0]), self._step_end
        if ((holes.starts < begin) & (holes.ends > begin)).any():
            # A step begins with some Python: the gap before it is not a part of it.
            holes = Spans(*(np.sort(np.append(moments, begin)) for moments in (holes.starts, holes.ends)))
        long = (holes.ends - holes.starts) > LONGEST_PYTHON_NS
        starting = long & ((holes.ends <= begin) | self._is_cold(holes))
        loading = long & ~starting & (holes.starts < end) & (holes.ends > begin)
        loading &= self._before_batch(calls, holes.ends)
        rest = ~(loading | starting)
        kinds = {"input": loading, "cold_start": starting, "dispatch": rest}
        return {label: Spans(holes.starts[chosen], holes.ends[chosen]) for label, chosen in kinds.items()}

    def _is_cold(self, holes: Spans) -> Bools:
        """Which of them lie in a cold step."""
        inside = covered_before(self._cold, holes.ends) - covered_before(self._cold, holes.starts)
        return inside == holes.ends - holes.starts

    def _upload_gaps(self, calls: _Calls, caller: int) -> tuple[Int64s, Int64s]:
        """Before each copy to the device of a trace with steps, from the last launch of any thread to the op that
        copies."""
        uploads = calls.start[calls.upload]
        if not len(uploads) or not len(self._step_starts):
            return uploads[:0], uploads[:0]
        return self._free_since(caller, uploads, int(self._step_starts[0])), self._entered(caller, uploads)

    def _making_batches(self, calls: _Calls, starts: Int64s, ends: Int64s, free: Spans) -> Spans:
        """Long gaps between the last launch of any thread and a copy to the device.

        All CPU functions and ops in such a gap prepare the copied data.
        """
        if not len(starts):
            return EMPTY
        begin, end = int(self._step_starts[0]), self._step_end
        chosen = (starts < end) & (ends > begin) & self._before_batch(calls, calls.start[calls.upload])
        chosen &= covered_before(free, ends) - covered_before(free, starts) > LONGEST_PYTHON_NS
        return intersection(free, union(starts[chosen], ends[chosen]))

    def _free_since(self, caller: int, moments: Int64s, begin: int) -> Int64s:
        """Return time of the last launch, or of this thread's last wait, that started before each moment."""
        api, waits = self._trace.api, self._waits_of.of(caller)
        waited = np.maximum.accumulate(api.end_ns[waits])
        calls_before = np.searchsorted(self._calls.start, moments, side="left")
        waits_before = np.searchsorted(api.start_ns[waits], moments, side="left")
        never = np.iinfo(np.int64).min
        latest = np.maximum(
            np.append(self._last_end, never)[calls_before - 1], np.append(waited, never)[waits_before - 1]
        )
        return np.where((calls_before > 0) | (waits_before > 0), latest, begin)

    def _after_results(self, calls: _Calls) -> Spans:
        """From each copy of a result that no launch follows in its step, to the end of that step: the program processes
        the result, and the next batch starts with the next step."""
        begins = self._step_starts
        if not len(calls.start) or not len(begins):
            return EMPTY
        following = np.searchsorted(begins, calls.start, side="right")
        last = np.append(following[1:] != following[:-1], True)
        chosen = np.flatnonzero(calls.result & last & (following > 0) & (following < len(begins)))
        chosen = chosen[begins[following[chosen]] > calls.end[chosen]]
        return union(calls.end[chosen], begins[following[chosen]])

    def _entered(self, caller: int, called: Int64s) -> Int64s:
        """Start of the outermost op around each moment of the thread; the moment itself if there is none."""
        ops = self._trace.ops[self._outermost_ops_of.of(caller)]
        starts, ends = ops.start_ns, ops.end_ns
        slot = np.searchsorted(starts, called, side="right") - 1
        inside = (slot >= 0) & (np.append(ends, -1)[slot] > called)
        return np.where(inside, np.append(starts, 0)[slot], called)

    def _before_batch(self, calls: _Calls, moments: Int64s) -> Bools:
        """Whether the thread's next launch is a copy from the host, which may be a batch.

        It is not a batch if the previous operation fetched more than a number in the same step.
        """
        following = np.searchsorted(calls.start, moments, side="left")
        upload = np.append(calls.upload, False)[following]
        result = np.append(calls.result, False)[following - 1]
        step = np.searchsorted(self._step_starts, np.append(calls.start, 0), side="right")
        return upload & ~(result & (step[following - 1] == step[following]))
