"""What each CPU thread was doing, as sets of time: the evidence from which idle time of the device is explained.

Every moment of a thread has at most one label. Where several things go on at once (a call inside an op inside a
Python frame), the most telling one counts, in the order of `PRIORITY`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from warpline.intervals import EMPTY, Spans, difference, union
from warpline.trace.api_names import (
    BEGIN_CAPTURE,
    COMPILING_OPS,
    COPY,
    DEVICE_WAIT,
    END_CAPTURE,
    EVENT_WAIT,
    LAUNCH,
    STREAM_WAIT,
)
from warpline.trace.columns import integers
from warpline.trace.names import by_name, matches, named
from warpline.trace.trace import Trace

PRIORITY = ("cold_start", "memory", "profiler", "sync", "transfer", "input", "dispatch", "python")
"""The causes that a thread's doing can tell, and `python`: frames alone, which say no more than silence does."""
LABEL = pl.Enum(PRIORITY)

SYNCHRONISE = f"{DEVICE_WAIT}|{STREAM_WAIT}|{EVENT_WAIT}"
"""Returns when the device, a stream or an event is done."""
ALLOCATE = (
    r"^(cuda|hip)(Malloc|Free|HostAlloc|HostFree|HostRegister|HostUnregister|MemPool|MallocAsync|FreeAsync|ExtMalloc)"
    r"|^cuMem(Alloc|Free|Create|Release|Map|Unmap|AddressReserve|AddressFree|SetAccess|HostAlloc|HostRegister|Pool)"
)
"""Asks the driver for memory, or gives it back; freeing waits for the device."""
LOAD = (
    r"^cu(Module|Library)(Load|GetFunction|GetKernel|GetGlobal|GetModule|Enumerate|Unload)|^cuKernelGetFunction|^cuLink"
    r"|^cuInit|^cuDevicePrimaryCtx|^cuCtxCreate|^hipModuleLoad|^(cuda|hip)SetDevice$|^(cuda|hip)(Stream|Event)Create"
    r"|^(cuda|hip)GetDeviceProperties|^cuGetProcAddress|^cudaGetDriverEntryPoint|^(cuda|hip)GraphInstantiate"
    r"|^cuGraphInstantiate|^nvrtc|^hiprtc|^cuFunc|^cudaFunc"
)
"""Makes code, contexts and handles ready: work of the first time, not of every step."""
COMPILING = (
    r"torch/_dynamo/convert_frame|torch/_inductor/(graph|scheduler|codecache|compile_worker|async_compile)|triton/compiler/"
    r"|triton/runtime/build|triton_heuristics\.py\(\d+\): (autotune|benchmark|_?precompile)"
    r"|autotuner\.py\(\d+\): _bench"
    r"|torch/utils/cpp_extension|importlib\._bootstrap|torch/cuda/__init__\.py\(\d+\): _lazy_init"
)
"""Python frames that are entered only to compile, autotune, import or initialise; frames of the same packages that
also run compiled code on every step are left out."""
LOADING = (
    r"(?i)torch/utils/data/|dataloader|data_?load|load_?data|next_batch|get_batch|<built-in function sleep>|time\.sleep"
    r"|imread|PIL/"
    r"|built-in method (poll|recv|read|select|acquire)|multiprocessing/(connection|queues)|^queue\.py"
)
"""Python frames, ops and annotations in which the program waits for data."""
DRIVER_LOADING = r"dlopen|dlclose|JIT|LAZY|MODULE"
PROFILING = (
    r"torch/(autograd/)?profiler|Buffer|CUPTI|[Pp]rofiling|Instrumentation|Chunk Allocation|TLS allocation|Resource"
)
OS_WAIT = r"^(u?sleep|nanosleep|clock_nanosleep|p?poll|p?select|epoll_p?wait|recv|accept|sem_timedwait|p?read|fread)"
OS_LOADING = r"^(open|stat|lstat|fstat|mmap|munmap|fopen|close|access|readlink|dlopen|getdents)"
FIRST_LAUNCH_NS = 200_000
"""A first launch of a kernel that takes longer than this loaded its code: ordinary launches take 3 to 20 µs."""
BURST_NS = 1_000_000
"""File operations closer together than this belong to one import."""


@dataclass(frozen=True, slots=True)
class Activity:
    """Labelled time of one thread; the sets are disjoint."""

    labels: dict[str, Spans]

    @property
    def told(self) -> Spans:
        """All time of which more is known than that Python was at work."""
        return joined([spans for label, spans in self.labels.items() if label != "python"])


def activities(trace: Trace) -> dict[int, Activity]:
    """The activity of every thread that called the device's API, ran an op, or was sampled otherwise."""
    raw: dict[int, dict[str, list[Spans]]] = {}
    for thread, label, spans in _evidence(trace):
        raw.setdefault(thread, {}).setdefault(label, []).append(spans)
    return {
        thread: _prioritised({label: joined(parts) for label, parts in labels.items()})
        for thread, labels in raw.items()
    }


def _prioritised(labels: dict[str, Spans]) -> Activity:
    taken, result = EMPTY, {}
    for label in PRIORITY:
        spans = labels.get(label, EMPTY)
        result[label] = difference(spans, taken)
        taken = joined([taken, spans])
    return Activity(result)


def joined(parts: list[Spans]) -> Spans:
    parts = [part for part in parts if len(part)]
    if len(parts) < 2:
        return parts[0] if parts else EMPTY
    return union(np.concatenate([part.starts for part in parts]), np.concatenate([part.ends for part in parts]))


def _evidence(trace: Trace) -> Iterator[tuple[int, str, Spans]]:
    """(thread, label, time) from every table that knows anything about a thread."""
    ranges = trace.ranges.filter(pl.col("thread").is_not_null(), pl.col("end_ns").is_not_null())
    frames = (
        _calls(trace),
        _telling(trace.ops, {"cold_start": COMPILING_OPS, "input": LOADING}),
        _captures(trace.api),
        _telling(ranges, {"input": LOADING}),
        _telling(trace.python, {"cold_start": COMPILING, "input": LOADING}),
        _telling(trace.overhead, {"cold_start": DRIVER_LOADING, "profiler": PROFILING}),
        _telling(trace.osrt, {"input": OS_WAIT}),
        _at_work(trace.ops, "dispatch"),
        _at_work(trace.python, "python"),
    )
    told = pl.concat([frame.cast({"label": LABEL}) for frame in frames])
    for (thread, label), rows in told.group_by("thread", "label"):
        yield int(thread), str(label), union(integers(rows["start_ns"]), integers(rows["end_ns"]))
    yield from _profiler_frames(trace.python)
    imports = trace.osrt.filter(named(OS_LOADING))
    for (thread,), rows in imports.group_by("thread"):
        # Close the short breaks between the file operations of one import.
        spans = union(integers(rows["start_ns"]), integers(rows["end_ns"]) + BURST_NS)
        yield int(thread), "cold_start", union(spans.starts, spans.ends - BURST_NS)


def _profiler_frames(python: pl.DataFrame) -> Iterator[tuple[int, str, Spans]]:
    """The profiler's own Python frames, without the program's frames that they call (a decorator wraps a whole run)."""
    profiling = matches(python["name"], PROFILING)
    if not profiling.any():
        return
    parents = integers(python["parent"])
    called = python.filter(~profiling & pl.Series(np.append(profiling.to_numpy(), False)[parents]))
    for (thread,), rows in python.filter(profiling & pl.col("thread").is_not_null()).group_by("thread"):
        inner = called.filter(pl.col("thread") == thread)
        spans = union(integers(rows["start_ns"]), integers(rows["end_ns"]))
        yield int(thread), "profiler", difference(spans, union(integers(inner["start_ns"]), integers(inner["end_ns"])))


def _telling(table: pl.DataFrame, patterns: dict[str, str]) -> pl.DataFrame:
    """Thread, times and label of the rows whose names tell something; the first pattern that matches counts."""

    def label(names: pl.Series) -> pl.Series:
        found = pl.Series([None] * len(names), dtype=pl.String)
        for word, pattern in reversed(patterns.items()):
            found = found.set(names.str.contains(pattern), word)
        return found.cast(LABEL)

    labels = by_name(table["name"], label)
    telling = labels.is_not_null() & table["thread"].is_not_null()
    return table.filter(telling).select("thread", "start_ns", "end_ns", label=labels.filter(telling))


def _captures(api: pl.DataFrame) -> pl.DataFrame:
    """From the begin to the end of each capture: what is launched meanwhile only makes a graph."""
    marks = api.filter(named(f"{BEGIN_CAPTURE}|{END_CAPTURE}"), pl.col("thread").is_not_null()).sort("start_ns")
    spans = marks.with_columns(end_ns=pl.col("end_ns").shift(-1).over("thread")).filter(named(BEGIN_CAPTURE))
    return spans.drop_nulls("end_ns").select("thread", "start_ns", "end_ns", label=pl.lit("cold_start"))


def _at_work(table: pl.DataFrame, label: str) -> pl.DataFrame:
    """Ops or frames as plain work. The outermost ones cover all that they enclose."""
    outermost = table.filter(pl.col("parent").is_null(), pl.col("thread").is_not_null())
    return outermost.select("thread", "start_ns", "end_ns", label=pl.lit(label))


def _calls(trace: Trace) -> pl.DataFrame:
    """API calls: what each keeps its caller waiting for."""
    loads, staged = _launches_of_new_code(trace), pageable_copies(trace)
    call = pl.col("call")
    label = (
        pl.when(named(LOAD) | call.is_in(loads.implode()))
        .then(pl.lit("cold_start"))
        .when(named(ALLOCATE))
        .then(pl.lit("memory"))
        .when(named(SYNCHRONISE))
        .then(pl.lit("sync"))
        .when(call.is_in(staged.implode()) | (named(COPY) & ~named("Async")))
        .then(pl.lit("transfer"))
        .otherwise(pl.lit("dispatch"))
    )
    rows = trace.api.with_row_index("call").filter(pl.col("thread").is_not_null())
    return rows.select("thread", "start_ns", "end_ns", label=label)


def _launches_of_new_code(trace: Trace) -> pl.Series:
    """Calls that launched a kernel for the first time and took as long as loading code takes."""
    launches = trace.gpu.filter(pl.col("api_id").is_not_null()).select("api_id", "name", "start_ns")
    first = launches.sort("start_ns").unique("name", keep="first")["api_id"]
    calls = trace.api[first.to_list()] if len(first) else trace.api.head(0)
    slow = calls.select(named(LAUNCH) & (pl.col("end_ns") - pl.col("start_ns") > FIRST_LAUNCH_NS)).to_series()
    return first.filter(slow)


def pageable_copies(trace: Trace) -> pl.Series:
    """Calls whose copy has pageable memory at one end: they return when the data is staged, or the copy done."""
    pageable = named("^Pageable$", "source_memory") | named("^Pageable$", "target_memory")
    return trace.gpu.filter(pageable, pl.col("api_id").is_not_null())["api_id"]


def seen_elsewhere(threads: dict[int, Activity], but: int) -> Activity:
    """What the other threads were doing, for the time in which this one left no evidence.

    Only their work counts: that another thread waits for data, records, or has Python frames keeps nobody.
    """
    merged = {
        label: joined([activity.labels[label] for thread, activity in threads.items() if thread != but])
        for label in PRIORITY
        if label not in {"input", "profiler", "python"}
    }
    return _prioritised(merged)
