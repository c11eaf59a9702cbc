"""Why a device was idle: every idle nanosecond gets one cause, from what the CPU was doing then.

An idle stretch ends when some operation begins. Until that operation's launch was called, the device waited for the
launching thread, and the stretch is split by what that thread was doing; from the call on, it is launch latency, or,
if the operation had been waiting in its queue all along, a dependency. A moment without any evidence is `unknown`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from warpline.analyses.breakdown import idle_spans
from warpline.analyses.host_activity import PRIORITY, SYNCHRONISE, Activity, activities, joined, seen_elsewhere
from warpline.analyses.steps import covered_before
from warpline.intervals import EMPTY, Spans, complement, difference, intersection, union
from warpline.trace.columns import NONE, integers
from warpline.trace.names import matches, named
from warpline.trace.trace import Trace

Int64s = npt.NDArray[np.int64]

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
QUEUED_GAP_NS = 20_000
"""Between operations that were both launched in time, a device takes 1 to 5 µs to go on, and up to this between
graphs or after a stream switch; longer, the operation was waiting for something else on the device."""
SHORT_HOLE_NS = 300_000
"""A pause this short between recorded calls or ops is Python at work; longer ones may be more than that.
So is as much CPU time between two calls for the device: launching takes tens of µs, making a batch takes longer."""
NUMBER_BYTES = 8
"""A copy to the host up to this size is a loss or a flag that is read; the next batch does not hang on it."""


@dataclass(frozen=True, slots=True)
class Gaps:
    """The idle stretches of one device, and the cause of each part of them."""

    device: int
    table: pl.DataFrame
    """One row a stretch: start_ns, end_ns, the operation that ended it (`gpu_id`), and `<cause>_ns` for each cause."""

    def totals(self) -> dict[str, int]:
        """Idle time by cause; sums to the idle time."""
        return {cause: int(self.table[f"{cause}_ns"].sum()) for cause in CAUSES}


def idle_gaps(trace: Trace, known: dict[int, Activity] | None = None) -> list[Gaps]:
    """For every device with work, its idle stretches within the trace's window; `known` are its `activities`."""
    threads = activities(trace) if known is None else known
    gpu = trace.gpu.with_row_index("gpu_id")
    devices = gpu.group_by(pl.col("device").fill_null(0))
    return [
        _device_gaps(trace, threads, int(device), rows) for (device,), rows in sorted(devices, key=lambda item: item[0])
    ]


def loading_spans(trace: Trace, known: dict[int, Activity] | None = None) -> dict[int, Spans]:
    """When each thread was getting data, by the same evidence: ranges, frames, and long silences before an upload."""
    threads = activities(trace) if known is None else known
    return {thread: _explained(trace, threads, thread)["input"] for thread in threads}


def _device_gaps(trace: Trace, threads: dict[int, Activity], device: int, rows: pl.DataFrame) -> Gaps:
    idle = idle_spans(rows, trace.window)
    ended_by = _next_operation(rows, idle)
    parts = {cause: np.zeros(len(idle), np.int64) for cause in CAUSES}
    calls = np.append(integers(trace.gpu["api_id"]), NONE)[ended_by]
    linked = calls != NONE
    called = np.where(linked, np.append(integers(trace.api["start_ns"]), 0)[calls], idle.ends)
    launch = np.clip(called, idle.starts, idle.ends)
    callers = np.append(integers(trace.api["thread"]), NONE)[calls]
    # At the end of chosen steps nothing begins: what the busiest thread does then says why.
    callers = np.where(ended_by == NONE, _busiest_thread(trace), callers)
    _split_waiting(trace, threads, idle, launch, callers, parts)
    _split_after_launch(trace, idle, launch, called, calls, ended_by, threads, parts)
    explained = sum(parts[cause] for cause in CAUSES if cause != "unknown")
    parts["unknown"] = (idle.ends - idle.starts) - explained
    table = pl.DataFrame(
        {
            "start_ns": idle.starts,
            "end_ns": idle.ends,
            "gpu_id": pl.Series(ended_by).replace(NONE, None),
            **{f"{cause}_ns": values for cause, values in parts.items()},
        }
    )
    return Gaps(device, table)


def _next_operation(rows: pl.DataFrame, idle: Spans) -> Int64s:
    """Row of `gpu` that begins when the stretch ends; NONE at the end of the window."""
    starts, numbers = integers(rows["start_ns"]), integers(rows["gpu_id"])
    slot = np.searchsorted(starts, idle.ends, side="left")
    begins = (slot < len(starts)) & (np.append(starts, -1)[slot] == idle.ends)
    return np.where(begins, np.append(numbers, NONE)[slot], NONE)


def _split_waiting(
    trace: Trace, threads: dict[int, Activity], idle: Spans, launch: Int64s, callers: Int64s, parts: dict[str, Int64s]
) -> None:
    """The part before the launch, by what the launching thread was doing; nothing is said without a launch."""
    for caller in np.unique(callers[callers != NONE]):
        mine = np.flatnonzero((callers == caller) & (launch > idle.starts))
        if not len(mine):
            continue
        for label, spans in _explained(trace, threads, int(caller)).items():
            parts[label][mine] += covered_before(spans, launch[mine]) - covered_before(spans, idle.starts[mine])


def _busiest_thread(trace: Trace) -> int:
    counts = trace.api["thread"].drop_nulls().value_counts(sort=True)
    return int(counts["thread"][0]) if len(counts) else NONE


def _explained(trace: Trace, threads: dict[int, Activity], caller: int) -> dict[str, Spans]:
    """Labels of all time for one thread: its own evidence, then the other threads', then what silence means."""
    window, calls = trace.window, _calls_for_work(trace)
    own = threads.get(caller, Activity({}))
    holes = complement(own.told, window.start_ns, window.end_ns)
    others = seen_elsewhere(threads, caller)
    result = {label: [own.labels.get(label, EMPTY)] for label in PRIORITY if label != "python"}
    for label, found in result.items():
        found.append(intersection(others.labels.get(label, EMPTY), holes))
    silence = difference(holes, others.told)
    looking = _after_results(trace, calls, caller)
    making = _making_batches(trace, calls, caller, joined([silence, *result["dispatch"][:1]]))
    making = difference(making, looking)
    result["dispatch"] = [difference(spans, making) for spans in result["dispatch"]]
    result["dispatch"].append(intersection(silence, looking))
    result["input"].append(making)
    for label, spans in _silence(trace, calls, caller, difference(silence, joined([making, looking]))).items():
        result[label].append(spans)
    return {label: joined(found) for label, found in result.items()}


def _silence(trace: Trace, calls: pl.DataFrame, caller: int, holes: Spans) -> dict[str, Spans]:
    """What a thread does while nothing of it is recorded: mostly Python between ops, which is dispatch.

    A long silence within a step that ends in a copy to the device is the making of a batch. One before the first
    step, in a trace that has steps, is the making ready of the program.
    """
    long = (holes.ends - holes.starts) > SHORT_HOLE_NS
    loading, starting = np.zeros(len(holes), bool), np.zeros(len(holes), bool)
    if len(trace.steps):
        begin, end = _steps_window(trace)
        starting = long & (holes.ends <= begin)
        loading = long & (holes.starts < end) & (holes.ends > begin) & _before_batch(trace, calls, caller, holes.ends)
    rest = ~(loading | starting)
    kinds = {"input": loading, "cold_start": starting, "dispatch": rest}
    return {label: Spans(holes.starts[chosen], holes.ends[chosen]) for label, chosen in kinds.items()}


def _making_batches(trace: Trace, calls: pl.DataFrame, caller: int, free: Spans) -> Spans:
    """The free time between the last work that any thread gave the device and a copy to it, where that is long.

    Whatever functions and ops of the CPU fill it, and however short each of them: they make what is copied.
    """
    uploads = integers(calls.filter(pl.col("thread") == caller, "upload")["start_ns"])
    if not len(uploads) or not len(trace.steps):
        return EMPTY
    waits = trace.api.filter(named(SYNCHRONISE), pl.col("thread") == caller)
    marks = np.concatenate([integers(calls["start_ns"]), integers(waits["start_ns"])])
    order = np.argsort(marks, kind="stable")
    done = np.maximum.accumulate(np.concatenate([integers(calls["end_ns"]), integers(waits["end_ns"])])[order])
    before = np.searchsorted(marks[order], uploads, side="left")
    begin, end = _steps_window(trace)
    starts = np.where(before > 0, done[np.maximum(before, 1) - 1], begin)
    ends = _entered(trace, caller, uploads)
    chosen = (starts < end) & (ends > begin) & _before_batch(trace, calls, caller, uploads)
    chosen &= covered_before(free, ends) - covered_before(free, starts) > SHORT_HOLE_NS
    return intersection(free, union(starts[chosen], ends[chosen]))


def _after_results(trace: Trace, calls: pl.DataFrame, caller: int) -> Spans:
    """From each copy of a result that no more work follows in its step, to the end of that step: the program looks at
    what it got, and the next batch begins with the next step."""
    mine = calls.filter(pl.col("thread") == caller)
    if not len(mine) or not len(trace.steps):
        return EMPTY
    ends = integers(mine["end_ns"])
    begins = np.sort(integers(trace.steps["start_ns"]))
    following = np.searchsorted(begins, integers(mine["start_ns"]), side="right")
    last = np.append(following[1:] != following[:-1], True)
    chosen = np.flatnonzero(mine["result"].to_numpy() & last & (following > 0) & (following < len(begins)))
    chosen = chosen[begins[following[chosen]] > ends[chosen]]
    return union(ends[chosen], begins[following[chosen]])


def _entered(trace: Trace, caller: int, called: Int64s) -> Int64s:
    """When the outermost op around each moment of the thread began; the moment itself where there is none."""
    ops = trace.ops.filter(pl.col("parent").is_null(), pl.col("thread") == caller).sort("start_ns")
    starts, ends = integers(ops["start_ns"]), integers(ops["end_ns"])
    slot = np.searchsorted(starts, called, side="right") - 1
    inside = (slot >= 0) & (np.append(ends, -1)[slot] > called)
    return np.where(inside, np.append(starts, 0)[slot], called)


def _steps_window(trace: Trace) -> tuple[int, int]:
    return int(integers(trace.steps["start_ns"]).min()), int(integers(trace.steps["end_ns"]).max())


def _before_batch(trace: Trace, calls: pl.DataFrame, caller: int, moments: Int64s) -> npt.NDArray[np.bool_]:
    """Whether the thread's next work for the device is a copy from the host, which may be of a batch.

    It is none if the work before it fetched more than a number in the same step: then it is made of that result.
    """
    mine = calls.filter(pl.col("thread") == caller)
    called = integers(mine["start_ns"])
    following = np.searchsorted(called, moments, side="left")
    upload = np.append(mine["upload"].to_numpy(), False)[following]
    result = np.append(mine["result"].to_numpy(), False)[following - 1]
    step = np.searchsorted(np.sort(integers(trace.steps["start_ns"])), np.append(called, 0), side="right")
    found: npt.NDArray[np.bool_] = upload & ~(result & (step[following - 1] == step[following]))
    return found


def _calls_for_work(trace: Trace) -> pl.DataFrame:
    """The calls that gave a device work, in their order; whether it was a copy from the host, or of a result to it."""
    work = trace.gpu.select("api_id", "copy_kind", "bytes").drop_nulls("api_id")
    calls = trace.api.select("thread", "start_ns", "end_ns")[work["api_id"]].with_columns(
        upload=matches(work["copy_kind"], "^HtoD$"),
        result=matches(work["copy_kind"], "^DtoH$") & (work["bytes"] > NUMBER_BYTES).fill_null(False),
    )
    return calls.sort("start_ns")


def _split_after_launch(
    trace: Trace,
    idle: Spans,
    launch: Int64s,
    called: Int64s,
    calls: Int64s,
    ended_by: Int64s,
    threads: dict[int, Activity],
    parts: dict[str, Int64s],
) -> None:
    """The part from the launch on."""
    after = idle.ends - launch
    linked = calls != NONE
    waited_in_queue = linked & (called < idle.starts)
    long = after > QUEUED_GAP_NS
    parts["dependency"] += np.where(waited_in_queue & long, after, 0)
    parts["launch_latency"] += np.where(waited_in_queue & ~long, after, 0)
    # Launched while idle: the call itself may have been loading code, allocating or staging.
    fresh = linked & ~waited_in_queue
    done = np.minimum(np.append(integers(trace.api["end_ns"]), 0)[calls], idle.ends)
    done = np.maximum(done, launch)
    callers = np.append(integers(trace.api["thread"]), NONE)[calls]
    spent = np.zeros(len(idle), np.int64)
    for caller in np.unique(callers[fresh]):
        mine = np.flatnonzero(fresh & (callers == caller))
        for label in ("cold_start", "memory", "transfer", "sync"):
            spans = threads[int(caller)].labels[label] if int(caller) in threads else None
            if spans is None or not len(spans):
                continue
            inside = covered_before(spans, done[mine]) - covered_before(spans, launch[mine])
            parts[label][mine] += inside
            spent[mine] += inside
    parts["launch_latency"] += np.where(fresh, after - spent, 0)
