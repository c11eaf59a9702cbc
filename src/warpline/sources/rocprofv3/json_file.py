"""The JSON of rocprofv3 (`--output-format json`): a list of processes, each with its records and their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import polars as pl
from msgspec import Struct

from warpline.errors import UnreadableFile
from warpline.sources.kinds import Kind
from warpline.sources.rocprofv3.records import (
    COPIES,
    DISPATCHES,
    REGIONS,
    Handle,
    Number,
    ProcessRecording,
    RocmAgent,
    rows_of,
)
from warpline.sources.rows import Rows
from warpline.sources.unpack import Unpacked

KEY = "rocprofiler-sdk-tool"
ROCPROFV3_JSON = Kind(
    "rocprofv3-json",
    lambda head, _: head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") and f'"{KEY}"'.encode() in head,
    (".json",),
)
"""JSON of rocprofv3."""


class Correlation(Struct, frozen=True):
    """Which call a record belongs to, and the call around that."""

    internal: Number = 0
    ancestor: Number = 0


class Size(Struct, frozen=True):
    """Work-items in each direction."""

    x: Number
    y: Number
    z: Number


class Dispatched(Struct, frozen=True):
    """A kernel on a GPU."""

    agent_id: Handle
    queue_id: Handle
    kernel_id: Number
    workgroup_size: Size
    grid_size: Size
    group_segment_size: Number = 0


class Dispatch(Struct, frozen=True):
    """A kernel and its times."""

    start_timestamp: Number
    end_timestamp: Number
    dispatch_info: Dispatched
    correlation_id: Correlation = Correlation()
    stream_id: Handle = Handle()


class Copy(Struct, frozen=True):
    """A copy and its times."""

    start_timestamp: Number
    end_timestamp: Number
    src_agent_id: Handle
    dst_agent_id: Handle
    bytes: Number | None = None
    correlation_id: Correlation = Correlation()
    stream_id: Handle = Handle()


class Call(Struct, frozen=True):
    """A call of an API, or a marker."""

    kind: Number
    operation: Number
    thread_id: Number
    start_timestamp: Number
    end_timestamp: Number
    correlation_id: Correlation = Correlation()


class BufferRecords(Struct, frozen=True):
    """All records."""

    kernel_dispatch: list[Dispatch] = []
    memory_copy: list[Copy] = []
    hip_api: list[Call] = []
    hsa_api: list[Call] = []
    marker_api: list[Call] = []
    rccl_api: list[Call] = []


class CallbackRecords(Struct, frozen=True):
    """Records of hardware counters, which are not read."""

    counter_collection: list[msgspec.Raw] = []


class KindNames(Struct, frozen=True):
    """Name of a kind of records and of its operations, by position."""

    kind: str = ""
    operations: list[str] = []


class MarkerText(Struct, frozen=True):
    """Text of the marker with that correlation id."""

    key: Number
    value: str


class RecordedNames(Struct, frozen=True):
    """Names."""

    buffer_records: list[KindNames] = []
    marker_api: list[MarkerText] = []


class Symbol(Struct, frozen=True):
    """A kernel's name."""

    kernel_id: Number
    kernel_name: str = ""
    formatted_kernel_name: str = ""
    arch_vgpr_count: Number = 0
    accum_vgpr_count: Number = 0


class RocmNode(Struct, frozen=True):
    """A machine."""

    hostname: str = ""


class ProcessMetadata(Struct, frozen=True):
    """About the process."""

    pid: Number | None = None
    command: list[str] = []
    node: RocmNode = RocmNode()


class RecordedProcess(Struct, frozen=True):
    """One process."""

    metadata: ProcessMetadata = ProcessMetadata()
    agents: list[RocmAgent] = []
    strings: RecordedNames = RecordedNames()
    kernel_symbols: list[Symbol] = []
    callback_records: CallbackRecords = CallbackRecords()
    buffer_records: BufferRecords = BufferRecords()


class RocmDocument(Struct, frozen=True, rename={"processes": KEY}):
    """The file."""

    processes: list[RecordedProcess]


def read_rocprofv3_json(path: Path) -> Rows:
    """Read the JSON of rocprofv3, plain or packed."""
    unpacked = Unpacked(path)
    raw = b"".join(unpacked)
    try:
        content = msgspec.json.decode(raw.removeprefix(b"\xef\xbb\xbf"), type=RocmDocument)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = unpacked.damage or f"{error}."
        raise UnreadableFile(
            "damaged-file", f"{path} is JSON of rocprofv3 that cannot be read: {reason}", "copy or record it again"
        ) from error
    return rows_of([_recording(process) for process in content.processes], path)


def _recording(process: RecordedProcess) -> ProcessRecording:
    records, pid = process.buffer_records, process.metadata.pid
    calls = [*records.hip_api, *records.hsa_api, *records.marker_api, *records.rccl_api]
    return ProcessRecording(
        _dispatches(process, pid),
        _frame(COPIES, [_copy(copy, pid) for copy in records.memory_copy]),
        _frame(REGIONS, _regions(calls, process.strings, pid)),
        {agent.id.handle: agent for agent in process.agents},
        process.metadata.node.hostname,
        {pid: " ".join(process.metadata.command)} if pid else {},
        bool(process.callback_records.counter_collection),
    )


def _frame(schema: dict[str, pl.DataType], rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=schema, orient="row")


def _dispatches(process: RecordedProcess, pid: int | None) -> pl.DataFrame:
    symbols = {symbol.kernel_id: symbol for symbol in process.kernel_symbols}
    unknown = Symbol(0)
    rows = []
    for one in process.buffer_records.kernel_dispatch:
        info = one.dispatch_info
        symbol = symbols.get(info.kernel_id, unknown)
        items, block = info.grid_size, info.workgroup_size
        rows.append(
            (
                *(pid, one.start_timestamp, one.end_timestamp, one.correlation_id.internal),
                *(info.agent_id.handle, info.queue_id.handle, one.stream_id.handle),
                symbol.formatted_kernel_name or symbol.kernel_name or None,
                *(items.x, items.y, items.z, block.x, block.y, block.z),
                *(info.group_segment_size, symbol.arch_vgpr_count + symbol.accum_vgpr_count or None),
            )
        )
    return _frame(DISPATCHES, rows)


def _copy(copy: Copy, pid: int | None) -> tuple[Any, ...]:
    place = (pid, copy.start_timestamp, copy.end_timestamp, copy.correlation_id.internal)
    return (*place, copy.src_agent_id.handle, copy.dst_agent_id.handle, copy.stream_id.handle, copy.bytes)


def _regions(calls: list[Call], strings: RecordedNames, pid: int | None) -> list[tuple[Any, ...]]:
    messages = {message.key: message.value for message in strings.marker_api}
    rows = []
    for call in calls:
        kind = strings.buffer_records[call.kind] if 0 <= call.kind < len(strings.buffer_records) else KindNames()
        known = 0 <= call.operation < len(kind.operations)
        number = call.correlation_id.internal
        rows.append(
            (
                *(pid, call.start_timestamp, call.end_timestamp, number, call.thread_id, call.correlation_id.ancestor),
                *(kind.kind, kind.operations[call.operation] if known else None),
                messages.get(number) if kind.kind.startswith("MARKER") else None,
            )
        )
    return rows
