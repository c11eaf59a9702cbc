"""Tiny nvprof databases, laid out as nvprof 12 writes them. Times are in nanoseconds."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PID, TID = 4321, 77
LAUNCH, STREAM_SYNC = 211, 131
"""CUPTI's callback ids of cudaLaunchKernel and cudaStreamSynchronize."""

_PLACE = "start INT, end INT, deviceId INT, contextId INT, streamId INT, correlationId INT"
_CALL = "cbid INT, start INT, end INT, processId INT, threadId INT, correlationId INT, returnValue INT"
TABLES = {
    "StringTable": "value TEXT",
    "Version": "version INT",
    "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL": (
        f"{_PLACE}, name INT, gridX INT, gridY INT, gridZ INT, blockX INT, blockY INT, blockZ INT, "
        "registersPerThread INT, staticSharedMemory INT, dynamicSharedMemory INT, graphId INT, graphNodeId INT"
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": f"{_PLACE}, bytes INT, copyKind INT, srcKind INT, dstKind INT",
    "CUPTI_ACTIVITY_KIND_MEMSET": f"{_PLACE}, bytes INT, memoryKind INT",
    "CUPTI_ACTIVITY_KIND_RUNTIME": _CALL,
    "CUPTI_ACTIVITY_KIND_DRIVER": _CALL,
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": (
        "type INT, start INT, end INT, correlationId INT, contextId INT, streamId INT, cudaEventId INT"
    ),
    "CUPTI_ACTIVITY_KIND_MARKER": "flags INT, timestamp INT, id INT, objectKind INT, objectId BLOB, name INT",
    "CUPTI_ACTIVITY_KIND_NAME": "objectKind INT, objectId BLOB, name INT",
    "CUPTI_ACTIVITY_KIND_DEVICE": (
        "id INT, name INT, computeCapabilityMajor INT, computeCapabilityMinor INT, numMultiprocessors INT, "
        "numThreadsPerWarp INT, maxWarpsPerMultiprocessor INT, globalMemorySize INT, globalMemoryBandwidth INT, "
        "l2CacheSize INT, coreClockRate INT, maxRegistersPerMultiprocessor INT, maxSharedMemoryPerMultiprocessor INT"
    ),
}


@dataclass
class NvprofFile:
    """Rows by table."""

    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    strings: list[str] = field(default_factory=lambda: ["-- null --"])

    def add(self, table: str, **values: Any) -> NvprofFile:
        self.rows.setdefault(f"CUPTI_ACTIVITY_KIND_{table}", []).append(values)
        return self

    def string(self, text: str) -> int:
        if text not in self.strings:
            self.strings.append(text)
        return self.strings.index(text)

    def call(self, cbid: int, start: int, end: int, correlation: int, layer: str = "RUNTIME") -> NvprofFile:
        return self.add(
            layer,
            cbid=cbid,
            start=start,
            end=end,
            processId=PID,
            threadId=TID,
            correlationId=correlation,
            returnValue=0,
        )

    def kernel(self, start: int, end: int, correlation: int, name: str = "gemm", stream: int = 7) -> NvprofFile:
        place = {"deviceId": 0, "contextId": 1, "streamId": stream, "correlationId": correlation}
        shape = {"gridX": 2, "gridY": 1, "gridZ": 1, "blockX": 128, "blockY": 1, "blockZ": 1, "registersPerThread": 31}
        memory = {"staticSharedMemory": 16, "dynamicSharedMemory": 8, "graphId": 0, "graphNodeId": 0}
        name_id = self.string(name)
        return self.add("CONCURRENT_KERNEL", start=start, end=end, name=name_id, **place, **shape, **memory)

    def wait(self, start: int, end: int, correlation: int, stream: int = 7) -> NvprofFile:
        """A stream's synchronisation, as a call and as CUPTI's own record."""
        self.call(STREAM_SYNC, start, end, correlation)
        return self.add(
            "SYNCHRONIZATION",
            type=3,
            start=start,
            end=end,
            correlationId=correlation,
            contextId=1,
            streamId=stream,
            cudaEventId=-1,
        )

    def write(self, path: Path) -> Path:
        connection = sqlite3.connect(path)
        for table, columns in TABLES.items():
            connection.execute(f"CREATE TABLE {table}(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, {columns})")
        texts = [(number, text) for number, text in enumerate(self.strings)]
        connection.executemany("INSERT INTO StringTable(_id_, value) VALUES (?, ?)", texts)
        connection.execute("INSERT INTO Version(version) VALUES (22)")
        for table, rows in self.rows.items():
            for row in rows:
                marks = ", ".join("?" * len(row))
                connection.execute(f"INSERT INTO {table}({', '.join(row)}) VALUES ({marks})", list(row.values()))
        connection.commit()
        connection.close()
        return path
