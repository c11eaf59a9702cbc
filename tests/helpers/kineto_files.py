"""Tiny Kineto traces, written by hand in the tests. Times are given in microseconds, as in the files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Event = dict[str, Any]

PROCESS = 100
MAIN = 100
AUTOGRAD = 200


def _span(category: str, name: str, start: float, length: float, process: int, thread: int, args: Event) -> Event:
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": process,
        "tid": thread,
        "ts": start,
        "dur": length,
        "args": args,
    }


def op(
    name: str, start: float, length: float, *, thread: int = MAIN, external: int | None = None, **arguments: Any
) -> Event:
    args = {"External id": external, **arguments} if external is not None else dict(arguments)
    return _span("cpu_op", name, start, length, PROCESS, thread, args)


def call(
    name: str,
    start: float,
    length: float,
    correlation: int,
    *,
    thread: int = MAIN,
    external: int | None = None,
    category: str = "cuda_runtime",
    process: int = PROCESS,
) -> Event:
    args = {"correlation": correlation} | ({"External id": external} if external is not None else {})
    return _span(category, name, start, length, process, thread, args)


def kernel(
    name: str,
    start: float,
    length: float,
    correlation: int,
    *,
    device: int = 0,
    stream: int = 7,
    category: str = "kernel",
    **arguments: Any,
) -> Event:
    args = {"device": device, "context": 1, "stream": stream, "correlation": correlation, **arguments}
    return _span(category, name, start, length, device, stream, args)


def copy(name: str, start: float, length: float, correlation: int, size: int, *, stream: int = 7) -> Event:
    return kernel(name, start, length, correlation, stream=stream, category="gpu_memcpy", bytes=size)


def memset(start: float, length: float, correlation: int, *, stream: int = 7) -> Event:
    return kernel("Memset (Device)", start, length, correlation, stream=stream, category="gpu_memset", bytes=4)


def annotation(name: str, start: float, length: float, *, thread: int = MAIN) -> Event:
    return _span("user_annotation", name, start, length, PROCESS, thread, {})


def frame(name: str, start: float, length: float, number: int, parent: int | None, *, thread: int = MAIN) -> Event:
    args = {"Python id": number, "Python parent id": parent}
    return _span("python_function", name, start, length, PROCESS, thread, args)


def launched(name: str, launch: float, start: float, length: float, correlation: int, **where: Any) -> list[Event]:
    """A kernel and the call that launched it."""
    return [call("cudaLaunchKernel", launch, 5, correlation), kernel(name, start, length, correlation, **where)]


def write(folder: Path, events: list[Event], **header: Any) -> Path:
    """The events as a trace file."""
    document = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "Test GPU", "numSms": 132}],
        **header,
        "traceEvents": events,
    }
    path = folder / "trace.json"
    path.write_text(json.dumps(document))  # indented as torch does, Python's own slow encoder would write it
    return path


def memory(time: float, allocated: int, reserved: int, *, device: int = 0) -> Event:
    """An allocation, with the allocator's totals after it."""
    args = {
        "Device Type": 1,
        "Device Id": device,
        "Addr": 1,
        "Bytes": 1,
        "Total Allocated": allocated,
        "Total Reserved": reserved,
    }
    return {
        "ph": "i",
        "cat": "cpu_instant_event",
        "s": "t",
        "name": "[memory]",
        "pid": PROCESS,
        "tid": MAIN,
        "ts": time,
        "args": args,
    }
