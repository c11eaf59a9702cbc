"""Every table of a trace, and every column, with its type and meaning.

Times are integer nanoseconds from the trace's own zero (``meta``'s ``epoch_ns`` says where that lies).
A row's *id* is its position in its table; ``api_id``, ``op_id``, ``parent`` and ``thread`` hold such
positions. A value that the source does not record is null, never zero.
"""

from __future__ import annotations

import polars as pl
from polars.datatypes import DataTypeClass

from warpline.records import dataclass

ID = pl.UInt32
NAME = pl.Categorical
TIME = pl.Int64


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its type and what it means."""

    dtype: DataTypeClass
    meaning: str


Table = dict[str, Column]

_SPAN: Table = {
    "start_ns": Column(TIME, "begin, ns from the trace's zero"),
    "end_ns": Column(TIME, "end, ns from the trace's zero; never before start_ns"),
}
_THREAD: Table = {"thread": Column(ID, "row of `threads`")}
_ARGUMENTS: Table = {
    "args_offset": Column(pl.Int64, "where the event's raw arguments lie in the (uncompressed) Kineto file"),
    "args_length": Column(pl.UInt32, "their length in bytes"),
}
_CORRELATION: Table = {
    "process": Column(pl.Int64, "process that issued it; joins are by (process, correlation)"),
    "correlation": Column(pl.Int64, "CUPTI or roctracer correlation id, unique within its process"),
}

TABLES: dict[str, Table] = {
    # Things a device ran, by start time.
    "gpu": {
        "kind": Column(NAME, "kernel, memcpy, memset, decompress, or graph (a CUDA-graph replay recorded as one bar)"),
        "name": Column(NAME, "demangled kernel name, or what Kineto or nsys calls the copy, set or graph"),
        "short_name": Column(NAME, "kernel name without namespaces, templates and arguments, where recorded"),
        "device": Column(pl.Int32, "device ordinal"),
        "context": Column(pl.Int64, "CUDA context"),
        "green_context": Column(pl.Int64, "green context (nsys); null where there is none"),
        "stream": Column(pl.Int64, "stream"),
        **_SPAN,
        **_CORRELATION,
        "external_id": Column(pl.Int64, "Kineto's External id of the launching op"),
        "api_id": Column(ID, "row of `api` that launched it; null when no launch was recorded"),
        "op_id": Column(ID, "row of `ops`: the innermost op around the launch"),
        "graph_id": Column(pl.Int64, "CUDA graph it belongs to (nsys: graphId or graphExecId; Kineto: graph id)"),
        "graph_node_id": Column(pl.Int64, "node within the graph"),
        "grid_x": Column(pl.Int32, "blocks in x"),
        "grid_y": Column(pl.Int32, "blocks in y"),
        "grid_z": Column(pl.Int32, "blocks in z"),
        "block_x": Column(pl.Int32, "threads in x"),
        "block_y": Column(pl.Int32, "threads in y"),
        "block_z": Column(pl.Int32, "threads in z"),
        "registers": Column(pl.Int32, "registers per thread"),
        "shared_bytes": Column(pl.Int64, "shared memory per block, static and dynamic together"),
        "shared_static_bytes": Column(pl.Int64, "static part (nsys)"),
        "shared_dynamic_bytes": Column(pl.Int64, "dynamic part (nsys)"),
        "bytes": Column(pl.Int64, "bytes copied or set"),
        "address": Column(pl.Int64, "virtual address of a unified-memory migration"),
        "copy_kind": Column(NAME, "HtoD, DtoH, DtoD, HtoH, PtoP, UnifiedHtoD, UnifiedDtoH, UnifiedDtoD"),
        "source_memory": Column(NAME, "Pageable, Pinned, Device, Array, Managed or Unknown"),
        "target_memory": Column(NAME, "likewise; for a memset, the memory that was set"),
        **_ARGUMENTS,
    },
    # CUDA runtime and driver calls (HIP likewise), by start time.
    "api": {
        "name": Column(NAME, "function without its version suffix"),
        "layer": Column(NAME, "runtime or driver"),
        **_THREAD,
        **_SPAN,
        **_CORRELATION,
        "external_id": Column(pl.Int64, "Kineto's External id of the op around it"),
        "op_id": Column(ID, "row of `ops`: the innermost op around the call"),
        "return_code": Column(pl.Int32, "0 is success; null where not recorded"),
        **_ARGUMENTS,
    },
    # Framework ops on the CPU, by (thread, start).
    "ops": {
        "name": Column(NAME, "op, for example aten::mm"),
        **_THREAD,
        **_SPAN,
        "parent": Column(ID, "row of the enclosing op on the same thread"),
        "depth": Column(pl.UInt16, "number of enclosing ops"),
        "external_id": Column(pl.Int64, "Kineto's External id"),
        "shapes": Column(NAME, "Input Dims, as JSON text"),
        "dtypes": Column(NAME, "Input type, as JSON text"),
        "strides": Column(NAME, "Input Strides, as JSON text"),
        "concrete": Column(NAME, "Concrete Inputs (scalar arguments), as JSON text"),
        "sequence": Column(pl.Int64, "autograd sequence number, shared by a forward op and its backward node"),
        "forward_thread": Column(pl.Int64, "Fwd thread id: non-zero on backward ops"),
        "forward_op": Column(ID, "row of the forward op that this backward op differentiates"),
        "stack": Column(
            NAME, "call stack recorded with the op (before torch 1.13), innermost frame first, ';' between"
        ),
        "frame": Column(ID, "row of `python`: the innermost Python frame around the op"),
        "module": Column(NAME, "innermost nn.Module around the op, where Python frames are recorded"),
        **_ARGUMENTS,
    },
    # NVTX ranges, record_function annotations and profiler steps, by (thread, start).
    "ranges": {
        "name": Column(NAME, "text of the range"),
        "domain": Column(NAME, "NVTX domain; null for the default one and for record_function"),
        "style": Column(NAME, "pushpop, startend, mark, annotation (record_function) or gpu (its projection)"),
        **_THREAD,
        **_SPAN,
        "gpu_start_ns": Column(TIME, "begin of the first GPU work launched within the range"),
        "gpu_end_ns": Column(TIME, "end of the last GPU work launched within the range"),
        "parent": Column(ID, "row of the enclosing range on the same thread"),
        "depth": Column(pl.UInt16, "number of enclosing ranges"),
        "range_id": Column(pl.Int64, "NVTX range id (start/end ranges)"),
        "end_thread": Column(ID, "row of `threads` that ended a start/end range"),
        "external_id": Column(pl.Int64, "Kineto's External id"),
        "device": Column(pl.Int32, "device, for style gpu"),
        "stream": Column(pl.Int64, "stream, for style gpu"),
        **_ARGUMENTS,
    },
    # Python frames (with_stack=True), by (thread, start).
    "python": {
        "name": Column(NAME, "frame as recorded, for example `train.py(12): step`, or `nn.Module: Linear_0`"),
        **_THREAD,
        **_SPAN,
        "parent": Column(ID, "row of the calling frame"),
        "depth": Column(pl.UInt16, "number of enclosing frames"),
        "module": Column(NAME, "nn.Module's name where the frame is a module's call"),
    },
    # GPU-side synchronisation records.
    "syncs": {
        "kind": Column(NAME, "event, stream_wait_event, stream or context"),
        "device": Column(pl.Int32, "device"),
        "context": Column(pl.Int64, "context"),
        "stream": Column(pl.Int64, "stream"),
        **_SPAN,
        **_CORRELATION,
        "event_id": Column(pl.Int64, "event waited for"),
        "api_id": Column(ID, "row of `api`"),
    },
    # CUDA events recorded into a stream.
    "events": {
        "device": Column(pl.Int32, "device"),
        "context": Column(pl.Int64, "context"),
        "stream": Column(pl.Int64, "stream"),
        **_CORRELATION,
        "event_id": Column(pl.Int64, "event; handles are reused"),
        "api_id": Column(ID, "row of `api`"),
    },
    # OS runtime calls (nsys).
    "osrt": {
        "name": Column(NAME, "libc function"),
        **_THREAD,
        **_SPAN,
        "return_code": Column(pl.Int64, "its return value"),
        "nesting": Column(pl.Int32, "nesting level"),
    },
    # Allocations and frees.
    "memory": {
        **_THREAD,
        "time_ns": Column(TIME, "when"),
        "bytes": Column(pl.Int64, "size; negative when freed"),
        "device": Column(pl.Int32, "device; -1 or null for the CPU"),
        "device_type": Column(pl.Int32, "torch's DeviceType (0 CPU, 1 CUDA, 6 HIP)"),
        "address": Column(pl.Int64, "address"),
        "allocated_bytes": Column(pl.Int64, "allocated by the framework after the event"),
        "reserved_bytes": Column(pl.Int64, "reserved by the framework's allocator after the event"),
    },
    # What recording itself cost, and lazy loading.
    "overhead": {
        "name": Column(NAME, "what the profiler or the driver did"),
        **_THREAD,
        **_SPAN,
    },
    # Unified-memory page faults (nsys).
    "faults": {
        "kind": Column(NAME, "cpu or gpu"),
        "process": Column(pl.Int64, "process"),
        "device": Column(pl.Int32, "device, for gpu faults"),
        **_SPAN,
        "address": Column(pl.Int64, "virtual address"),
        "count": Column(pl.Int64, "page faults in the group"),
    },
    # Tensors that ops took and made in a few more steps, without times (`warpline run`); see docs/dataflow.md.
    "dataflow": {
        "step": Column(pl.Int32, "position of the step from 0; -1 before the first"),
        "call": Column(ID, "number of the op's call, in order of begin"),
        "op": Column(NAME, "op, for example aten::mm"),
        "lane": Column(pl.Int32, "number of its thread; not a row of `threads`"),
        "parent": Column(ID, "`call` of the enclosing op on the same thread"),
        "record_function": Column(pl.Int64, "id of the call in those steps: Record function id of their Kineto trace"),
        "direction": Column(NAME, "in or out; null, with all that follow, for an op without tensors"),
        "argument": Column(pl.Int32, "position among the inputs or outputs; tensors of a list share it"),
        "access": Column(NAME, "read, write (not read before), update (read and written), make (new) or view"),
        "tensor": Column(pl.Int64, "tensor; ids are reused once a tensor is gone"),
        "storage": Column(pl.Int64, "memory that it lies in, which views share; ids are reused"),
        "offset": Column(pl.Int64, "its first element in the storage"),
        "extent": Column(pl.Int64, "elements of the storage from its first to its last"),
        "elements": Column(pl.Int64, "elements"),
        "item_bytes": Column(pl.Int32, "bytes per element"),
        "shape": Column(NAME, "shape, as JSON text"),
        "dtype": Column(NAME, "data type, as torch's C++ names it"),
        "device": Column(NAME, "device, for example cuda:0"),
    },
    # Sampled counters (nsys GPU metrics).
    "counters": {
        "time_ns": Column(TIME, "when"),
        "name": Column(NAME, "metric"),
        "device": Column(pl.Int32, "device"),
        "value": Column(pl.Float64, "value"),
    },
    # Threads of all processes.
    "threads": {
        "process": Column(pl.Int64, "process id; null when the file writes text there"),
        "tid": Column(pl.Int64, "thread id; null when the file writes text there"),
        "name": Column(pl.String, "name of the thread, else the file's own label"),
        "priority": Column(pl.Int32, "priority of that name as nsys records it (T-Pri in its reports)"),
        "process_name": Column(pl.String, "name of the process"),
    },
    # Devices as the capture describes them.
    "devices": {
        "device": Column(pl.Int32, "device ordinal"),
        "name": Column(pl.String, "for example NVIDIA H200"),
        "compute_major": Column(pl.Int32, "compute capability, major"),
        "compute_minor": Column(pl.Int32, "compute capability, minor"),
        "sm_count": Column(pl.Int32, "streaming multiprocessors (compute units)"),
        "memory_bytes": Column(pl.Int64, "device memory"),
        "memory_bandwidth": Column(pl.Int64, "theoretical bytes per second, where recorded"),
        "l2_bytes": Column(pl.Int64, "L2 cache, where recorded"),
        "clock_hz": Column(pl.Int64, "maximum SM clock, where recorded"),
        "warp_size": Column(pl.Int32, "threads per warp"),
        "max_threads_per_sm": Column(pl.Int32, "resident threads per SM"),
        "registers_per_sm": Column(pl.Int64, "registers per SM"),
        "shared_bytes_per_sm": Column(pl.Int64, "shared memory per SM"),
    },
    # Training or inference steps, in order.
    "steps": {
        "index": Column(pl.Int32, "position from 0, as --steps counts"),
        "name": Column(pl.String, "name of the range or frame, or `repeat N`"),
        **_SPAN,
        "thread": Column(ID, "row of `threads` on which the range or frame lies; null for steps found on the device"),
        "found_by": Column(
            pl.String, "profiler_step, range, python (calls of a function), repetition (of work) or optimizer"
        ),
    },
    # Facts about the file and the capture.
    "meta": {"key": Column(pl.String, "fact"), "value": Column(pl.String, "its value")},
    # What is wrong or odd; see warpline.sources.health.
    "health": {
        "code": Column(pl.String, "stable word"),
        "severity": Column(pl.String, "error, warning or info"),
        "message": Column(pl.String, "sentence for a person"),
    },
}


def empty(table: str) -> pl.DataFrame:
    """The table with its columns and no rows."""
    return pl.DataFrame(schema={name: column.dtype for name, column in TABLES[table].items()})


def conform(table: str, frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with exactly the documented columns, in order: missing ones null, types as documented."""
    columns = TABLES[table]
    unknown = set(frame.columns) - set(columns)
    if unknown:
        raise ValueError(f"{table} has undocumented columns: {sorted(unknown)}")
    return frame.select(
        pl.col(name).cast(column.dtype) if name in frame.columns else pl.lit(None, column.dtype).alias(name)
        for name, column in columns.items()
    )
