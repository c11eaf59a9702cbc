"""Chrome traces of other programs and of other devices: said in one true sentence, never "no events"."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import numpy.typing as npt

from warpline.errors import UnreadableFile
from warpline.sources.health import HealthEntry
from warpline.sources.kineto.events import MISSING, RawEvents
from warpline.sources.kineto.threads import KinetoThreads
from warpline.units import several

OTHER_DEVICES = {
    "a Huawei Ascend NPU": re.compile(r"Ascend|^CANN$|^HCCL$|^AI ?Core\b|\bNPU\b", re.IGNORECASE),
    "a TPU": re.compile(r"^/device:TPU|\bTPU\b"),
}
"""Devices that are no GPUs, by the name that their traces give to a process."""
OTHER_CATEGORIES = {
    "MTIA, Meta's accelerator": re.compile(r"^mtia_"),
    "an Intel Gaudi (HPU)": re.compile(r"^hpu_|^habana", re.IGNORECASE),
    "an accelerator that Glow compiles for": re.compile(r"^glow_"),
}
"""The same by a category of Kineto's."""
COUNTERS = "cuda_profiler_range"
"""Category of what CUPTI's range profiler measured: counters of kernels, one after the other, and no timeline."""
PROGRAMS = {
    "VizTracer": re.compile(r"viztracer_metadata$"),
    "ONNX Runtime": re.compile(r"Session$"),
    "a browser (Chrome, Edge)": re.compile(r"(devtools\.timeline|blink|toplevel|v8)\b"),
    "clang (-ftime-trace)": re.compile(r"beginningOfTime$"),
    "Ray": re.compile(r"task::"),
}
"""Other programs that write Chrome traces, by a top-level key or a category of theirs."""
PHASES = {
    "b": "asynchronous",
    "e": "asynchronous",
    "n": "asynchronous",
    "B": "begin/end",
    "E": "begin/end",
    "C": "counter",
}
LISTED = 3
FIRST = slice(1000)
READS = "give a torch.profiler, JAX or Nsight Systems profile; docs/adding-a-source.md lists what is read"


def other_device(raw: RawEvents, known: set[str]) -> HealthEntry | None:
    """An entry if the file has events of a device that is no GPU: they are not read."""
    for device, pattern in OTHER_CATEGORIES.items():
        names = sorted(filter(pattern.match, raw.categories))
        count = int(np.isin(raw.category, [raw.categories.index(name) for name in names]).sum())
        if count:
            return _not_read(device, count, names)
    threads = KinetoThreads(raw)
    called = threads.process_names()
    for device, pattern in OTHER_DEVICES.items():
        found = [process for process, name in called.items() if pattern.search(name)]
        if not found:
            continue
        spans = np.flatnonzero((raw.phase == ord("X")) & ~_known(raw, known))
        count = int(np.isin(threads.process_of_rows(spans), found).sum())
        if count:
            names = sorted({called[process] for process in found})[:LISTED]
            return _not_read(device, count, names)
    return None


def _not_read(device: str, count: int, names: list[str]) -> HealthEntry:
    return HealthEntry(
        "other-device",
        "error",
        f"The trace is of {device}: its {several(count, 'device event')} ({', '.join(names)}) are not read, "
        "because warpline knows GPUs only; what follows is about the CPU.",
    )


def counters_only(raw: RawEvents, gpu_rows: int) -> HealthEntry | None:
    """An entry if the kernels were measured with counters instead of a timeline."""
    if gpu_rows or COUNTERS not in raw.categories:
        return None
    count = int((raw.category == raw.categories.index(COUNTERS)).sum())
    return HealthEntry(
        "counters-only",
        "error",
        f"The profiler recorded counters instead of a timeline: {several(count, 'kernel')} with counters "
        f"({COUNTERS}), one after the other, and no GPU activity; record again without CUPTI's range profiler (no "
        "profiler_metrics).",
    )


def _known(raw: RawEvents, known: set[str], some: slice = slice(None)) -> npt.NDArray[np.bool_]:
    """Events of a known category."""
    table = np.array([*(name in known for name in raw.categories), False])
    found: npt.NDArray[np.bool_] = table.take(raw.category[some])  # -1, no category, takes the last
    return found


def _has_spans(raw: RawEvents, known: set[str]) -> bool:
    """Whether any event of a known category has a length; mostly one of the first has."""
    return any((_known(raw, known, some) & (raw.phase[some] == ord("X"))).any() for some in (FIRST, slice(None)))


def refuse_foreign(raw: RawEvents, path: Path, known: set[str]) -> None:
    """Raise if the file has events, but none of a category that torch.profiler writes."""
    if "[memory]" in raw.names or _has_spans(raw, known):
        return
    timed = (raw.time_ns != MISSING) & (raw.phase != ord("M"))
    if not timed.any():
        return
    other = other_device(raw, known)
    if other is not None:
        device = other.message.partition(":")[0].removeprefix("The trace is ")
        raise UnreadableFile(
            "other-device", f"{path} is a trace {device}, which warpline does not read: it knows GPUs only", READS
        )
    raise UnreadableFile("foreign-trace", f"{path} is a Chrome trace of {_program(raw)}: {_described(raw)}", READS)


def _program(raw: RawEvents) -> str:
    """The program that wrote the file, by marks that only it writes."""
    seen = {*raw.header, *raw.categories}
    return next((program for program, marks in PROGRAMS.items() if any(map(marks.match, seen))), "another program")


def _described(raw: RawEvents) -> str:
    """How many events of which kinds and categories the file has."""
    timed = (raw.time_ns != MISSING) & (raw.phase != ord("M"))
    phases: dict[str, int] = {}
    for code, count in zip(*np.unique(raw.phase[timed], return_counts=True), strict=True):
        kind = PHASES.get(chr(int(code)), "")
        phases[kind] = phases.get(kind, 0) + int(count)
    total = int(timed.sum())
    kinds = ", ".join(f"{count:,} of them {kind}" for kind, count in phases.items() if kind)
    codes, counts = np.unique(raw.category[timed & (raw.category >= 0)], return_counts=True)
    names = [f'"{raw.categories[int(code)]}"' for code in codes[np.argsort(-counts, kind="stable")]]
    more = " …" if len(names) > LISTED else ""
    some = int(counts.sum())
    counted = f", {some:,} of them" if names and some < total else ""
    of = f" in the {'category' if len(names) == 1 else 'categories'} {', '.join(names[:LISTED])}{more}" if names else ""
    return (
        f"{several(total, 'event')}{counted}{of}{f' ({kinds})' if kinds else ''}, and none in a category of "
        "torch.profiler (cpu_op, kernel, cuda_runtime …) or on a GPU's lane"
    )
