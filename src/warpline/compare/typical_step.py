"""The typical step of a trace: every nanosecond is charged to an operation of the device or to a cause of idleness.

The device of a program without GPU work is the CPU: its operations are ops, Python frames, waits and gaps, and it is
never idle.

Steps that run the same kernels in the same order are alike. Of the steps like the median one, those of middling length
are averaged, so that one slow step does not decide. Cold steps are left out.
"""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from warpline.analyses.breakdown import PRIORITY, activities_of
from warpline.analyses.cpu_time import CpuProgram, CpuSegments
from warpline.analyses.device import rows_by_device
from warpline.analyses.idle.gaps import CAUSES, idle_gaps
from warpline.analyses.user_frames import Site
from warpline.errors import NoGpuWork
from warpline.findings.state import covered_share
from warpline.intervals import EMPTY, Spans, covered_before, pieces, union
from warpline.kernels.normalise import one_spelling
from warpline.replay.cold_steps import find_cold_steps
from warpline.trace.arrays import LONG_AGO, NONE, Floats, Int64s, combinations
from warpline.trace.schema import Gpu
from warpline.trace.table import filled
from warpline.trace.trace import Trace

MIDDLE = (0.25, 0.75)
"""Quantiles of the lengths between which steps are averaged."""
HOST_COPY = re.compile("HtoD|DtoH|HostToDevice|DeviceToHost|Host-to-Device|Device-to-Host")
MIN_STEPS = 4
"""Below so many steps all are averaged: quantiles mean nothing."""
CPU = NONE
"""The device of a program without GPU work."""
UNKNOWN = {"", "Unknown"}
"""A kind of copy or memory that was not recorded."""
FRAME_LINE = re.compile(r"\((\d{1,9})\): ")
"""The line in the name of a Python frame, which any edit above it changes."""


class Operation(Struct, frozen=True):
    """What a device ran: enough to recognise it in another run."""

    kind: str
    name: str
    op: str
    """The framework's op that launched it; empty if none was recorded."""
    grid: tuple[int, ...]
    """Blocks of a kernel in three dimensions; of an op on the CPU, the sizes of its inputs."""
    place: str = ""
    """The user's line, of what runs on the CPU; empty if it is unknown."""

    @property
    def key(self) -> tuple[str, str, tuple[int, ...]]:
        """What is equal for the same operation in another run, whatever tool recorded it."""
        return self.kind, self.spelling, self.grid

    @property
    def spelling(self) -> str:
        """The name as it is compared: every tool writes the name of a kernel in its own way."""
        return one_spelling(self.name) if self.kind == "kernel" else self.name

    @property
    def is_host_copy(self) -> bool:
        """Whether it copies from or to the host."""
        return self.kind == "memcpy" and HOST_COPY.search(self.name) is not None


class TypicalStep(Struct, frozen=True):
    """A step in parts: the operations in order of their start, and the idle time by cause."""

    operations: tuple[Operation, ...]
    exposed_ns: Floats
    """Time charged to each operation: where several run at once, one of them is charged."""
    idle_ns: dict[str, float]
    spans: Spans
    """Start and end of every warm step, in order."""
    averaged: int
    """Number of steps that were averaged."""
    step_ns: float
    """Their mean length: the sum of all parts."""
    device: int
    found_by: str | None
    """How the steps were found, as the table `steps` has it; None without steps: the whole recording stands for one."""
    ahead_ns: float = 0.0
    """The CPU's time for a step, if it runs ahead of the device; else 0."""
    waited_ns: Floats | None = None
    """Idle time before each operation; what is left of the idle time comes after the last one. None if the steps run
    different kernels, so that no operation stands for all of them, or an older baseline does not say."""
    covered: float = 1.0
    """Share of the recording's GPU time that its steps hold; 1 without steps."""
    between_ns: float | None = None
    """Time between a typical step and the next, which belongs to no step; None if a baseline does not say."""
    marks: Spans | None = None
    """Start and end of every warm step on the CPU; None if a baseline does not say."""

    @property
    def has_steps(self) -> bool:
        """Whether the recording has steps."""
        return self.found_by is not None

    @property
    def is_on_cpu(self) -> bool:
        """Whether it is a step of a program without GPU work."""
        return self.device == CPU

    @property
    def cpu_spans(self) -> Spans:
        """Start and end of every warm step on the CPU. A call after the last one is no part of it, though the device
        may still be busy: the profiler's own wait before it stops, for example."""
        return self.spans if self.marks is None else self.marks

    @property
    def lengths_ns(self) -> Int64s:
        """Length of every warm step, in order."""
        return self.spans.ends - self.spans.starts


def typical_step(trace: Trace) -> TypicalStep:
    """The typical step of the device that is busy longest; of the CPU where the program has no GPU work."""
    if not len(trace.gpu) and not len(trace.ops) + len(trace.python) + len(trace.ranges):
        wrong = [entry.message for entry in trace.health_entries if entry.severity != "info"]
        why = f": {wrong[0].rstrip('.')}" if wrong else ""
        raise NoGpuWork(f"{trace.file.name} has no operations to compare{why}")
    return replace(_typical(trace, *_warm_steps(trace)), covered=covered_share(trace))


def whole_span(trace: Trace, first: int, stop: int) -> TypicalStep:
    """These steps of a recording, as if they were one."""
    starts, ends = trace.step_spans
    span = Spans(starts[first : first + 1], ends[stop - 1 : stop])
    return _typical(trace, span, span, str(trace.steps_in_view.found_by[0]))


def _typical(trace: Trace, steps: Spans, marks: Spans, found_by: str | None) -> TypicalStep:
    if not len(trace.gpu):
        return _on_cpu(trace, steps, found_by)
    device, gpu = _busiest(trace, steps)
    which, step, charged, waited = _charges(gpu, steps)
    alike, are_most = _like_the_median(gpu.name.codes[which], step, steps)
    starts = np.searchsorted(step, alike)
    count = int(np.count_nonzero(step == alike[0]))
    each = starts[:, None] + np.arange(count)
    gaps = next(gaps for gaps in idle_gaps(trace, within=steps) if gaps.device == device)
    in_alike = np.flatnonzero(np.isin(np.searchsorted(steps.starts, gaps.starts, side="right") - 1, alike))
    idle_ns = gaps.by_cause(in_alike).sum(axis=1) / len(alike)
    lengths = steps.ends - steps.starts
    return TypicalStep(
        operations=_operations(trace, gpu[which[each[0]]]),
        exposed_ns=charged[each].mean(axis=0),
        idle_ns=dict(zip(CAUSES, idle_ns.tolist(), strict=True)),
        spans=steps,
        averaged=len(alike),
        step_ns=float(lengths[alike].mean()),
        device=device,
        found_by=found_by,
        ahead_ns=_ahead(steps, marks, alike),
        waited_ns=waited[each].mean(axis=0) if are_most else None,
        between_ns=_between(steps),
        marks=marks,
    )


def _on_cpu(trace: Trace, steps: Spans, found_by: str | None) -> TypicalStep:
    """The typical step of a program without GPU work, by the events that take its time."""
    found = CpuProgram(trace).segments(list(zip(steps.starts.tolist(), steps.ends.tolist(), strict=True)))
    # An event with others inside it has several segments, and stands where the first of them does.
    first, event = combinations(np.searchsorted(steps.starts, found.start_ns, side="right") - 1, found.event)
    order = np.argsort(first, kind="stable")
    charged = np.bincount(event, found.length_ns)[order]
    found = found[first[order]]
    step = np.searchsorted(steps.starts, found.start_ns, side="right") - 1
    _, names = np.unique((found.kind + ":" + found.name).astype(str), return_inverse=True)
    alike, are_most = _like_the_median(names, step, steps)
    starts = np.searchsorted(step, alike)
    each = starts[:, None] + np.arange(int(np.count_nonzero(step == alike[0])))
    return TypicalStep(
        operations=_cpu_operations(trace, found[each[0]]),
        exposed_ns=charged[each].mean(axis=0),
        idle_ns=dict.fromkeys(CAUSES, 0.0),
        spans=steps,
        averaged=len(alike),
        step_ns=float((steps.ends - steps.starts)[alike].mean()),
        device=CPU,
        found_by=found_by,
        waited_ns=np.zeros(each.shape[1]) if are_most else None,
        between_ns=_between(steps),
    )


def _cpu_operations(trace: Trace, found: CpuSegments) -> tuple[Operation, ...]:
    sizes = [tuple(map(int, re.findall(r"\d{1,15}", text or ""))) for text in trace.ops.shapes.at(found.op).texts]
    spots = {text: site.spot for text in set(found.site.tolist()) if text and (site := Site.parse(text))}
    return tuple(
        Operation(kind, _cpu_name(kind, name, elsewhere), "", size, spots.get(site, ""))
        for kind, name, elsewhere, size, site in zip(
            found.kind, found.name, found.elsewhere.tolist(), sizes, found.site, strict=True
        )
    )


def _cpu_name(kind: str, name: str, elsewhere: bool) -> str:
    plain = f"gap {name}" if kind == "gap" else FRAME_LINE.sub(": ", name)
    return f"{plain} on other threads" if elsewhere else plain


def _warm_steps(trace: Trace) -> tuple[Spans, Spans, str | None]:
    """The steps, from the CPU's or the device's start to the later end; their marks; and how they were found."""
    starts, ends = trace.step_spans
    cold = trace.once(find_cold_steps)
    keep = ends > starts
    if cold is not None:
        keep[cold.first : cold.first + cold.count] = False
    if not keep.any():
        window = trace.window
        whole = Spans(np.array([window.start_ns]), np.array([window.end_ns]))
        return whole, whole, None
    steps = trace.steps_in_view
    marks = Spans(steps.start_ns[keep], steps.end_ns[keep])
    return Spans(starts[keep], ends[keep]), marks, str(steps.found_by[0])


def _between(steps: Spans) -> float:
    """The median time from the end of a step to the start of the next."""
    apart = steps.starts[1:] - np.maximum.accumulate(steps.ends)[:-1]
    return float(np.median(np.maximum(apart, 0))) if len(apart) else 0.0


def _ahead(steps: Spans, marks: Spans, alike: Int64s) -> float:
    """The CPU's time for a step, if the device ends these steps after the CPU."""
    if not (steps.ends[alike] > marks.ends[alike]).any():
        return 0.0
    return float((marks.ends[alike] - marks.starts[alike]).mean())


def _busiest(trace: Trace, steps: Spans) -> tuple[int, Gpu]:
    """The device that is busy longest in the steps, and what it ran."""
    devices = {device: trace.gpu[rows] for device, rows in rows_by_device(trace.gpu)}

    def busy_ns(device: int) -> int:
        spans = union(devices[device].start_ns, devices[device].end_ns)
        return int((covered_before(spans, steps.ends) - covered_before(spans, steps.starts)).sum())

    device = max(devices, key=busy_ns)
    return device, devices[device]


def _charges(gpu: Gpu, steps: Spans) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """For each operation in each step, by step and start: its row, the step, the time charged to it, and the idle time
    before it.

    What runs at once is charged once: to the first of compute, communication, copy and memset, and of these to the one
    that started first. So the charges in a step sum to the time in which the device is busy.
    """
    which, step, piece_starts, piece_ends = pieces(gpu.start_ns, gpu.end_ns, steps)
    activities = activities_of(gpu)[which]
    charged = np.zeros(len(which), np.int64)
    claimed = EMPTY
    for activity in range(len(PRIORITY)):
        places = np.flatnonzero(activities == activity)
        if not len(places):
            continue
        reach = np.concatenate(([LONG_AGO], np.maximum.accumulate(piece_ends[places])[:-1]))
        first, last = np.maximum(piece_starts[places], reach), piece_ends[places]
        covered = covered_before(claimed, np.maximum(first, last)) - covered_before(claimed, first)
        charged[places] = np.maximum(last - first, 0) - covered
        claimed = union(np.append(claimed.starts, piece_starts[places]), np.append(claimed.ends, piece_ends[places]))
    order = np.lexsort((which, step))
    which, step, piece_starts, piece_ends = (values[order] for values in (which, step, piece_starts, piece_ends))
    # Steps do not overlap, so one running maximum serves all of them.
    reached = np.concatenate(([LONG_AGO], np.maximum.accumulate(piece_ends)[:-1]))
    waited = np.maximum(piece_starts - np.maximum(reached, steps.starts[step]), 0)
    return which, step, charged[order], waited


def _like_the_median(codes: Int64s, step: Int64s, steps: Spans) -> tuple[Int64s, bool]:
    """The steps to average: those of the median one's operations whose length is middling; and whether most steps run
    these operations. `codes` are their names."""
    first, stop = (np.searchsorted(step, np.arange(len(steps)), side=side) for side in ("left", "right"))
    marks = [codes[slice(*bounds)].tobytes() for bounds in zip(first, stop, strict=True)]
    lengths = steps.ends - steps.starts
    usual = {mark for mark, times in Counter(marks).items() if 2 * times > len(marks)}
    order = np.argsort(lengths, kind="stable")
    are_most = bool(usual)
    median = usual.pop() if usual else marks[order[(len(order) - 1) // 2]]
    alike = np.array([position for position, mark in enumerate(marks) if mark == median])
    if len(alike) < MIN_STEPS:
        return alike, are_most
    low, high = np.quantile(lengths[alike], MIDDLE)
    return alike[(lengths[alike] >= low) & (lengths[alike] <= high)], are_most


def _operations(trace: Trace, gpu: Gpu) -> tuple[Operation, ...]:
    ops = trace.ops.name.at(gpu.op_id).texts
    grids = zip(*(filled(axis, 0).tolist() for axis in (gpu.grid_x, gpu.grid_y, gpu.grid_z)), strict=True)
    memory = (gpu.copy_kind.texts, gpu.source_memory.texts, gpu.target_memory.texts)
    names = map(_name, gpu.kind.texts, gpu.name.texts, *memory)
    return tuple(map(Operation, gpu.kind.texts, names, ops, grids))


def _name(kind: str, name: str, copy_kind: str, source: str, target: str) -> str:
    """Copies and memsets by what they do, as Kineto writes it: each tool has other words for them."""
    if kind == "memcpy" and copy_kind not in UNKNOWN:
        memory = f" ({source} -> {target})" if UNKNOWN.isdisjoint((source, target)) else ""
        return f"Memcpy {copy_kind}{memory}"
    if kind == "memset" and target not in UNKNOWN:
        return f"Memset ({target})"
    return name
