"""Two tiny traces whose every report can be worked out on paper."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from warpline.trace import schema
from warpline.trace.trace import Trace

Row = dict[str, object]


def make_trace(source: str = "nsys", **tables: list[Row]) -> Trace:
    """A trace of the rows given, table by table; columns left out are null."""
    frames = {
        name: schema.conform(name, pl.DataFrame(tables[name], infer_schema_length=None))
        if tables.get(name)
        else schema.empty(name)
        for name in schema.TABLES
    }
    return Trace.of_tables(Path("paper"), source, {name: schema.TABLES[name](frame) for name, frame in frames.items()})


def call(name: str, thread: int, start: int, end: int, correlation: int) -> Row:
    """A CUDA API call of process 7."""
    return {
        "name": name,
        "thread": thread,
        "start_ns": start,
        "end_ns": end,
        "process": 7,
        "correlation": correlation,
        "return_code": 0,
    }


def kernel(name: str, start: int, end: int, api_id: int | None, grid: tuple[int, int, int]) -> Row:
    """A kernel of 32 threads a block."""
    return {
        **_operation("kernel", name, start, end, api_id),
        "grid_x": grid[0],
        "grid_y": grid[1],
        "grid_z": grid[2],
        "block_x": 32,
        "block_y": 1,
        "block_z": 1,
        "registers": 40,
        "shared_static_bytes": 0,
        "shared_dynamic_bytes": 2048,
    }


def memory_work(kind: str, start: int, end: int, api_id: int | None, size: int, **more: object) -> Row:
    """A copy or a set."""
    return {**_operation(kind, kind, start, end, api_id), "bytes": size, **more}


def _operation(kind: str, name: str, start: int, end: int, api_id: int | None) -> Row:
    """On stream 7 of device 0."""
    return {
        "kind": kind,
        "name": name,
        "device": 0,
        "context": 1,
        "stream": 7,
        "start_ns": start,
        "end_ns": end,
        "correlation": None if api_id is None else api_id + 1,
        "process": 7,
        "api_id": api_id,
    }


def span(name: str, style: str, thread: int, start: int, end: int | None, *, domain: str | None = None) -> Row:
    """A range."""
    return {"name": name, "style": style, "thread": thread, "start_ns": start, "end_ns": end, "domain": domain}


THREADS: list[Row] = [
    {"process": 7, "tid": 70, "name": "main", "priority": 20},
    {"process": 7, "tid": 71, "name": "worker", "priority": 20},
]


def paper_trace() -> Trace:
    """Two threads launch three kernels, a copy, a set and a graph, within four ranges.

    Kernel ``alpha`` waits 40 and 13 ns in the queue; ``beta`` starts before its launch returns.
    """
    return make_trace(
        threads=THREADS,
        devices=[{"device": 0, "name": "NVIDIA H200"}],
        meta=[{"key": "api_suffixes", "value": '{"cudaGraphLaunch": "_v10000"}'}],
        api=[
            call("cudaLaunchKernel", 0, 100, 110, 1),
            call("cudaLaunchKernel", 0, 200, 230, 2),
            call("cudaMemcpyAsync", 0, 300, 305, 3),
            call("cudaGraphLaunch", 0, 400, 404, 4),
            call("cudaLaunchKernel", 1, 500, 507, 5),
            call("cudaMemsetAsync", 0, 600, 606, 6),
        ],
        gpu=[
            kernel("alpha", 150, 250, 0, (1, 2, 3)),
            kernel("beta", 220, 225, 1, (1, 1, 1)),
            memory_work(
                "memcpy", 310, 320, 2, 4_000_000, copy_kind="HtoD", source_memory="Pinned", target_memory="Device"
            ),
            {**memory_work("graph", 410, 450, 3, 0), "bytes": None},
            kernel("alpha", 520, 550, 4, (12345, 1, 1)),
            memory_work("memset", 610, 620, 5, 600, target_memory="Device"),
        ],
        ranges=[
            span("outer", "pushpop", 0, 90, 420),
            span("inner", "annotation", 0, 190, 240, domain="lib"),
            span("loose", "startend", 0, 290, 500),
            span("moment", "mark", 0, 295, 295),
            span("never closed", "pushpop", 0, 298, None),
            span("idle", "pushpop", 1, 10, 20),
            span("outer", "gpu", 0, 150, 320),
        ],
        osrt=[
            {"name": "read", "thread": 0, "start_ns": 0, "end_ns": 10},
            {"name": "read", "thread": 1, "start_ns": 0, "end_ns": 20},
            {"name": "poll", "thread": 0, "start_ns": 20, "end_ns": 90},
            {"name": "[Unknown]", "thread": 0, "start_ns": 0, "end_ns": 0},
        ],
    )


def migrating_trace() -> Trace:
    """Unified memory at two addresses: one goes to the device and back, the other only to the device."""
    return make_trace(
        threads=THREADS,
        gpu=[
            memory_work("memcpy", 0, 3, None, 4096, copy_kind="UnifiedHtoD", address=0x1000),
            memory_work("memcpy", 10, 510, None, 4096, copy_kind="UnifiedHtoD", address=0x2000),
            memory_work("memcpy", 600, 1100, None, 8192, copy_kind="UnifiedDtoH", address=0x2000),
        ],
        faults=[
            {"kind": "cpu", "process": 7, "start_ns": 0, "end_ns": 0, "address": 0x2000, "count": 1},
            {"kind": "cpu", "process": 7, "start_ns": 5, "end_ns": 5, "address": 0x2000, "count": 1},
            {"kind": "gpu", "process": 7, "start_ns": 6, "end_ns": 9, "address": 0x2000, "count": 3},
        ],
    )
