"""What each CPU thread was doing, as sets of intervals: the evidence that explains idle time of the device.

Every moment of a thread has at most one label. If several apply (a call inside an op inside a
Python frame), the most specific one counts, in the order of `PRIORITY`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from msgspec import Struct

from warpline.analyses.idle.planning import planning_spans
from warpline.analyses.thread_events import ThreadTable
from warpline.api_names import (
    ASYNC_COPY,
    BEGIN_CAPTURE,
    COMPILING_OPS,
    COPY,
    END_CAPTURE,
    EVENT_RECORD,
    EVENT_WAIT,
    HOST_WAIT,
    LAUNCH,
)
from warpline.intervals import EMPTY, LaneSpans, LaneTimes, Spans, covered_before, difference, joined, union
from warpline.library_names import PROFILER_FRAME
from warpline.trace.arrays import NONE, Bools, Int64s, grouped
from warpline.trace.schema import Api, Python
from warpline.trace.trace import Trace

WAITING = "waiting"
PRIORITY = ("cold_start", "memory", "profiler", "sync", "transfer", "input", WAITING, "dispatch")
"""The causes that a thread's activity can show. Python frames alone are no evidence.

`waiting` is none: the thread sleeps until another one wakes it, and what that one does is the cause."""

ALLOCATE = (
    r"^(cuda|hip)(Malloc|Free|HostAlloc|HostMalloc|HostFree|HostRegister|HostUnregister|MemPool|MallocAsync|FreeAsync"
    r"|ExtMalloc)"
    r"|^(cu|hip)Mem(Alloc|Free|Create|Release|Map|Unmap|AddressReserve|AddressFree|SetAccess|HostAlloc|HostRegister|Pool)"
)
"""Allocates or frees driver memory; freeing waits for the device."""
LOAD = (
    r"^cu(Module|Library)(Load|GetFunction|GetKernel|GetGlobal|GetModule|Enumerate|Unload)|^cuKernelGetFunction|^cuLink"
    r"|^(cu|hip)Init$|^(cu|hip)DevicePrimaryCtx|^(cu|hip)CtxCreate|^hipModule(Load|GetFunction|GetGlobal|Unload)"
    r"|^hipLibrary(Load|Get|Unload)|^(cuda|hip)SetDevice$|^(cuda|hip)(Stream|Event)Create"
    r"|^(cuda|hip)GetDeviceProperties|^cuGetProcAddress|^cudaGetDriverEntryPoint|^(cuda|hip)GraphInstantiate"
    r"|^cuGraphInstantiate|^nvrtc|^hiprtc|^cuFunc|^(cuda|hip)Func"
)
"""Prepares code, contexts and handles: once, not in every step."""
COMPILING = (
    r"torch/_dynamo/convert_frame|torch/_inductor/(graph|scheduler|codecache|compile_worker|async_compile)|triton/compiler/"
    r"|triton/runtime/build|triton_heuristics\.py\(\d+\): (autotune|benchmark|_?precompile)"
    r"|autotuner\.py\(\d+\): _bench"
    r"|torch/utils/cpp_extension|torch/nn/init\.py|importlib\._bootstrap|torch/cuda/__init__\.py\(\d+\): _lazy_init"
)
"""Python frames that are entered only to compile, autotune, import or initialise; frames of the same packages that
also run compiled code on every step are left out."""
COMPILING_RANGES = r"(?i)nvrtc|::compile"
"""Ranges around a compiler: of NVRTC, or named after a C++ function that compiles, as nvFuser's."""
LOADING = (
    r"(?i)torch/utils/data/|dataloader|data_?load|load_?data|next_batch|get_batch|<built-in function sleep>|time\.sleep"
    r"|imread|PIL/"
    r"|built-in method (poll|recv|read|select|acquire)|multiprocessing/(connection|queues)|^queue\.py"
)
"""Python frames, ops and annotations in which the program waits for data."""
DRIVER_LOADING = r"(?i)dlopen|dlclose|jit|compiler|lazy|module"
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
"""What the profiler calls of torch and of Python, as `torch.cuda.synchronize()`."""
HELPER_LEVELS = 3
"""Helpers call helpers: so many levels of them."""
LONGEST_PYTHON_NS = 300_000
"""A gap this short between recorded calls or ops is Python; longer gaps may be something else.
So is as much CPU time between two launches: launching takes tens of µs, loading a batch takes longer."""
MOST_TIMED = 3
"""More timings than this in a row, within one op, are trials of algorithms."""
TRIED_KERNEL = r"(?i)cudnn|miopen"
"""Kernels of the libraries that try their algorithms (cudnn.benchmark), where ops are not recorded."""
BURST_NS = 1_000_000
"""File operations closer together than this belong to one import: between two lookups it only runs a module's code."""


def activities(trace: Trace) -> dict[str, LaneSpans]:
    """By label, when each thread has it that called the CUDA API, ran an op, or has other events."""
    evidence = list(_evidence(trace))
    threads, labels = (np.concatenate([getattr(one, name) for one in evidence]) for name in ("thread", "label"))
    starts, ends = (np.concatenate([getattr(one, name) for one in evidence]) for name in ("start", "end"))
    line = LaneTimes.of(starts, ends)
    starts, ends = line.places(threads, starts), line.places(threads, ends)
    spans = {label: union(starts[labels == code], ends[labels == code]) for code, label in enumerate(PRIORITY)}
    return {label: LaneSpans(*line.parts(own)) for label, own in prioritised(spans).items()}


def prioritised(labels: dict[str, Spans]) -> dict[str, Spans]:
    """Assign each moment to the first label that covers it."""
    taken, result = EMPTY, {}
    for label in PRIORITY:
        spans = labels.get(label, EMPTY)
        result[label] = difference(spans, taken)
        taken = joined([taken, spans])
    return result


class _Labelled(Struct, frozen=True):
    """Intervals of threads, each with a label."""

    thread: Int64s
    start: Int64s
    end: Int64s
    label: Int64s
    """Position in PRIORITY."""

    @classmethod
    def of(cls, events: ThreadTable, labels: Int64s) -> _Labelled:
        """The rows of a table that have a thread and a label other than NONE."""
        rows = np.flatnonzero((labels != NONE) & (events.thread != NONE))
        return cls(events.thread[rows], events.start_ns[rows], events.end_ns[rows], labels[rows])

    @classmethod
    def like(cls, events: ThreadTable, patterns: dict[str, str]) -> _Labelled:
        """The rows whose names match the pattern of a label; the first match counts."""
        labels = np.full(len(events), NONE)
        for label, pattern in reversed(patterns.items()):
            labels[events.name.like(pattern)] = PRIORITY.index(label)
        return cls.of(events, labels)

    @classmethod
    def all(cls, label: str, threads: Int64s, starts: Int64s, ends: Int64s) -> _Labelled:
        """Intervals with one label."""
        return cls(threads, starts, ends, np.full(len(threads), PRIORITY.index(label)))


def _evidence(trace: Trace) -> Iterator[_Labelled]:
    """What every table with thread events says."""
    ranges = trace.ranges[trace.ranges.end_ns != NONE]
    yield _calls(trace)
    yield _Labelled.like(trace.ops, {"cold_start": COMPILING_OPS, "input": LOADING})
    yield _Labelled.all("cold_start", *planning_spans(trace, LOADING, LONGEST_PYTHON_NS))
    yield _captures(trace.api)
    yield _trials(trace)
    yield _Labelled.like(ranges, {"cold_start": COMPILING_RANGES, "input": LOADING})
    yield _Labelled.like(trace.python, {"cold_start": COMPILING, "input": LOADING})
    yield _Labelled.like(trace.overhead, {"cold_start": DRIVER_LOADING, "profiler": PROFILING})
    yield _Labelled.like(trace.osrt, {"input": OS_READ, WAITING: OS_BLOCK})
    # The outermost ops cover everything inside them.
    yield _Labelled.of(trace.ops, np.where(trace.ops.parent == NONE, PRIORITY.index("dispatch"), NONE))
    yield _profiler_frames(trace.python)
    yield from _lookups(trace)


def _lookups(trace: Trace) -> Iterator[_Labelled]:
    """Bursts in which files are looked up: an import, or, where most steps have some, the program's own reading."""
    lookups, steps = trace.osrt[trace.osrt.name.like(OS_LOOKUP) & (trace.osrt.thread != NONE)], trace.all_steps
    starts, ends = lookups.start_ns, lookups.end_ns + BURST_NS
    last = int(steps.end_ns.max(initial=0))
    step = np.where(starts < last, np.searchsorted(steps.start_ns, starts, side="right"), 0)
    in_each = np.bincount(step, minlength=len(steps) + 1)[1:]
    own = (step > 0) & bool(len(in_each) and np.median(in_each) > 0)
    line = LaneTimes.of(starts, ends)
    for label, chosen in (("cold_start", ~own), ("input", own)):
        # Close the short breaks between the file operations of one import.
        of = lookups.thread[chosen]
        bursts = union(line.places(of, starts[chosen]), line.places(of, ends[chosen]))
        thread, begin, end = line.parts(bursts)
        yield _Labelled.all(label, thread, begin, end - BURST_NS)


def _profiler_frames(python: Python) -> _Labelled:
    """The profiler's own Python frames, without the program's frames that they call (a decorator wraps a whole run).

    Helpers that the profiler calls are its own as well.
    """
    profiling = np.append(python.name.like(PROFILING), False)
    is_helper = python.name.like(PROFILER_HELPERS)
    called = _called(profiling, python.parent)
    for _ in range(HELPER_LEVELS):
        profiling[called[is_helper[called]]] = True
        called = _called(profiling, python.parent)
    on_thread = python.thread != NONE
    own, inner = python[profiling[:-1] & on_thread], python[called[on_thread[called]]]
    line = LaneTimes.of(own.start_ns, own.end_ns, inner.start_ns, inner.end_ns)
    profiler, program = (
        union(line.places(some.thread, some.start_ns), line.places(some.thread, some.end_ns)) for some in (own, inner)
    )
    return _Labelled.all("profiler", *line.parts(difference(profiler, program)))


def _called(frames: Bools, parents: Int64s) -> Int64s:
    """Frames that one of these calls, and that are none of them; the last mark is of none."""
    return np.flatnonzero(frames[parents] & ~frames[:-1])


def _captures(api: Api) -> _Labelled:
    """From the start to the end of each capture: launches in between only build a graph."""
    marks = np.flatnonzero(api.name.like(f"{BEGIN_CAPTURE}|{END_CAPTURE}"))
    marks = marks[np.lexsort((api.start_ns[marks], api.thread[marks]))]
    first, following = marks[:-1], marks[1:]
    spans = api.name.like(BEGIN_CAPTURE)[first] & (api.thread[first] == api.thread[following])
    first, following = first[spans], following[spans]
    labels = np.full(len(first), PRIORITY.index("cold_start"))
    return _Labelled(api.thread[first], api.start_ns[first], api.end_ns[following], labels)


def _trials(trace: Trace) -> _Labelled:
    """When a library tries its algorithms: each is launched between two events, and waited for. A program times its own
    kernels in the same way, but not within one op."""
    api, found = trace.api, list[tuple[int, int, int]]()
    launches, records, waits = (api.name.like(pattern) for pattern in (LAUNCH, EVENT_RECORD, HOST_WAIT))
    of_event = api.name.like(EVENT_WAIT)
    known = api.op_id != NONE
    of_library = trace.gpu.api_id[trace.gpu.name.like(TRIED_KERNEL)]
    known[of_library[of_library != NONE]] = True
    rows = np.flatnonzero((launches | records | waits) & np.isin(api.thread, np.unique(api.thread[of_event])))
    for thread, own in grouped(rows, api.thread[rows]):
        ends = np.flatnonzero(waits[own])
        # Each group ends with a wait; what follows the last one is in none.
        group = np.searchsorted(ends, np.arange(len(own)))
        launched, timed, of_known = (
            np.bincount(group, marked[own], len(ends) + 1)[:-1] for marked in (launches, records, launches & known)
        )
        is_trial = of_event[own[ends]] & (launched > 0) & (timed > 1)
        op = api.op_id[own[ends]]
        goes_on = is_trial[1:] & is_trial[:-1] & (op[1:] == op[:-1])
        first = np.flatnonzero(np.append(True, ~goes_on)[: len(ends)])
        for begin, beyond in pairwise([*first.tolist(), len(ends)]):
            many = beyond - begin
            if many > MOST_TIMED and is_trial[begin] and 2 * (of_known[begin:beyond] > 0).sum() > many:
                opening = np.flatnonzero(records[own] & (group == begin))[-2]
                before = own[:opening][~records[own[:opening]]][-1:]
                start = int(api.end_ns[before[0]]) if len(before) else int(api.start_ns[own[opening]])
                found.append((thread, start, int(api.end_ns[own[ends[beyond - 1]]])))
    return _Labelled.all("cold_start", *np.array(found, np.int64).reshape(-1, 3).T)


def capture_spans(api: Api) -> Spans:
    """When any thread captures a graph."""
    captures = _captures(api)
    return union(captures.start, captures.end)


def _calls(trace: Trace) -> _Labelled:
    """API calls, by what each waits for."""
    names = trace.api.name
    labels = np.full(len(names), PRIORITY.index("dispatch"))
    labels[names.like(COPY) & ~names.like(ASYNC_COPY)] = PRIORITY.index("transfer")
    labels[pageable_copies(trace)] = PRIORITY.index("transfer")
    for label, pattern in (("sync", HOST_WAIT), ("memory", ALLOCATE), ("cold_start", LOAD)):
        labels[names.like(pattern)] = PRIORITY.index(label)
    for calls in (_launches_of_new_code(trace), _slow_first_calls(trace)):
        labels[calls] = PRIORITY.index("cold_start")
    return _Labelled.of(trace.api, labels)


def _launches_of_new_code(trace: Trace) -> Int64s:
    """Calls that launched a kernel for the first time, or the first one of an op of that name, and took as long as
    loading code takes."""
    gpu, api = trace.gpu, trace.api
    launched = np.flatnonzero(gpu.api_id != NONE)  # in the order of their start, as all of the table
    of_ops = launched[gpu.op_id[launched] != NONE]
    first = (
        launched[_first_of_each(gpu.name.codes[launched])],
        of_ops[_first_of_each(trace.ops.name.codes[gpu.op_id[of_ops]])],
    )
    calls = gpu.api_id[np.concatenate(first)]
    slow = (api.end_ns - api.start_ns)[calls] > FIRST_LAUNCH_NS
    return calls[slow & api.name.like(LAUNCH)[calls]]


def _slow_first_calls(trace: Trace) -> Int64s:
    """Allocations and frees that are far longer than others, the wait for the device aside, in the first op of its
    name, or, outside ops, before the first launch of a kernel: a library is initialised there, which calls cudaFree(0)
    to create a context."""
    api = trace.api
    calls = np.flatnonzero(api.name.like(ALLOCATE))
    if not len(calls):
        return calls
    busy = union(trace.gpu.start_ns, trace.gpu.end_ns)
    waited = covered_before(busy, api.end_ns[calls]) - covered_before(busy, api.start_ns[calls])
    length = (api.end_ns - api.start_ns)[calls] - waited
    slow = length > max(FIRST_LAUNCH_NS, SLOW_FIRST_CALL * float(np.median(length)))
    of_op = api.op_id[calls]
    in_first_op = np.isin(of_op, _first_of_each(trace.ops.name.codes))
    return calls[slow & np.where(of_op == NONE, _before_new_code(trace, calls), in_first_op)]


def _before_new_code(trace: Trace, calls: Int64s) -> Bools:
    """Whether the next launch on the same thread after each call is the first one of its kernel."""
    gpu, api = trace.gpu, trace.api
    launched = np.flatnonzero(gpu.api_id != NONE)
    is_first = np.zeros(len(launched) + 1, bool)
    is_first[_first_of_each(gpu.name.codes[launched])] = True
    launching = gpu.api_id[launched]
    line = LaneTimes.of(api.start_ns[launching], api.end_ns[calls])
    places = line.places(api.thread[launching], api.start_ns[launching])
    order = np.argsort(places, kind="stable")
    following = np.searchsorted(places[order], line.places(api.thread[calls], api.end_ns[calls]))
    following = np.append(order, NONE)[following]
    return is_first[following] & (np.append(api.thread[launching], NONE)[following] == api.thread[calls])


def _first_of_each(codes: Int64s) -> Int64s:
    """Where each code stands first."""
    return np.unique(codes, return_index=True)[1]


def pageable_copies(trace: Trace) -> Int64s:
    """Calls whose copy has pageable memory at one end: they return when the data is staged, or the copy done."""
    gpu = trace.gpu
    pageable = gpu.source_memory.equal("Pageable") | gpu.target_memory.equal("Pageable")
    return gpu.api_id[pageable & (gpu.api_id != NONE)]
