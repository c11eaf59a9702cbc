"""Every table of a trace, and every column, with its type and meaning.

Times are integer nanoseconds from the trace's own zero (``meta``'s ``epoch_ns`` says where that lies).
A row's *id* is its position in its table; ``api_id``, ``op_id``, ``parent`` and ``thread`` hold such
positions. A value that the source does not record is null, never zero, except in the columns marked `required`.
`warpline.trace.repair` makes a reader's rows keep what is said here.
"""

from __future__ import annotations

from functools import cache

import polars as pl

from warpline.errors import WarplineError, meant
from warpline.trace.arrays import Floats, Int64s, Texts
from warpline.trace.column_rules import (
    BYTES,
    COUNT,
    DEVICE,
    ID,
    NAME,
    ORDINAL,
    PER_BLOCK,
    PER_DEVICE,
    RATE,
    SIGNED_BYTES,
    TEXT_CHARS,
    TIME,
    WHOLE_CHARS,
)
from warpline.trace.table import Names, TraceColumn, TraceTable

MIGRATION = "^Unified"
"""Kind of copy in which pages of unified memory move by themselves: no call launches them, no stream orders them."""
START = TraceColumn[Int64s](TIME, "start, ns from the trace's zero", required=True)
END = TraceColumn[Int64s](TIME, "end, ns from the trace's zero; never before start_ns", required=True)
OPEN_END = TraceColumn[Int64s](TIME, END.meaning + "; null if the range was never closed")
THREAD = TraceColumn[Int64s](ID, "row of `threads`", required=True)
ANY_THREAD = TraceColumn[Int64s](ID, "row of `threads`, where recorded")
ARGS_OFFSET = TraceColumn[Int64s](pl.Int64, "where the event's raw arguments lie in the (uncompressed) Kineto file")
ARGS_LENGTH = TraceColumn[Int64s](pl.UInt32, "their length in bytes")
PROCESS = TraceColumn[Int64s](pl.Int64, "process that issued it; joins are by (process, correlation)")
CORRELATION = TraceColumn[Int64s](
    pl.Int64, "CUPTI's or roctracer's correlation id, unique in its process; 0 means none"
)


class Gpu(TraceTable):
    """Kernels, copies, memsets and graphs that a device ran, by start time."""

    kind = TraceColumn[Names](
        NAME, "kernel, memcpy, memset, decompress, or graph (a CUDA-graph replay recorded as one bar)", required=True
    )
    name = TraceColumn[Names](
        NAME, "demangled kernel name, or what Kineto or nsys calls the copy, set or graph", required=True
    )
    short_name = TraceColumn[Names](NAME, "kernel name without namespaces, templates and arguments, where recorded")
    device = TraceColumn[Int64s](pl.Int32, "device ordinal", bounds=ORDINAL)
    context = TraceColumn[Int64s](pl.Int64, "CUDA context")
    green_context = TraceColumn[Int64s](pl.Int64, "green context (nsys); null where there is none")
    stream = TraceColumn[Int64s](pl.Int64, "stream")
    start_ns, end_ns = START, END
    process, correlation = PROCESS, CORRELATION
    external_id = TraceColumn[Int64s](pl.Int64, "Kineto's External id of the launching op")
    api_id = TraceColumn[Int64s](ID, "row of `api` that launched it; null when no launch was recorded")
    op_id = TraceColumn[Int64s](ID, "row of `ops`: the innermost op around the launch")
    graph_id = TraceColumn[Int64s](
        pl.Int64, "CUDA graph it belongs to (nsys: graphId or graphExecId; Kineto: graph id)"
    )
    graph_node_id = TraceColumn[Int64s](pl.Int64, "node within the graph")
    grid_x = TraceColumn[Int64s](pl.Int32, "blocks in x", bounds=COUNT)
    grid_y = TraceColumn[Int64s](pl.Int32, "blocks in y", bounds=COUNT)
    grid_z = TraceColumn[Int64s](pl.Int32, "blocks in z", bounds=COUNT)
    block_x = TraceColumn[Int64s](pl.Int32, "threads in x", bounds=PER_BLOCK)
    block_y = TraceColumn[Int64s](pl.Int32, "threads in y", bounds=PER_BLOCK)
    block_z = TraceColumn[Int64s](pl.Int32, "threads in z", bounds=PER_BLOCK)
    registers = TraceColumn[Int64s](pl.Int32, "registers per thread", bounds=PER_BLOCK)
    shared_bytes = TraceColumn[Int64s](pl.Int64, "shared memory per block, static and dynamic together", bounds=BYTES)
    shared_static_bytes = TraceColumn[Int64s](pl.Int64, "static part (nsys)", bounds=BYTES)
    shared_dynamic_bytes = TraceColumn[Int64s](pl.Int64, "dynamic part (nsys)", bounds=BYTES)
    bytes = TraceColumn[Int64s](pl.Int64, "bytes copied or set", bounds=BYTES)
    address = TraceColumn[Int64s](pl.Int64, "virtual address of a unified-memory migration")
    copy_kind = TraceColumn[Names](NAME, "HtoD, DtoH, DtoD, HtoH, PtoP, UnifiedHtoD, UnifiedDtoH, UnifiedDtoD")
    source_memory = TraceColumn[Names](NAME, "Pageable, Pinned, Device, Array, Managed or Unknown")
    target_memory = TraceColumn[Names](NAME, "likewise; for a memset, the memory that was set")
    args_offset, args_length = ARGS_OFFSET, ARGS_LENGTH


class Api(TraceTable):
    """CUDA runtime and driver calls (HIP likewise), by start time."""

    name = TraceColumn[Names](NAME, "function without its version suffix", required=True)
    layer = TraceColumn[Names](NAME, "runtime or driver", required=True)
    thread = THREAD
    start_ns, end_ns = START, END
    process, correlation = PROCESS, CORRELATION
    external_id = TraceColumn[Int64s](pl.Int64, "Kineto's External id of the op around it")
    op_id = TraceColumn[Int64s](ID, "row of `ops`: the innermost op around the call")
    return_code = TraceColumn[Int64s](pl.Int32, "0 is success; null where not recorded")
    args_offset, args_length = ARGS_OFFSET, ARGS_LENGTH


class Ops(TraceTable):
    """Framework ops on the CPU, by thread and start time."""

    name = TraceColumn[Names](NAME, "op, for example aten::mm", required=True)
    thread = THREAD
    start_ns, end_ns = START, END
    parent = TraceColumn[Int64s](ID, "row of the enclosing op on the same thread")
    depth = TraceColumn[Int64s](pl.UInt32, "number of enclosing ops")
    external_id = TraceColumn[Int64s](pl.Int64, "Kineto's External id")
    shapes = TraceColumn[Names](NAME, "Input Dims, as JSON text", most_chars=TEXT_CHARS)
    dtypes = TraceColumn[Names](NAME, "Input type, as JSON text", most_chars=TEXT_CHARS)
    strides = TraceColumn[Names](NAME, "Input Strides, as JSON text", most_chars=TEXT_CHARS)
    concrete = TraceColumn[Names](NAME, "Concrete Inputs (scalar arguments), as JSON text", most_chars=TEXT_CHARS)
    sequence = TraceColumn[Int64s](pl.Int64, "autograd sequence number, shared by a forward op and its backward node")
    forward_thread = TraceColumn[Int64s](pl.Int64, "Fwd thread id: non-zero on backward ops")
    forward_op = TraceColumn[Int64s](ID, "row of the forward op that this backward op differentiates")
    stack = TraceColumn[Names](
        NAME,
        "call stack recorded with the op (before torch 1.13), innermost frame first, ';' between",
        most_chars=TEXT_CHARS,
    )
    frame = TraceColumn[Int64s](ID, "row of `python`: the innermost Python frame around the op")
    module = TraceColumn[Names](NAME, "innermost nn.Module around the op, where Python frames are recorded")
    args_offset, args_length = ARGS_OFFSET, ARGS_LENGTH


class Ranges(TraceTable):
    """NVTX ranges, record_function annotations and profiler steps, by thread and start time."""

    name = TraceColumn[Names](NAME, "text of the range", required=True)
    domain = TraceColumn[Names](NAME, "NVTX domain; null for the default one and for record_function")
    style = TraceColumn[Names](
        NAME, "pushpop, startend, mark, annotation (record_function) or gpu (its projection)", required=True
    )
    thread = TraceColumn[Int64s](ID, "row of `threads`; null for style gpu")
    start_ns, end_ns = START, OPEN_END
    gpu_start_ns = TraceColumn[Int64s](TIME, "start of the first GPU work launched within the range")
    gpu_end_ns = TraceColumn[Int64s](TIME, "end of the last GPU work launched within the range")
    parent = TraceColumn[Int64s](ID, "row of the enclosing range on the same thread")
    depth = TraceColumn[Int64s](pl.UInt32, "number of enclosing ranges")
    range_id = TraceColumn[Int64s](pl.Int64, "NVTX range id (start/end ranges)")
    end_thread = TraceColumn[Int64s](ID, "row of `threads` that ended a start/end range")
    external_id = TraceColumn[Int64s](pl.Int64, "Kineto's External id")
    device = TraceColumn[Int64s](pl.Int32, "device, for style gpu", bounds=DEVICE)
    stream = TraceColumn[Int64s](pl.Int64, "stream, for style gpu")
    args_offset, args_length = ARGS_OFFSET, ARGS_LENGTH


class Python(TraceTable):
    """Python frames (recorded with with_stack=True), by thread and start time."""

    name = TraceColumn[Names](
        NAME, "frame as recorded, for example `train.py(12): step`, or `nn.Module: Linear_0`", required=True
    )
    thread = THREAD
    start_ns, end_ns = START, END
    parent = TraceColumn[Int64s](ID, "row of the calling frame")
    depth = TraceColumn[Int64s](pl.UInt32, "number of enclosing frames")
    module = TraceColumn[Names](NAME, "nn.Module's name where the frame is a module's call")


class Syncs(TraceTable):
    """Synchronization records of the GPU."""

    kind = TraceColumn[Names](NAME, "event, stream_wait_event, stream or context", required=True)
    device = TraceColumn[Int64s](pl.Int32, "device", bounds=DEVICE)
    context = TraceColumn[Int64s](pl.Int64, "context")
    stream = TraceColumn[Int64s](pl.Int64, "stream")
    start_ns, end_ns = START, END
    process, correlation = PROCESS, CORRELATION
    event_id = TraceColumn[Int64s](pl.Int64, "event waited for")
    api_id = TraceColumn[Int64s](ID, "row of `api`")


class Events(TraceTable):
    """CUDA events recorded into a stream."""

    device = TraceColumn[Int64s](pl.Int32, "device", bounds=DEVICE)
    context = TraceColumn[Int64s](pl.Int64, "context")
    stream = TraceColumn[Int64s](pl.Int64, "stream")
    process, correlation = PROCESS, CORRELATION
    event_id = TraceColumn[Int64s](pl.Int64, "event; handles are reused")
    api_id = TraceColumn[Int64s](ID, "row of `api`")


class OsRuntime(TraceTable):
    """OS runtime calls (nsys)."""

    name = TraceColumn[Names](NAME, "libc function", required=True)
    thread = THREAD
    start_ns, end_ns = START, END
    return_code = TraceColumn[Int64s](pl.Int64, "its return value")
    nesting = TraceColumn[Int64s](pl.Int32, "nesting level")


class Memory(TraceTable):
    """Allocations and frees."""

    thread = ANY_THREAD
    time_ns = TraceColumn[Int64s](TIME, "when", required=True)
    bytes = TraceColumn[Int64s](pl.Int64, "size; negative when freed", bounds=SIGNED_BYTES)
    device = TraceColumn[Int64s](pl.Int32, "device; -1 or null for the CPU", bounds=DEVICE)
    device_type = TraceColumn[Int64s](pl.Int32, "torch's DeviceType (0 CPU, 1 CUDA, 6 HIP)")
    address = TraceColumn[Int64s](pl.Int64, "address")
    allocated_bytes = TraceColumn[Int64s](pl.Int64, "allocated by the framework after the event", bounds=BYTES)
    reserved_bytes = TraceColumn[Int64s](
        pl.Int64, "reserved by the framework's allocator after the event", bounds=BYTES
    )


class Overhead(TraceTable):
    """Profiler overhead, and lazy loading."""

    name = TraceColumn[Names](NAME, "what the profiler or the driver did", required=True)
    thread = ANY_THREAD
    start_ns, end_ns = START, END


class Faults(TraceTable):
    """Page faults of unified memory (nsys)."""

    kind = TraceColumn[Names](NAME, "cpu or gpu", required=True)
    process = TraceColumn[Int64s](pl.Int64, "process")
    device = TraceColumn[Int64s](pl.Int32, "device, for gpu faults", bounds=DEVICE)
    start_ns, end_ns = START, END
    address = TraceColumn[Int64s](pl.Int64, "virtual address")
    count = TraceColumn[Int64s](pl.Int64, "page faults in the group", bounds=COUNT)


class Dataflow(TraceTable):
    """Tensors that ops took and made in a few more steps, without times (`warpline run`)."""

    step = TraceColumn[Int64s](pl.Int32, "position of the step from 0; -1 before the first")
    call = TraceColumn[Int64s](ID, "number of the op's call, in order of begin", required=True)
    op = TraceColumn[Names](NAME, "op, for example aten::mm", required=True)
    lane = TraceColumn[Int64s](pl.Int32, "number of its thread; not a row of `threads`")
    parent = TraceColumn[Int64s](ID, "`call` of the enclosing op on the same thread")
    record_function = TraceColumn[Int64s](
        pl.Int64, "id of the call in those steps: Record function id of their Kineto trace"
    )
    direction = TraceColumn[Names](NAME, "in or out; null, with all that follow, for an op without tensors")
    argument = TraceColumn[Int64s](pl.Int32, "position among the inputs or outputs; tensors of a list share it")
    access = TraceColumn[Names](NAME, "read, write (not read before), update (read and written), make (new) or view")
    tensor = TraceColumn[Int64s](pl.Int64, "tensor; ids are reused once a tensor is gone")
    storage = TraceColumn[Int64s](pl.Int64, "memory that it lies in, which views share; ids are reused")
    offset = TraceColumn[Int64s](pl.Int64, "its first element in the storage", bounds=BYTES)
    extent = TraceColumn[Int64s](pl.Int64, "elements of the storage from its first to its last", bounds=BYTES)
    elements = TraceColumn[Int64s](pl.Int64, "elements", bounds=BYTES)
    item_bytes = TraceColumn[Int64s](pl.Int32, "bytes per element", bounds=COUNT)
    shape = TraceColumn[Names](NAME, "shape, as JSON text", most_chars=TEXT_CHARS)
    dtype = TraceColumn[Names](NAME, "data type, as torch's C++ names it")
    device = TraceColumn[Names](NAME, "device, for example cuda:0")


class Counters(TraceTable):
    """Sampled counters (GPU metrics of nsys)."""

    time_ns = TraceColumn[Int64s](TIME, "when", required=True)
    name = TraceColumn[Names](NAME, "metric", required=True)
    device = TraceColumn[Int64s](pl.Int32, "device", bounds=DEVICE)
    value = TraceColumn[Floats](pl.Float64, "value, finite")


class Threads(TraceTable):
    """Threads of all processes."""

    process = TraceColumn[Int64s](pl.Int64, "process id; null when the file writes text there")
    tid = TraceColumn[Int64s](pl.Int64, "thread id; null when the file writes text there")
    name = TraceColumn[Texts](pl.String, "name of the thread, else the file's own label")
    priority = TraceColumn[Int64s](pl.Int32, "priority of that name as nsys records it (T-Pri in its reports)")
    process_name = TraceColumn[Texts](pl.String, "name of the process")


class Devices(TraceTable):
    """Devices as the capture describes them."""

    device = TraceColumn[Int64s](pl.Int32, "device ordinal, each once", bounds=ORDINAL)
    name = TraceColumn[Texts](pl.String, "for example NVIDIA H200")
    compute_major = TraceColumn[Int64s](pl.Int32, "compute capability, major", bounds=PER_BLOCK)
    compute_minor = TraceColumn[Int64s](pl.Int32, "compute capability, minor", bounds=PER_BLOCK)
    sm_count = TraceColumn[Int64s](pl.Int32, "streaming multiprocessors (compute units)", bounds=PER_DEVICE)
    memory_bytes = TraceColumn[Int64s](pl.Int64, "device memory", bounds=RATE)
    memory_bandwidth = TraceColumn[Int64s](pl.Int64, "theoretical bytes per second, where recorded", bounds=RATE)
    l2_bytes = TraceColumn[Int64s](pl.Int64, "L2 cache, where recorded", bounds=RATE)
    clock_hz = TraceColumn[Int64s](pl.Int64, "maximum SM clock, where recorded", bounds=RATE)
    warp_size = TraceColumn[Int64s](pl.Int32, "threads per warp", bounds=PER_DEVICE)
    max_threads_per_sm = TraceColumn[Int64s](pl.Int32, "resident threads per SM", bounds=PER_DEVICE)
    registers_per_sm = TraceColumn[Int64s](pl.Int64, "registers per SM", bounds=PER_DEVICE)
    shared_bytes_per_sm = TraceColumn[Int64s](pl.Int64, "shared memory per SM", bounds=RATE)


class LongNames(TraceTable):
    """Names too long for a column: the shortened ones, as the other tables have them, and the whole of each."""

    name = TraceColumn[Texts](pl.String, "the shortened name, as the other tables have it", required=True)
    whole = TraceColumn[Texts](pl.String, "the name in full", required=True, most_chars=WHOLE_CHARS)


class Steps(TraceTable):
    """Training or inference steps, in order."""

    index = TraceColumn[Int64s](pl.Int32, "position from 0, as --steps counts")
    name = TraceColumn[Texts](pl.String, "name of the range or frame, or `repeat N`")
    start_ns, end_ns = START, END
    thread = TraceColumn[Int64s](
        ID, "row of `threads` on which the range or frame lies; null for steps found on the device"
    )
    found_by = TraceColumn[Texts](
        pl.String,
        "profiler_step, range, python (calls of a function), repetition, tokens (their reads) or optimizer",
    )


class Meta(TraceTable):
    """Facts about the file and the capture."""

    key = TraceColumn[Texts](pl.String, "fact")
    value = TraceColumn[Texts](pl.String, "its value")


class Health(TraceTable):
    """What is wrong or doubtful about the profile."""

    code = TraceColumn[Texts](pl.String, "stable word")
    severity = TraceColumn[Texts](pl.String, "error, warning or info")
    message = TraceColumn[Texts](pl.String, "sentence for a person")


TABLES: dict[str, type[TraceTable]] = {
    "gpu": Gpu,
    "api": Api,
    "ops": Ops,
    "ranges": Ranges,
    "python": Python,
    "syncs": Syncs,
    "events": Events,
    "osrt": OsRuntime,
    "memory": Memory,
    "overhead": Overhead,
    "faults": Faults,
    "dataflow": Dataflow,
    "counters": Counters,
    "threads": Threads,
    "devices": Devices,
    "long_names": LongNames,
    "steps": Steps,
    "meta": Meta,
    "health": Health,
}


def empty(table: str) -> pl.DataFrame:
    """The table with its columns and no rows."""
    return _empty(table).clone()  # its own: a frame can be changed in place


@cache
def _empty(table: str) -> pl.DataFrame:
    return pl.DataFrame(schema={name: column.dtype for name, column in TABLES[table].columns.items()})


def conform(table: str, frame: pl.DataFrame, *, strict: bool = True) -> pl.DataFrame:
    """The frame with exactly the documented columns, in order: missing ones null, types as documented.

    A value that does not fit its type is an error, or null if not `strict`.
    """
    columns, known = TABLES[table].columns, frame.schema
    for name in known:
        if name not in columns:
            problem = f"the table {table} has no column {name!r}, which a reader fills"
            raise WarplineError("no-such-column", problem, meant(name, columns))
    if not len(frame):
        return empty(table)
    return frame.select(
        pl.lit(None, column.dtype).alias(name)
        if name not in known
        else pl.col(name)
        if known[name] == column.dtype
        else pl.col(name).cast(column.dtype, strict=strict)
        for name, column in columns.items()
    )
