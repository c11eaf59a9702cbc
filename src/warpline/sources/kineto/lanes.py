"""Events without torch.profiler's categories: what they are, by the names of their process and thread.

XLA's profiler (JAX, TensorFlow) names a process after the device (`/device:GPU:0`) and a thread after the stream; the
autograd profiler of old torch has the processes `CPU functions` and `CUDA functions`. Such events are given the
category, device, stream and correlation that torch.profiler would have written, so that one reader serves all.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from warpline.sources.kineto.events import Int64s, RawEvents, Sparse
from warpline.sources.kineto.threads import KinetoThreads

GPU_PROCESS = re.compile(r"^/device:GPU:(\d+)")
HOST_PROCESS = re.compile(r"^/host:(CPU|python-tracer)")
STREAM = re.compile(r"^Stream #(\d+)")
XLA_CALL = re.compile(r"^cu(da)?[A-Z]")
XLA_FRAME = re.compile(r"^\$(?P<file>\S+):(?P<line>\d+) (?P<name>.+)$")
"""A Python frame of JAX: `$train.py:12 step`."""
COPY, SET = re.compile(r"^Memcpy"), re.compile(r"^Memset")
OLD_CPU, OLD_GPU = "CPU functions", "CUDA functions"
"""Processes of torch.autograd.profiler's export (torch 1.0 to 1.8)."""
XLA, OLD_TORCH = "xla", "autograd"


class _Lane(Struct, frozen=True):
    """What the events of one thread are."""

    on_gpu: bool
    device: int = 0
    stream: int = 0


def adopt(raw: RawEvents) -> str | None:
    """Give events of known lanes their categories, in place; returns the producer, None if there are no such events."""
    bare = np.flatnonzero(raw.category < 0)
    bare = bare[raw.phase[bare] == ord("X")]
    if not len(bare):
        return None
    producer, lanes = _lanes(raw, KinetoThreads(raw), bare)
    if producer is None:
        return None
    keys, which = np.unique(_pairs(raw, bare), return_inverse=True)
    found = [lanes.get(int(key)) for key in keys]
    on_gpu = np.array([lane is not None and lane.on_gpu for lane in found])[which]
    on_host = np.array([lane is not None and not lane.on_gpu for lane in found])[which]
    _categorise(raw, bare[on_gpu], _gpu_category)
    _categorise(raw, bare[on_host], _host_category)
    rows = bare[on_gpu]
    for name in ("device", "stream"):
        values = np.array([getattr(lane, name) if lane else 0 for lane in found], np.int64)[which]
        raw.fields[name] = _merged(raw.fields.get(name), rows, values[on_gpu])
    if (other := raw.fields.get("correlation_id")) is not None and not _has(raw, "correlation"):
        raw.fields["correlation"] = other
    return producer


def _label(raw: RawEvents, code: int) -> str:
    """A process or thread id as text; empty for an event without one."""
    return raw.labels[code].strip('"') if code >= 0 else ""


def _has(raw: RawEvents, name: str) -> bool:
    field = raw.fields.get(name)
    return field is not None and len(field.rows) > 0


def _pairs(raw: RawEvents, rows: npt.NDArray[np.int64]) -> Int64s:
    result: Int64s = raw.process[rows].astype(np.int64) * (len(raw.labels) + 1) + raw.thread[rows]
    return result


def _lanes(raw: RawEvents, threads: KinetoThreads, bare: npt.NDArray[np.int64]) -> tuple[str | None, dict[int, _Lane]]:
    """The lanes by pair of process and thread."""
    processes, names = threads.process_names(), threads.thread_names()
    lanes: dict[int, _Lane] = {}
    producer: str | None = None
    for row in np.unique(_pairs(raw, bare), return_index=True)[1]:
        event = bare[row : row + 1]
        key, pair = int(threads.key(event)[0]), int(_pairs(raw, event)[0])
        process = processes.get(threads.process_of(key), _label(raw, int(raw.process[event[0]])))
        gpu, stream = GPU_PROCESS.match(process), STREAM.match(names.get(key, ""))
        if gpu is not None:
            producer = XLA
            if stream is not None:  # the other lanes repeat the same time by module and by op
                lanes[pair] = _Lane(True, int(gpu[1]), int(stream[1]))
        elif HOST_PROCESS.match(process) or process in {OLD_CPU, OLD_GPU}:
            producer = producer or (XLA if process.startswith("/") else OLD_TORCH)
            number = _label(raw, int(raw.thread[event[0]]))
            lanes[pair] = _Lane(process == OLD_GPU, int(number) if number.isdecimal() and len(number) < 4 else 0)
    return producer, lanes


def _gpu_category(name: str) -> str:
    return "gpu_memcpy" if COPY.match(name) else "gpu_memset" if SET.match(name) else "kernel"


def _host_category(name: str) -> str:
    if XLA_CALL.match(name):
        return "cuda_driver" if name[2:3].isupper() else "cuda_runtime"
    return "python_function" if XLA_FRAME.match(name) else "cpu_op"


def _categorise(raw: RawEvents, rows: npt.NDArray[np.int64], category_of: Callable[[str], str]) -> None:
    """Write a category for each of these events by its name; Python frames are named as torch.profiler does."""
    codes, which = np.unique(raw.name[rows], return_inverse=True)
    chosen = []
    for code in codes:
        category = category_of(raw.names[int(code)] if code >= 0 else "")
        if code >= 0 and (frame := XLA_FRAME.match(raw.names[int(code)])):
            raw.names[int(code)] = f"{frame['file']}({frame['line']}): {frame['name']}"
        if category not in raw.categories:
            raw.categories.append(category)
        chosen.append(raw.categories.index(category))
    if len(rows):
        raw.category[rows] = np.array(chosen, raw.category.dtype)[which]


def _merged(field: Sparse | None, rows: npt.NDArray[np.int64], values: Int64s) -> Sparse:
    """The field with further rows; a value that the file has stays."""
    if field is None or not len(field.rows):
        return Sparse(rows.astype(np.uint32), values)
    fresh = ~np.isin(rows, field.rows)
    every = np.concatenate([field.rows.astype(np.int64), rows[fresh]])
    order = np.argsort(every, kind="stable")
    return Sparse(every[order].astype(np.uint32), np.concatenate([field.values, values[fresh]])[order])
