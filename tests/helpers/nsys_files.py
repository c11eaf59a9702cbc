"""Small nsys exports, built as several generations of nsys lay them out."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PID, TID, WORKER = 4321, 4321, 4330
GLOBAL_PID = (1 << 48) | (PID << 24)
GLOBAL_TID = GLOBAL_PID | TID
GLOBAL_WORKER = GLOBAL_PID | WORKER
EPOCH_NS = 1_700_000_000_000_000_000

GENERATIONS = ("2.9.1", "3.1.2", "3.20.3", "3.24.0")

_KERNEL = [
    *("start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "demangledName", "shortName"),
    *("mangledName", "launchType", "cacheConfig", "registersPerThread", "gridX", "gridY", "gridZ"),
    *("blockX", "blockY", "blockZ", "staticSharedMemory", "dynamicSharedMemory", "graphNodeId"),
]
_COPY = [
    *("start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "bytes", "copyKind"),
    *("srcKind", "dstKind", "graphNodeId", "virtualAddress"),
]
_SET = [
    *("start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "value", "bytes"),
    *("graphNodeId", "memKind"),
]
_CALL = ["start", "end", "eventClass", "globalTid", "correlationId", "nameId", "returnValue", "callchainId"]
_SYNC = [
    *("start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "syncType", "eventId"),
]
_NVTX = [
    *("start", "end", "eventType", "rangeId", "category", "color", "text", "globalTid", "endGlobalTid"),
    *("textId", "domainId"),
]
COLUMNS = {
    "CUPTI_ACTIVITY_KIND_KERNEL": _KERNEL,
    "CUPTI_ACTIVITY_KIND_MEMCPY": _COPY,
    "CUPTI_ACTIVITY_KIND_MEMSET": _SET,
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": [*_KERNEL[:7], "graphId", "graphExecId"],
    "CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS": [*_KERNEL[:7], "sourceBytes"],
    "CUPTI_ACTIVITY_KIND_RUNTIME": _CALL,
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": _SYNC,
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT": ["deviceId", "contextId", "streamId", "correlationId", "globalPid", "eventId"],
    "CUPTI_ACTIVITY_KIND_OVERHEAD": [
        "start",
        "end",
        "eventClass",
        "globalTid",
        "correlationId",
        "nameId",
        "overheadType",
    ],
    "NVTX_EVENTS": _NVTX,
    "OSRT_API": ["start", "end", "eventClass", "globalTid", "nameId", "returnValue", "nestingLevel", "callchainId"],
    "PROFILER_OVERHEAD": ["start", "end", "globalTid", "nameId", "returnValue"],
    "ThreadNames": ["nameId", "priority", "globalTid"],
    "PROCESSES": ["globalPid", "pid", "name"],
    "ProcessStreams": ["globalPid", "filenameId", "contentId"],
    "DIAGNOSTIC_EVENT": ["timestamp", "timestampType", "source", "severity", "text", "globalPid"],
    "META_DATA_CAPTURE": ["name", "value"],
    "TARGET_INFO_SYSTEM_ENV": ["globalVid", "devStateName", "name", "nameEnum", "value"],
    "TARGET_INFO_SESSION_START_TIME": ["utcEpochNs", "utcTime", "localTime"],
    "TARGET_INFO_CUDA_DEVICE": ["gpuId", "cudaId", "pid"],
    "TARGET_INFO_GPU": ["vmId", "id", "name", "cuDevice", "smCount", "computeMajor", "computeMinor", "totalMemory"],
    "TARGET_INFO_CUDA_GPU": [
        *("vmId", "name", "deviceId", "numMultiprocessors", "computeCapabilityMajor", "globalMemoryBandwidth"),
        *("coreClockRate", "numThreadsPerWarp", "maxWarpsPerMultiprocessor"),
    ],
    "TARGET_INFO_GPU_METRICS": ["typeId", "sourceId", "typeName", "metricId", "metricName"],
    "GPU_METRICS": ["timestamp", "typeId", "metricId", "value"],
    "CUDA_UM_CPU_PAGE_FAULT_EVENTS": ["start", "globalPid", "address"],
    "CUDA_UM_GPU_PAGE_FAULT_EVENTS": ["start", "end", "globalPid", "deviceId", "address", "numberOfPageFaults"],
    "CUDA_GPU_MEMORY_USAGE_EVENTS": [
        *("start", "globalPid", "deviceId", "contextId", "address", "pc", "bytes", "memKind", "memoryOperationType"),
    ],
    "ANALYSIS_DETAILS": ["globalVid", "duration", "startTime", "stopTime"],
}
_TEXTS = {"name", "text", "utcTime", "localTime", "devStateName", "typeName", "metricName"}


@dataclass
class Export:
    """Rows by table, and the strings they refer to."""

    schema: str = "3.20.3"
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    strings: list[str] = field(default_factory=list)
    meta: bool = True

    def add(self, table: str, **values: Any) -> Export:
        """One row; columns not given are null."""
        self.rows.setdefault(table, []).append(values)
        return self

    def string(self, text: str) -> int:
        """The id of a text."""
        if text not in self.strings:
            self.strings.append(text)
        return self.strings.index(text) + 1

    def kernel(self, start: int, end: int, name: str = "gemm", correlation: int = 1, **more: Any) -> Export:
        """A kernel on device 0, stream 7."""
        short = self.string(name.partition("<")[0])
        place = {"deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": correlation, "globalPid": GLOBAL_PID}
        shape = {"gridX": 2, "gridY": 3, "gridZ": 1, "blockX": 128, "blockY": 1, "blockZ": 1, "registersPerThread": 40}
        memory = {"staticSharedMemory": 1024, "dynamicSharedMemory": 2048}
        row = {
            "start": start,
            "end": end,
            "demangledName": self.string(name),
            "shortName": short,
            **place,
            **shape,
            **memory,
        }
        return self.add("CUPTI_ACTIVITY_KIND_KERNEL", **{**row, **more})

    def call(self, start: int, end: int, name: str, correlation: int = 1, **more: Any) -> Export:
        """A CUDA call on the main thread; driver calls are named cuXxx."""
        layer = 0 if name.startswith("cuda") else 1
        row = {"start": start, "end": end, "eventClass": layer, "globalTid": GLOBAL_TID, "correlationId": correlation}
        row |= {"nameId": self.string(name), "returnValue": 0}
        return self.add("CUPTI_ACTIVITY_KIND_RUNTIME", **{**row, **more})

    def range(self, start: int | None, end: int | None, text: str | None = None, kind: int = 59, **more: Any) -> Export:
        """An NVTX row on the main thread."""
        row = {"start": start, "end": end, "eventType": kind, "text": text, "globalTid": GLOBAL_TID, "domainId": 0}
        return self.add("NVTX_EVENTS", **{**row, **more})

    def remark(self, text: str, severity: int = 2, pid: int = GLOBAL_PID) -> Export:
        """Something that nsys said while recording."""
        row = {"timestamp": 0, "timestampType": 1, "source": 1, "severity": severity, "text": text, "globalPid": pid}
        return self.add("DIAGNOSTIC_EVENT", **row)

    def error_output(self, text: str) -> Export:
        """The program's stderr."""
        name = self.string("/tmp/nvidia/streams/pid_4321_stderr.log")
        return self.add("ProcessStreams", globalPid=GLOBAL_PID, filenameId=name, contentId=self.string(text))

    def option(self, name: str, value: str) -> Export:
        """One fact about the capture."""
        return self.add("META_DATA_CAPTURE", name=name, value=value)

    def system(self, name: str, value: str) -> Export:
        """One fact about the machine."""
        return self.add("TARGET_INFO_SYSTEM_ENV", name=name, value=value)

    def write(self, path: Path) -> Path:
        """The export as a file, laid out as its schema version has it."""
        connection = sqlite3.connect(path)
        major, minor, *_ = (int(part) for part in self.schema.split("."))
        generation = (major, minor)
        if self.meta:
            table = "META_DATA_EXPORT" if generation >= (3, 4) else "EXPORT_META_DATA"
            _create(connection, table, ["name", "value"])
            pairs = [
                ("EXPORT_PRODUCT_VERSION", "2025.3.2.0"),
                ("EXPORT_SCHEMA_VERSION", self.schema),
                ("EXPORT_USER", "ada"),
            ]
            connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", pairs)
        for table, rows in self.rows.items():
            columns = columns_of(table, generation)
            _create(connection, table, columns)
            marks = ", ".join("?" * len(columns))
            connection.executemany(
                f"INSERT INTO {table} VALUES ({marks})", [[row.get(column) for column in columns] for row in rows]
            )
        connection.execute("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)")
        connection.executemany("INSERT INTO StringIds VALUES (?, ?)", enumerate(self.strings, 1))
        connection.commit()
        connection.close()
        return path


def columns_of(table: str, generation: tuple[int, int]) -> list[str]:
    """The table's columns in that generation."""
    columns = list(COLUMNS[table])
    activity = table.startswith("CUPTI_ACTIVITY_KIND") and "contextId" in columns
    if activity and generation >= (3, 13):
        columns.insert(columns.index("contextId") + 1, "greenContextId")
    if table == "CUPTI_ACTIVITY_KIND_KERNEL" and generation >= (3, 24):
        columns += ["graphId", "clusterX", "clusterY", "clusterZ"]
    if table == "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION" and generation >= (3, 20):
        columns += ["deprecatedSyncType", "eventSyncId"]
    if table == "CUPTI_ACTIVITY_KIND_RUNTIME" and generation < (3, 1):
        columns.append("name")
    if table == "PROFILER_OVERHEAD" and generation >= (3, 24):
        columns[columns.index("returnValue")] = "overheadType"
    return columns


def _create(connection: sqlite3.Connection, table: str, columns: Sequence[str]) -> None:
    texts = _TEXTS | ({"value"} if "name" in columns else set())
    kinds: Iterable[str] = (f'"{column}" {"TEXT" if column in texts else "INTEGER"}' for column in columns)
    connection.execute(f"CREATE TABLE {table} ({', '.join(kinds)})")


def small(schema: str = "3.20.3") -> Export:
    """Two launches, a copy and a memset, healthy.

    launch 10-15 -> kernel 20-50; copy call 16-60 -> copy 52-58; launch 61-64 (driver) -> kernel 70-75; memset 80-81.
    """
    export = Export(schema)
    export.add("TARGET_INFO_SESSION_START_TIME", utcEpochNs=EPOCH_NS, utcTime="2023-11-14T22:13:20")
    export.add("ThreadNames", nameId=export.string("python3"), priority=20, globalTid=GLOBAL_TID)
    export.add("TARGET_INFO_GPU", id=0, name="NVIDIA H200", cuDevice=0, smCount=132, computeMajor=9, computeMinor=0)
    export.call(10, 15, "cudaLaunchKernel_v7000", 1).kernel(20, 50, "void gemm<float>(T1)", 1)
    export.call(16, 60, "cudaMemcpyAsync_v3020", 2)
    place = {"deviceId": 0, "contextId": 1, "streamId": 7, "globalPid": GLOBAL_PID}
    export.add(
        "CUPTI_ACTIVITY_KIND_MEMCPY",
        start=52,
        end=58,
        correlationId=2,
        bytes=4096,
        copyKind=1,
        srcKind=0,
        dstKind=2,
        **place,
    )
    export.call(61, 64, "cuLaunchKernelEx", 3).kernel(70, 75, "triton_add", 3)
    export.call(76, 79, "cudaMemsetAsync_v3020", 4)
    export.add("CUPTI_ACTIVITY_KIND_MEMSET", start=80, end=81, correlationId=4, bytes=64, memKind=2, value=0, **place)
    return export
