"""What each CPU thread was doing, as sets of intervals: the evidence that explains idle time of the device.

Every moment of a thread has at most one label. If several apply (a call inside an op inside a
Python frame), the most specific one counts, in the order of `PRIORITY`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl
from msgspec import Struct

from warpline.api_names import (
    BEGIN_CAPTURE,
    COMPILING_OPS,
    COPY,
    DEVICE_WAIT,
    END_CAPTURE,
    EVENT_WAIT,
    LAUNCH,
    STREAM_WAIT,
)
from warpline.intervals import EMPTY, Spans, difference, joined, union
from warpline.library_names import PROFILER_FRAME
from warpline.trace.arrays import NONE, Bools, Int64s, first_of_each, grouped, integers
from warpline.trace.names import Names, named, named_like, names_in, rows_like
from warpline.trace.trace import Trace

Labels = npt.NDArray[np.int8]
"""Positions in PRIORITY."""

WAITING = "waiting"
PRIORITY = ("cold_start", "memory", "profiler", "sync", "transfer", "input", WAITING, "dispatch")
"""The causes that a thread's activity can show. Python frames alone are no evidence.

`waiting` is none: the thread sleeps until another one wakes it, and what that one does is the cause."""

SYNCHRONISE = f"{DEVICE_WAIT}|{STREAM_WAIT}|{EVENT_WAIT}"
"""Returns when the device, a stream or an event is done."""
ALLOCATE = (
    r"^(cuda|hip)(Malloc|Free|HostAlloc|HostFree|HostRegister|HostUnregister|MemPool|MallocAsync|FreeAsync|ExtMalloc)"
    r"|^cuMem(Alloc|Free|Create|Release|Map|Unmap|AddressReserve|AddressFree|SetAccess|HostAlloc|HostRegister|Pool)"
)
"""Allocates or frees driver memory; freeing waits for the device."""
LOAD = (
    r"^cu(Module|Library)(Load|GetFunction|GetKernel|GetGlobal|GetModule|Enumerate|Unload)|^cuKernelGetFunction|^cuLink"
    r"|^cuInit|^cuDevicePrimaryCtx|^cuCtxCreate|^hipModuleLoad|^(cuda|hip)SetDevice$|^(cuda|hip)(Stream|Event)Create"
    r"|^(cuda|hip)GetDeviceProperties|^cuGetProcAddress|^cudaGetDriverEntryPoint|^(cuda|hip)GraphInstantiate"
    r"|^cuGraphInstantiate|^nvrtc|^hiprtc|^cuFunc|^cudaFunc"
)
"""Prepares code, contexts and handles: once, not in every step."""
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
PROFILING = rf"{PROFILER_FRAME}|Buffer|CUPTI|[Pp]rofiling|Instrumentation|Chunk Allocation|TLS allocation|Resource"
OS_READ = (
    r"^(u?sleep|nanosleep|clock_nanosleep|p?poll|p?select|epoll_p?wait|recv|accept|sem_timedwait|p?readv?|fread|f?getc|getchar"
    r"|fgets|gets|getline|getdelim|f?scanf|_IO_getc)(64|_unlocked)?(msg|mmsg|from|v2|4)?$"
)
"""The program sleeps, or waits for data: a file, a pipe, a socket, the keyboard."""
OS_BLOCK = (
    r"^(sem_(clock)?wait|pthread_(cond_(timed|clock)?wait|(timed|clock)?join|mutex_(timed|clock)?lock|barrier_wait"
    r"|rwlock_(timed|clock)?(rd|wr)lock|spin_lock)|(cnd|mtx|thrd)_(timed)?(wait|lock|join)|futex|wait(pid|id|3|4)?|sigwait\w*"
    r"|pause|flock|msgrcv|semop|semtimedop)$"
)
"""The program waits for another thread or process."""
OS_LOOKUP = r"^(f?open|creat|l?stat|access|faccessat|readlink|dlopen|getdents)(at)?(64)?$"
"""Looks files up, as an import does thousands of times."""
FIRST_LAUNCH_NS = 200_000
"""A first launch of a kernel that takes longer than this loaded its code: ordinary launches take 3 to 20 µs."""
SLOW_FIRST_CALL = 30.0
"""A call that takes this many times the median of its name does something else besides."""
PROFILER_HELPERS = r"^<built-in|^torch/cuda/"
HELPER_LEVELS = 3
LAST_UINT16 = np.iinfo(np.uint16).max
BURST_NS = 1_000_000
"""File operations closer together than this belong to one import."""


class Activity(Struct, frozen=True):
    """Labelled time of one thread; the sets are disjoint."""

    labels: dict[str, Spans]

    @property
    def told(self) -> Spans:
        """All labelled time."""
        return joined(list(self.labels.values()))


def activities(trace: Trace) -> dict[int, Activity]:
    """The activity of every thread that called the CUDA API, ran an op, or has other events."""
    raw: dict[int, dict[str, list[Spans]]] = {}
    for thread, label, spans in _evidence(trace):
        raw.setdefault(thread, {}).setdefault(label, []).append(spans)
    return {
        thread: prioritised({label: joined(labels.pop(label)) for label in list(labels)})
        for thread, labels in sorted(raw.items())
    }


def prioritised(labels: dict[str, Spans]) -> Activity:
    """Assign each moment to the first label that covers it."""
    taken, result = EMPTY, {}
    for label in PRIORITY:
        spans = labels.get(label, EMPTY)
        result[label] = difference(spans, taken)
        taken = joined([taken, spans])
    return Activity(result)


class _Told(Struct, frozen=True):
    """Intervals of threads, with their labels."""

    thread: Int64s
    start: Int64s
    end: Int64s
    label: Labels

    @classmethod
    def rows(cls, table: pl.DataFrame, chosen: Int64s, label: Labels) -> _Told:
        """These rows of a table; rows without a thread are ignored."""
        rows = table[["thread", "start_ns", "end_ns"]]
        rows = rows if len(chosen) == len(table) else rows[chosen]
        thread, start, end = map(integers, rows)
        known = thread != NONE
        return (
            cls(thread, start, end, label) if known.all() else cls(*(one[known] for one in (thread, start, end, label)))
        )

    def spans(self) -> Iterator[tuple[int, str, Spans]]:
        """(thread, label, time) of every thread and label."""
        key = self.thread * len(PRIORITY) + self.label
        if key.max(initial=0) <= LAST_UINT16:
            key = key.astype(np.uint16)  # NumPy sorts short integers in linear time
        order = np.argsort(key, kind="stable")
        key = key[order]
        bounds = np.flatnonzero(key[1:] != key[:-1]) + 1
        for first, beyond in pairwise([0, *bounds.tolist(), len(order)] if len(order) else []):
            rows = order[first:beyond]
            number, label = divmod(int(key[first]), len(PRIORITY))
            yield number, PRIORITY[label], union(self.start[rows], self.end[rows])


def _evidence(trace: Trace) -> Iterator[tuple[int, str, Spans]]:
    """(thread, label, time) from every table with thread events."""
    ranges, frames = trace.stored("ranges"), names_in(trace.stored("python"))
    if ranges["end_ns"].null_count():
        ranges = ranges.filter(pl.col("end_ns").is_not_null())
    # One after the other: each takes a hundred bytes for each of its events.
    yield from _calls(trace).spans()
    yield from _telling(trace.stored("ops"), {"cold_start": COMPILING_OPS, "input": LOADING}).spans()
    yield from _captures(trace.stored("api")).spans()
    yield from _telling(ranges, {"input": LOADING}).spans()
    yield from _telling(trace.stored("python"), {"cold_start": COMPILING, "input": LOADING}, frames).spans()
    yield from _telling(trace.stored("overhead"), {"cold_start": DRIVER_LOADING, "profiler": PROFILING}).spans()
    yield from _telling(trace.stored("osrt"), {"input": OS_READ, WAITING: OS_BLOCK}).spans()
    yield from _ops(trace.stored("ops")).spans()
    yield from _profiler_frames(trace.stored("python"), frames)
    yield from _lookups(trace)


def _lookups(trace: Trace) -> Iterator[tuple[int, str, Spans]]:
    """Bursts in which files are looked up: an import, or, where most steps have some, the program's own reading."""
    lookups = named_like(trace.stored("osrt"), OS_LOOKUP)
    if not len(lookups):
        return
    begins, end = trace.all_steps.start_ns, int(trace.all_steps.end_ns.max(initial=0))
    moments = integers(lookups["start_ns"])
    step = np.where(moments < end, np.searchsorted(begins, moments, side="right"), 0)
    each = np.bincount(step, minlength=len(begins) + 1)[1:]
    own = (step > 0) & bool(len(each) and np.median(each) > 0)
    for (number,), files in lookups.with_columns(own=pl.Series(own)).group_by("thread"):
        for label, chosen in (("cold_start", ~pl.col("own")), ("input", pl.col("own"))):
            rows = files.filter(chosen)
            # Close the short breaks between the file operations of one import.
            spans = union(integers(rows["start_ns"]), integers(rows["end_ns"]) + BURST_NS)
            yield int(number), label, union(spans.starts, spans.ends - BURST_NS)


def _profiler_frames(python: pl.DataFrame, known: Names) -> Iterator[tuple[int, str, Spans]]:
    """The profiler's own Python frames, without the program's frames that they call (a decorator wraps a whole run).

    What the profiler calls of torch and of Python, as `torch.cuda.synchronize()`, is its own as well.
    """
    profiling = np.append(known.like(PROFILING), False)
    if not profiling.any():
        return
    parents, is_helper = integers(python["parent"]), known.matching(PROFILER_HELPERS)
    called = _called(profiling, parents)
    # Helpers call helpers: a few levels of them.
    for _ in range(HELPER_LEVELS):
        helping = called[is_helper[known.which[called]]]
        if not len(helping):
            break
        profiling[helping] = True
        called = _called(profiling, parents)
    own = np.flatnonzero(profiling)
    frames = _Told.rows(python, own, np.zeros(len(own), np.int8))
    inner = _Told.rows(python, called, np.zeros(len(called), np.int8))
    for thread in np.unique(frames.thread).tolist():
        mine, theirs = frames.thread == thread, inner.thread == thread
        spans = union(frames.start[mine], frames.end[mine])
        yield thread, "profiler", difference(spans, union(inner.start[theirs], inner.end[theirs]))


def _called(frames: Bools, parents: Int64s) -> Int64s:
    """Frames that one of these calls, and that are none of them; the last mark is of none."""
    return np.flatnonzero(frames[parents] & ~frames[:-1])


def _telling(table: pl.DataFrame, patterns: dict[str, str], known: Names | None = None) -> _Told:
    """The rows whose names match a pattern; the first match counts. `known` are the table's distinct names."""
    known = known or names_in(table)
    which = known.which
    label = np.full(len(known.names) + 1, NONE, np.int8)
    for word, pattern in reversed(patterns.items()):
        label[known.matching(pattern)] = PRIORITY.index(word)
    rows = np.flatnonzero((label >= 0)[which]) if (label >= 0).any() else np.empty(0, np.int64)
    return _Told.rows(table, rows, label[which[rows]])


def _captures(api: pl.DataFrame) -> _Told:
    """From start to end of each capture: launches in between only build a graph."""
    spans = named_like(api, f"{BEGIN_CAPTURE}|{END_CAPTURE}")
    if len(spans):
        marks = spans.sort("start_ns")
        spans = marks.with_columns(end_ns=pl.col("end_ns").shift(-1).over("thread")).filter(named(BEGIN_CAPTURE))
        spans = spans.drop_nulls("end_ns")
    return _Told.rows(spans, np.arange(len(spans)), np.full(len(spans), PRIORITY.index("cold_start"), np.int8))


def _ops(ops: pl.DataFrame) -> _Told:
    """Ops as dispatch. The outermost ops cover everything inside them."""
    outermost = np.flatnonzero(ops["parent"].is_null().to_numpy())
    return _Told.rows(ops, outermost, np.full(len(outermost), PRIORITY.index("dispatch"), np.int8))


def _calls(trace: Trace) -> _Told:
    """API calls, by what each waits for."""
    known = trace.api.name
    by_call = np.full(len(known), PRIORITY.index("dispatch"), np.int8)
    by_call[known.like(COPY) & ~known.like("Async")] = PRIORITY.index("transfer")
    by_call[integers(pageable_copies(trace))] = PRIORITY.index("transfer")
    for word, pattern in (("sync", SYNCHRONISE), ("memory", ALLOCATE), ("cold_start", LOAD)):
        by_call[known.like(pattern)] = PRIORITY.index(word)
    for first_time in (_launches_of_new_code(trace), _slow_first_calls(trace.stored("api"), trace.stored("ops"))):
        by_call[first_time] = PRIORITY.index("cold_start")
    return _Told.rows(trace.stored("api"), np.arange(len(trace.stored("api"))), by_call)


def _launches_of_new_code(trace: Trace) -> Int64s:
    """Calls that launched a kernel for the first time, or the first one of an op of that name, and took as long as
    loading code takes."""
    gpu, api = trace.gpu, trace.api
    call, op = gpu.api_id, gpu.op_id
    rows = np.flatnonzero(call != NONE)  # in the order of their start, as all of the table
    of_ops = rows[op[rows] != NONE]
    first = (
        rows[first_of_each(gpu.name.codes[rows])],
        of_ops[first_of_each(trace.ops.name.codes[op[of_ops]])],
    )
    calls = call[np.concatenate(first)]
    slow = (api.end_ns - api.start_ns)[calls] > FIRST_LAUNCH_NS
    found: Int64s = calls[slow & api.name.like(LAUNCH)[calls]]
    return found


def _slow_first_calls(api: pl.DataFrame, ops: pl.DataFrame) -> Int64s:
    """Allocations and frees in the first op of its name, far longer than others: a library is initialised there."""
    length = integers(api["end_ns"]) - integers(api["start_ns"])
    allocating = np.flatnonzero(rows_like(api, ALLOCATE))
    slow = [np.empty(0, np.int64)]
    for _, calls in grouped(allocating, names_in(api).which[allocating]):
        usual = float(np.median(length[calls]))
        slow.append(calls[length[calls] > max(FIRST_LAUNCH_NS, SLOW_FIRST_CALL * usual)])
    found = np.concatenate(slow)
    op = integers(api["op_id"])[found]
    if not (op != NONE).any():
        return found[:0]
    return found[np.isin(op, first_of_each(names_in(ops).which))]


def pageable_copies(trace: Trace) -> pl.Series:
    """Calls whose copy has pageable memory at one end: they return when the data is staged, or the copy done."""
    ends = (rows_like(trace.stored("gpu"), "^Pageable$", f"{end}_memory") for end in ("source", "target"))
    found = trace.stored("gpu")["api_id"].filter(pl.Series(np.logical_or(*ends)))
    return found.drop_nulls() if found.null_count() else found
