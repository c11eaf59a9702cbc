"""Every table of a trace, and every column, with its type and meaning.

Times are integer nanoseconds from the trace's own zero (``meta``'s ``epoch_ns`` says where that lies).
A row's *id* is its position in its table; ``api_id``, ``op_id``, ``parent`` and ``thread`` hold such
positions. A value that the source does not record is null, never zero, except in the columns marked `required`.
`warpline.trace.repair` makes a reader's rows keep what is said here.
"""

from __future__ import annotations

from functools import cache

import polars as pl

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
from warpline.trace.table import Column, Names, Table

MIGRATION = "^Unified"
"""Kind of copy in which pages of unified memory move by themselves: no call launches them, no stream orders them."""
START = Column[Int64s](TIME, "start, ns from the trace's zero", required=True)
END = Column[Int64s](TIME, "end, ns from the trace's zero; never before start_ns", required=True)
OPEN_END = Column[Int64s](TIME, END.meaning + "; null if the range was never closed")
THREAD = Column[Int64s](ID, "row of `threads`", required=True)
ANY_THREAD = Column[Int64s](ID, "row of `threads`, where recorded")
ARGS_OFFSET = Column[Int64s](pl.Int64, "where the event's raw arguments lie in the (uncompressed) Kineto file")
ARGS_LENGTH = Column[Int64s](pl.UInt32, "their length in bytes")
PROCESS = Column[Int64s](pl.Int64, "process that issued it; joins are by (process, correlation)")
CORRELATION = Column[Int64s](pl.Int64, "CUPTI or roctracer correlation id, unique within its process")


class Gpu(Table):
    """Kernels, copies, memsets and graphs that a device ran, by start time."""

    kind = Column[Names](
        NAME, "kernel, memcpy, memset, decompress, or graph (a CUDA-graph replay recorded as one bar)", required=True
    )
    name = Column[Names](
        NAME, "demangled kernel name, or what Kineto or nsys calls the copy, set or graph", required=True
    )
    short_name = Column[Names](NAME, "kernel name without namespaces, templates and arguments, where recorded")
    device = Column[Int64s](pl.Int32, "device ordinal", bounds=ORDINAL)
    context = Column[Int64s](pl.Int64, "CUDA context")
    green_context = Column[Int64s](pl.Int64, "green context (nsys); null where there is none")
    stream = Column[Int64s](pl.Int64, "stream")
    start_ns, end_ns = START, END
    process, correlation = PROCESS, CORRELATION
    external_id = Column[Int64s](pl.Int64, "Kineto's External id of the launching op")
    api_id = Column[Int64s](ID, "row of `api` that launched it; null when no launch was recorded")
    op_id = Column[Int64s](ID, "row of `ops`: the innermost op around the launch")
    graph_id = Column[Int64s](pl.Int64, "CUDA graph it belongs to (nsys: graphId or graphExecId; Kineto: graph id)")
    graph_node_id = Column[Int64s](pl.Int64, "node within the graph")
    grid_x = Column[Int64s](pl.Int32, "blocks in x", bounds=COUNT)
    grid_y = Column[Int64s](pl.Int32, "blocks in y", bounds=COUNT)
    grid_z = Column[Int64s](pl.Int32, "blocks in z", bounds=COUNT)
    block_x = Column[Int64s](pl.Int32, "threads in x", bounds=PER_BLOCK)
    block_y = Column[Int64s](pl.Int32, "threads in y", bounds=PER_BLOCK)
    block_z = Column[Int64s](pl.Int32, "threads in z", bounds=PER_BLOCK)
    registers = Column[Int64s](pl.Int32, "registers per thread", bounds=PER_BLOCK)
    shared_bytes = Column[Int64s](pl.Int64, "shared memory per block, static and dynamic together", bounds=BYTES)
    shared_static_bytes = Column[Int64s](pl.Int64, "static part (nsys)", bounds=BYTES)
    shared_dynamic_bytes = Column[Int64s](pl.Int64, "dynamic part (nsys)", bounds=BYTES)
    bytes = Column[Int64s](pl.Int64, "bytes copied or set", bounds=BYTES)
    address = Column[Int64s](pl.Int64, "virtual address of a unified-memory migration")
    copy_kind = Column[Names](NAME, "HtoD, DtoH, DtoD, HtoH, PtoP, UnifiedHtoD, UnifiedDtoH, UnifiedDtoD")
    source_memory = Column[Names](NAME, "Pageable, Pinned, Device, Array, Managed or Unknown")
    target_memory = Column[Names](NAME, "likewise; for a memset, the memory that was set")
    args_offset, args_length = ARGS_OFFSET, ARGS_LENGTH


class Api(Table):
    """CUDA runtime and driver calls (HIP likewise), by start time."""

    name = Column[Names](NAME, "function without its version suffix", required=True)
    layer = Column[Names](NAME, "runtime or driver", required=True)
    thread = THREAD
    start_ns, end_ns = START, END
    process, correlation = PROCESS, CORRELATION
    external_id = Column[Int64s](pl.Int64, "Kineto's External id of the op around it")
    op_id = Column[Int64s](ID, "row of `ops`: the innermost op around the call")
    return_code = Column[Int64s](pl.Int32, "0 is success; null where not recorded")
    args_offset, args_length = ARGS_OFFSET, ARGS_LENGTH


class Ops(Table):
    """Framework ops on the CPU, by thread and start time."""

    name = Column[Names](NAME, "op, for example aten::mm", required=True)
    thread = THREAD
    start_ns, end_ns = START, END
    parent = Column[Int64s](ID, "row of the enclosing op on the same thread")
    depth = Column[Int64s](pl.UInt16, "number of enclosing ops")
    external_id = Column[Int64s](pl.Int64, "Kineto's External id")
    shapes = Column[Names](NAME, "Input Dims, as JSON text", most_chars=TEXT_CHARS)
    dtypes = Column[Names](NAME, "Input type, as JSON text", most_chars=TEXT_CHARS)
    strides = Column[Names](NAME, "Input Strides, as JSON text", most_chars=TEXT_CHARS)
    concrete = Column[Names](NAME, "Concrete Inputs (scalar arguments), as JSON text", most_chars=TEXT_CHARS)
    sequence = Column[Int64s](pl.Int64, "autograd sequence number, shared by a forward op and its backward node")
    forward_thread = Column[Int64s](pl.Int64, "Fwd thread id: non-zero on backward ops")
    forward_op = Column[Int64s](ID, "row of the forward op that this backward op differentiates")
    stack = Column[Names](
        NAME,
        "call stack recorded with the op (before torch 1.13), innermost frame first, ';' between",
        most_chars=TEXT_CHARS,
    )
    frame = Column[Int64s](ID, "row of `python`: the innermost Python frame around the op")
    module = Column[Names](NAME, "innermost nn.Module around the op, where Python frames are recorded")
    args_offset, args_length = ARGS_OFFSET, ARGS_LENGTH


class Ranges(Table):
    """NVTX ranges, record_function annotations and profiler steps, by thread and start time."""

    name = Column[Names](NAME, "text of the range", required=True)
    domain = Column[Names](NAME, "NVTX domain; null for the default one and for record_function")
    style = Column[Names](
        NAME, "pushpop, startend, mark, annotation (record_function) or gpu (its projection)", required=True
    )
    thread = Column[Int64s](ID, "row of `threads`; null for style gpu")
    start_ns, end_ns = START, OPEN_END
    gpu_start_ns = Column[Int64s](TIME, "start of the first GPU work launched within the range")
    gpu_end_ns = Column[Int64s](TIME, "end of the last GPU work launched within the range")
    parent = Column[Int64s](ID, "row of the enclosing range on the same thread")
    depth = Column[Int64s](pl.UInt16, "number of enclosing ranges")
    range_id = Column[Int64s](pl.Int64, "NVTX range id (start/end ranges)")
    end_thread = Column[Int64s](ID, "row of `threads` that ended a start/end range")
    external_id = Column[Int64s](pl.Int64, "Kineto's External id")
    device = Column[Int64s](pl.Int32, "device, for style gpu", bounds=DEVICE)
    stream = Column[Int64s](pl.Int64, "stream, for style gpu")
    args_offset, args_length = ARGS_OFFSET, ARGS_LENGTH


class Python(Table):
    """Python frames (recorded with with_stack=True), by thread and start time."""

    name = Column[Names](
        NAME, "frame as recorded, for example `train.py(12): step`, or `nn.Module: Linear_0`", required=True
    )
    thread = THREAD
    start_ns, end_ns = START, END
    parent = Column[Int64s](ID, "row of the calling frame")
    depth = Column[Int64s](pl.UInt16, "number of enclosing frames")
    module = Column[Names](NAME, "nn.Module's name where the frame is a module's call")


class Syncs(Table):
    """Synchronization records of the GPU."""

    kind = Column[Names](NAME, "event, stream_wait_event, stream or context", required=True)
    device = Column[Int64s](pl.Int32, "device", bounds=DEVICE)
    context = Column[Int64s](pl.Int64, "context")
    stream = Column[Int64s](pl.Int64, "stream")
    start_ns, end_ns = START, END
    process, correlation = PROCESS, CORRELATION
    event_id = Column[Int64s](pl.Int64, "event waited for")
    api_id = Column[Int64s](ID, "row of `api`")


class Events(Table):
    """CUDA events recorded into a stream."""

    device = Column[Int64s](pl.Int32, "device", bounds=DEVICE)
    context = Column[Int64s](pl.Int64, "context")
    stream = Column[Int64s](pl.Int64, "stream")
    process, correlation = PROCESS, CORRELATION
    event_id = Column[Int64s](pl.Int64, "event; handles are reused")
    api_id = Column[Int64s](ID, "row of `api`")


class OsRuntime(Table):
    """OS runtime calls (nsys)."""

    name = Column[Names](NAME, "libc function", required=True)
    thread = THREAD
    start_ns, end_ns = START, END
    return_code = Column[Int64s](pl.Int64, "its return value")
    nesting = Column[Int64s](pl.Int32, "nesting level")


class Memory(Table):
    """Allocations and frees."""

    thread = ANY_THREAD
    time_ns = Column[Int64s](TIME, "when", required=True)
    bytes = Column[Int64s](pl.Int64, "size; negative when freed", bounds=SIGNED_BYTES)
    device = Column[Int64s](pl.Int32, "device; -1 or null for the CPU", bounds=DEVICE)
    device_type = Column[Int64s](pl.Int32, "torch's DeviceType (0 CPU, 1 CUDA, 6 HIP)")
    address = Column[Int64s](pl.Int64, "address")
    allocated_bytes = Column[Int64s](pl.Int64, "allocated by the framework after the event", bounds=BYTES)
    reserved_bytes = Column[Int64s](pl.Int64, "reserved by the framework's allocator after the event", bounds=BYTES)


class Overhead(Table):
    """Profiler overhead, and lazy loading."""

    name = Column[Names](NAME, "what the profiler or the driver did", required=True)
    thread = ANY_THREAD
    start_ns, end_ns = START, END


class Faults(Table):
    """Page faults of unified memory (nsys)."""

    kind = Column[Names](NAME, "cpu or gpu", required=True)
    process = Column[Int64s](pl.Int64, "process")
    device = Column[Int64s](pl.Int32, "device, for gpu faults", bounds=DEVICE)
    start_ns, end_ns = START, END
    address = Column[Int64s](pl.Int64, "virtual address")
    count = Column[Int64s](pl.Int64, "page faults in the group", bounds=COUNT)


class Dataflow(Table):
    """Tensors that ops took and made in a few more steps, without times (`warpline run`)."""

    step = Column[Int64s](pl.Int32, "position of the step from 0; -1 before the first")
    call = Column[Int64s](ID, "number of the op's call, in order of begin", required=True)
    op = Column[Names](NAME, "op, for example aten::mm", required=True)
    lane = Column[Int64s](pl.Int32, "number of its thread; not a row of `threads`")
    parent = Column[Int64s](ID, "`call` of the enclosing op on the same thread")
    record_function = Column[Int64s](
        pl.Int64, "id of the call in those steps: Record function id of their Kineto trace"
    )
    direction = Column[Names](NAME, "in or out; null, with all that follow, for an op without tensors")
    argument = Column[Int64s](pl.Int32, "position among the inputs or outputs; tensors of a list share it")
    access = Column[Names](NAME, "read, write (not read before), update (read and written), make (new) or view")
    tensor = Column[Int64s](pl.Int64, "tensor; ids are reused once a tensor is gone")
    storage = Column[Int64s](pl.Int64, "memory that it lies in, which views share; ids are reused")
    offset = Column[Int64s](pl.Int64, "its first element in the storage", bounds=BYTES)
    extent = Column[Int64s](pl.Int64, "elements of the storage from its first to its last", bounds=BYTES)
    elements = Column[Int64s](pl.Int64, "elements", bounds=BYTES)
    item_bytes = Column[Int64s](pl.Int32, "bytes per element", bounds=COUNT)
    shape = Column[Names](NAME, "shape, as JSON text", most_chars=TEXT_CHARS)
    dtype = Column[Names](NAME, "data type, as torch's C++ names it")
    device = Column[Names](NAME, "device, for example cuda:0")


class Counters(Table):
    """Sampled counters (GPU metrics of nsys)."""

    time_ns = Column[Int64s](TIME, "when", required=True)
    name = Column[Names](NAME, "metric", required=True)
    device = Column[Int64s](pl.Int32, "device", bounds=DEVICE)
    value = Column[Floats](pl.Float64, "value, finite")


class Threads(Table):
    """Threads of all processes."""

    process = Column[Int64s](pl.Int64, "process id; null when the file writes text there")
    tid = Column[Int64s](pl.Int64, "thread id; null when the file writes text there")
    name = Column[Texts](pl.String, "name of the thread, else the file's own label")
    priority = Column[Int64s](pl.Int32, "priority of that name as nsys records it (T-Pri in its reports)")
    process_name = Column[Texts](pl.String, "name of the process")


class Devices(Table):
    """Devices as the capture describes them."""

    device = Column[Int64s](pl.Int32, "device ordinal, each once", bounds=ORDINAL)
    name = Column[Texts](pl.String, "for example NVIDIA H200")
    compute_major = Column[Int64s](pl.Int32, "compute capability, major", bounds=PER_BLOCK)
    compute_minor = Column[Int64s](pl.Int32, "compute capability, minor", bounds=PER_BLOCK)
    sm_count = Column[Int64s](pl.Int32, "streaming multiprocessors (compute units)", bounds=PER_DEVICE)
    memory_bytes = Column[Int64s](pl.Int64, "device memory", bounds=RATE)
    memory_bandwidth = Column[Int64s](pl.Int64, "theoretical bytes per second, where recorded", bounds=RATE)
    l2_bytes = Column[Int64s](pl.Int64, "L2 cache, where recorded", bounds=RATE)
    clock_hz = Column[Int64s](pl.Int64, "maximum SM clock, where recorded", bounds=RATE)
    warp_size = Column[Int64s](pl.Int32, "threads per warp", bounds=PER_DEVICE)
    max_threads_per_sm = Column[Int64s](pl.Int32, "resident threads per SM", bounds=PER_DEVICE)
    registers_per_sm = Column[Int64s](pl.Int64, "registers per SM", bounds=PER_DEVICE)
    shared_bytes_per_sm = Column[Int64s](pl.Int64, "shared memory per SM", bounds=RATE)


class LongNames(Table):
    """Names too long for a column: the shortened ones, as the other tables have them, and the whole of each."""

    name = Column[Texts](pl.String, "the shortened name, as the other tables have it", required=True)
    whole = Column[Texts](pl.String, "the name in full", required=True, most_chars=WHOLE_CHARS)


class Steps(Table):
    """Training or inference steps, in order."""

    index = Column[Int64s](pl.Int32, "position from 0, as --steps counts")
    name = Column[Texts](pl.String, "name of the range or frame, or `repeat N`")
    start_ns, end_ns = START, END
    thread = Column[Int64s](ID, "row of `threads` on which the range or frame lies; null for steps found on the device")
    found_by = Column[Texts](
        pl.String, "profiler_step, range, python (calls of a function), repetition (of work) or optimizer"
    )


class Meta(Table):
    """Facts about the file and the capture."""

    key = Column[Texts](pl.String, "fact")
    value = Column[Texts](pl.String, "its value")


class Health(Table):
    """What is wrong or doubtful about the profile."""

    code = Column[Texts](pl.String, "stable word")
    severity = Column[Texts](pl.String, "error, warning or info")
    message = Column[Texts](pl.String, "sentence for a person")


TABLES: dict[str, type[Table]] = {
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
    unknown = set(known) - set(columns)
    if unknown:
        raise ValueError(f"{table} has undocumented columns: {sorted(unknown)}")
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
