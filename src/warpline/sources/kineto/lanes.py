"""Events without torch.profiler's categories: what they are, by the names of their process and thread.

XLA's profiler (JAX, TensorFlow) names a process after the device (`/device:GPU:0`) and a thread after the stream; the
autograd profiler of old torch has the processes `CPU functions` and `CUDA functions`; rocprof has `GPU0`, `COPY` and
`CPU HIP API`. Such events are given the category, device, stream and correlation that torch.profiler would have
written, so that one reader serves all.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from warpline.sources.health import HealthEntry
from warpline.sources.kineto.events import Int64s, RawEvents, Sparse
from warpline.sources.kineto.threads import KinetoThreads

GPU_PROCESS = re.compile(r"^/device:GPU:(\d+)")
HOST_PROCESS = re.compile(r"^/host:(CPU|python-tracer)")
STREAM = re.compile(r"^Stream #(\d+)")
API_CALL = re.compile(r"^(cu(da)?|(__)?hip)[A-Z]")
XLA_FRAME = re.compile(r"^\$(?P<file>\S+):(?P<line>\d+) (?P<name>.+)$")
"""A Python frame of JAX: `$train.py:12 step`."""
ROC_GPU = re.compile(r"^GPU ?(\d+)$")
ROC_COPIES, ROC_CALLS = "COPY", "CPU HIP API"
"""Processes of rocprof's trace. `CPU HSA API` has the same calls again, one layer below."""
ROC_AGENT = re.compile(r"^(Agent\d+)\.Node$")
ROC_COPY = re.compile(r"^Copy(?P<source>[HD])[a-z]+To(?P<target>[HD])[a-z]+$")
MISSING_SPACE = re.compile(r"(?<=AMD)(?=[A-Z])|(?<=[a-z])(?=[A-Z])")
"""rocprof writes `AMDInstinctMI210`."""
ROC_PLACE = {"device": "dev-id", "stream": "stream-id"}
"""Where an operation ran, in its arguments since ROCm 5."""
MICROSECOND_NS = 1_000
COPY_STREAM = -1
"""Stream of copies, where rocprof does not say in which stream they were."""
COPY, SET = re.compile(r"^(Memcpy|Copy(Host|Device)To)"), re.compile(r"^(Memset|FillBuffer)")
OLD_CPU, OLD_GPU = "CPU functions", "CUDA functions"
"""Processes of torch.autograd.profiler's export (torch 1.0 to 1.8)."""
GPU_RANGE = "gpu_user_annotation"
XLA, OLD_TORCH, ROCPROF = "xla", "autograd", "rocprof"


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
    # What has the name of an op is the time between two CUDA events around it: such times nest, and hold idle time.
    ops = set(raw.name[bare[on_host]].tolist()) if producer == OLD_TORCH else set()
    is_range = on_gpu & np.isin(raw.name[bare], list(ops))
    _categorise(raw, bare[is_range], lambda _: GPU_RANGE)
    _categorise(raw, bare[on_gpu & ~is_range], _gpu_category)
    _categorise(raw, bare[on_host], _host_category)
    rows = bare[on_gpu]
    if producer == ROCPROF:
        raw.fields |= {name: raw.fields[own] for name, own in ROC_PLACE.items() if _has(raw, own)}
    for name in ("device", "stream"):
        values = np.array([getattr(lane, name) if lane else 0 for lane in found], np.int64)[which]
        raw.fields[name] = merged(raw.fields.get(name), rows, values[on_gpu])
    if (other := raw.fields.get("correlation_id")) is not None and not _has(raw, "correlation"):
        raw.fields["correlation"] = other
    if producer == ROCPROF:
        raw.fields["correlation"] = _linked_by_flows(raw, bare)
        _use_exact_times(raw)
        raw.header.setdefault("deviceProperties", _agents(raw.header.get("otherData")))
    return producer


OPS_ONLY = HealthEntry(
    "no-gpu-work",
    "error",
    "No kernels are recorded: the file has the time between two CUDA events around each op, with the idle time in it. "
    "Record with torch.profiler.",
)
"""Of a profile of the autograd profiler, which timed ops on the GPU, and no kernels."""


def _linked_by_flows(raw: RawEvents, spans: Int64s) -> Sparse:
    """A number for each call and the operation that it started: rocprof writes an arrow from one to the other, whose
    ends lie one after the other in the file."""
    starts = np.flatnonzero(raw.phase[:-1] == ord("s"))
    starts = starts[raw.phase[starts + 1] == ord("t")]
    threads = KinetoThreads(raw)
    found = np.concatenate([_spans_at(raw, threads, spans, ends) for ends in (starts, starts + 1)])
    numbers = np.tile(np.arange(1, len(starts) + 1), 2)
    rows, first = np.unique(found, return_index=True)
    known = rows >= 0
    return Sparse(rows[known].astype(np.uint32), numbers[first[known]])


def _use_exact_times(raw: RawEvents) -> None:
    """rocprof writes whole microseconds, as do its arrows, and nanoseconds in the arguments; `ts` may count from the
    start of the recording, and the arguments from that of the machine."""
    start, end = raw.fields.get("BeginNs"), raw.fields.get("EndNs")
    if start is None or end is None:
        return
    rows, first, second = np.intersect1d(start.rows, end.rows, assume_unique=True, return_indices=True)
    if not len(rows):
        return
    begin, length = start.values[first], end.values[second] - start.values[first]
    ahead = int(np.median(begin - raw.time_ns[rows])) // MICROSECOND_NS * MICROSECOND_NS
    same = _is_rounding(begin - ahead - raw.time_ns[rows]) & _is_rounding(length - raw.duration_ns[rows])
    raw.time_ns[rows[same]], raw.duration_ns[rows[same]] = begin[same] - ahead, length[same]


def _is_rounding(difference_ns: Int64s) -> npt.NDArray[np.bool_]:
    """Whether two times differ by no more than two microseconds that were rounded."""
    return (difference_ns >= -2 * MICROSECOND_NS) & (difference_ns <= 2 * MICROSECOND_NS)


def _spans_at(raw: RawEvents, threads: KinetoThreads, spans: Int64s, moments: Int64s) -> Int64s:
    """The span that each of these events of no length lies in, on the same thread; -1 for none."""
    lane, wanted = threads.key(spans), threads.key(moments)
    result = np.full(len(moments), -1)
    for one in np.unique(wanted):
        mine = spans[lane == one]
        mine = mine[np.argsort(raw.time_ns[mine], kind="stable")]
        asked = np.flatnonzero(wanted == one)
        at = raw.time_ns[moments[asked]]
        last = np.searchsorted(raw.time_ns[mine], at, side="right") - 1
        row = mine[np.maximum(last, 0)] if len(mine) else np.full(len(asked), -1)
        inside = (last >= 0) & (at <= raw.time_ns[row] + raw.duration_ns[row])
        result[asked] = np.where(inside, row, -1)
    return result


def _agents(facts: Any) -> list[dict[str, Any]]:
    """The GPUs that rocprof lists, as Kineto writes them."""
    if not isinstance(facts, dict):
        return []
    return [
        {"id": int(node), "name": MISSING_SPACE.sub(" ", str(facts.get(f"{agent[1]}.MarketingName", "")))}
        for key, node in facts.items()
        if (agent := ROC_AGENT.match(key)) and facts.get(f"{agent[1]}.DeviceType") == "GPU" and str(node).isdecimal()
    ]


def _label(raw: RawEvents, code: int) -> str:
    """A process or thread id as text; empty for an event without one."""
    return raw.labels[code].strip('"') if code >= 0 else ""


def _thread_number(raw: RawEvents, row: int) -> int:
    """The id of an event's thread, where it is a small number; else 0."""
    number = _label(raw, int(raw.thread[row]))
    return int(number) if number.isdecimal() and len(number) < 4 else 0


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
    copies: list[int] = []
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
            lanes[pair] = _Lane(process == OLD_GPU, _thread_number(raw, int(event[0])))
        elif roc := ROC_GPU.match(process):
            producer, lanes[pair] = ROCPROF, _Lane(True, int(roc[1]), _thread_number(raw, int(event[0])))
        elif process == ROC_CALLS:
            producer, lanes[pair] = ROCPROF, _Lane(False)
        elif process == ROC_COPIES:
            copies.append(pair)
    devices = {lane.device for lane in lanes.values() if lane.on_gpu}
    if producer == ROCPROF and (len(devices) == 1 or _has(raw, "dev-id")):  # a copy's lane does not name its device
        lanes |= {pair: _Lane(True, next(iter(devices)), COPY_STREAM) for pair in copies}
    return producer, lanes


def _gpu_category(name: str) -> str:
    return "gpu_memcpy" if COPY.match(name) else "gpu_memset" if SET.match(name) else "kernel"


def _host_category(name: str) -> str:
    if API_CALL.match(name):
        return "cuda_driver" if name[2:3].isupper() else "cuda_runtime"
    return "python_function" if XLA_FRAME.match(name) else "cpu_op"


def _categorise(raw: RawEvents, rows: npt.NDArray[np.int64], category_of: Callable[[str], str]) -> None:
    """Write a category for each of these events by its name; frames and copies are named as torch.profiler does."""
    codes, which = np.unique(raw.name[rows], return_inverse=True)
    chosen = []
    for code in codes:
        category = category_of(raw.names[int(code)] if code >= 0 else "")
        if code >= 0 and (frame := XLA_FRAME.match(raw.names[int(code)])):
            raw.names[int(code)] = f"{frame['file']}({frame['line']}): {frame['name']}"
        if code >= 0 and (copy := ROC_COPY.match(raw.names[int(code)])):
            raw.names[int(code)] = f"Memcpy {copy['source']}to{copy['target']}"
        if category not in raw.categories:
            raw.categories.append(category)
        chosen.append(raw.categories.index(category))
    if len(rows):
        raw.category[rows] = np.array(chosen, raw.category.dtype)[which]


def merged(field: Sparse | None, rows: npt.NDArray[np.int64], values: Int64s) -> Sparse:
    """The field with further rows; a value that the file has stays."""
    if field is None or not len(field.rows):
        return Sparse(rows.astype(np.uint32), values)
    fresh = ~np.isin(rows, field.rows)
    every = np.concatenate([field.rows.astype(np.int64), rows[fresh]])
    order = np.argsort(every, kind="stable")
    return Sparse(every[order].astype(np.uint32), np.concatenate([field.values, values[fresh]])[order])
