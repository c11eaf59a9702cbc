"""Health of a linked trace: what is missing, impossible or doubtful in it."""

from __future__ import annotations

from collections import Counter

import numpy as np

from warpline.api_names import BEGIN_CAPTURE, END_CAPTURE, GRAPH_LAUNCH, LAUNCH
from warpline.intervals import union
from warpline.sources.health import HealthEntry, Severity
from warpline.trace.arrays import NONE, Bools, combinations, grouped
from warpline.trace.launches import are_unlaunched
from warpline.trace.schema import MIGRATION, Api, Gpu
from warpline.trace.steps.choice import have_gpu_work, profiler_steps
from warpline.trace.trace import Trace
from warpline.units import duration, share

NOTABLE_SHARE = 0.01
"""Below this share of the GPU time or of the calls, an entry is information, not a warning."""
ZERO_FLOOD_SHARE = 0.05
ZERO_FLOOD_COUNT = 10
SKEW_NS = 1_000
"""A kernel that starts this long before its launch shows that the host and device clocks disagree."""
FEWEST_EVENTS = 10
"""Fewer events of the CPU do not show how long a recording took: one launch is over before its kernel begins."""
GPU_OPS = r"^aten::_?((cudnn|miopen)_([^i]|init)|mps_)|^aten::linear_backward$"
"""Ops that exist on a GPU only, unlike `cudnn_is_acceptable`, which is asked of tensors of the CPU too. Only on an
Apple GPU (MPS) is the backward pass of a dense layer an op of its own."""
LONG_GAP_SHARE, LONG_GAP_NS = 0.5, 60_000_000_000
"""A gap of this share of the recording, and of more than a minute: a checkpoint or an evaluation is shorter."""


def check(trace: Trace) -> list[HealthEntry]:
    """Every health entry of a linked trace, the worst first within each check."""
    checks = (
        _gpu_work,
        _unlinked_work,
        _unanswered_launches,
        _stream_overlap,
        _durations,
        _clocks,
        _shapes,
        _graphs,
        _steps,
    )
    return [entry for part in checks for entry in part(trace)]


def _busy_ns(gpu: Gpu) -> int:
    return union(gpu.start_ns, gpu.end_ns).total_ns()


def _gpu_work(trace: Trace) -> list[HealthEntry]:
    if len(trace.gpu):
        return []
    if not any(map(len, (trace.api, trace.ops, trace.ranges, trace.python, trace.osrt))):
        return [HealthEntry("empty-trace", "error", "The file contains no events that can be used.")]
    launches = int(trace.api.name.like(LAUNCH).sum())
    if launches:
        message = f"No GPU operations are recorded for {launches:,} launches: the profiler lost or did not flush them."
    elif len(trace.api):
        message = f"No GPU operations are recorded: {len(trace.api):,} CUDA calls were made, but no launches."
    else:
        of_gpu = trace.ops.name[trace.ops.name.like(GPU_OPS)].present()
        if of_gpu:
            message = f"No GPU operations are recorded, but {min(of_gpu)} runs on a GPU: only the CPU was profiled."
            return [HealthEntry("no-gpu-work", "error", message)]
        message = (
            "No GPU operations or CUDA calls are recorded: the program did not use a GPU, or only the CPU was profiled."
        )
    return [HealthEntry("no-gpu-work", "error" if launches else "warning", message)]


def _unlinked_work(trace: Trace) -> list[HealthEntry]:
    gpu, api = trace.gpu, trace.api
    orphans = gpu[are_unlaunched(gpu)]
    if not len(orphans):
        return []
    busy, lost = _busy_ns(gpu), _busy_ns(orphans)
    if not len(api):
        return [
            HealthEntry(
                "no-launches",
                "warning",
                f"The file has no CUDA calls: none of its {len(gpu):,} GPU operations can be linked to a launch.",
            )
        ]
    # Correlation ids count up, so an id below every recorded call's belongs to a call made before recording.
    first_recorded = api.correlation[api.correlation > 0].min(initial=np.iinfo(np.int64).max)
    early = orphans[(orphans.correlation != NONE) & (orphans.correlation < first_recorded)]
    rest = len(orphans) - len(early)
    entries = []
    if len(early):
        until = int(early.end_ns.max() - gpu.start_ns.min())
        entries.append(
            HealthEntry(
                "profiler-start-skew",
                "info",
                f"Operations launched before recording began: {len(early):,}, all in the first {duration(until)}.",
            )
        )
    entries.append(
        HealthEntry(
            "work-without-launch",
            _severity(lost, busy),
            f"{len(orphans):,} of {len(gpu):,} GPU operations ({share(lost, busy)} of the busy time) have no recorded "
            f"launch{f' ({rest:,} lost within the recording)' if rest else ''}; they count, but have no op.",
        )
    )
    return entries


def _severity(part: float, whole: float) -> Severity:
    return "warning" if part > NOTABLE_SHARE * whole else "info"


def _captured(api: Api) -> Bools:
    """Calls made while their thread captures a CUDA graph; they launch nothing yet."""
    captured = np.zeros(len(api), bool)
    opening = api.name.like(BEGIN_CAPTURE).astype(np.int64) - api.name.like(END_CAPTURE)
    if opening.any():
        for _, calls in grouped(np.arange(len(api)), api.thread):
            captured[calls] = np.cumsum(opening[calls]) > 0
    return captured


def _unanswered_launches(trace: Trace) -> list[HealthEntry]:
    gpu, api = trace.gpu, trace.api
    if not len(gpu) or not len(api):
        return []
    answered = np.zeros(len(api) + 1, bool)
    answered[gpu.api_id] = True
    launches = api.name.like(LAUNCH) & ~_captured(api)
    failed = (api.return_code != NONE) & (api.return_code != 0)
    silent = np.flatnonzero(launches & ~answered[:-1] & ~failed)
    if not len(silent):
        return []
    last_answered = int(np.flatnonzero(answered[:-1]).max(initial=0))
    tail = int((silent > last_answered).sum())
    names = [name for name, _ in Counter(api.name[silent].texts.tolist()).most_common(3)]
    where = f"; {tail:,} of them come after the last recorded kernel, as if recording stopped early" if tail else ""
    return [
        HealthEntry(
            "launch-without-work",
            _severity(len(silent), int(launches.sum())),
            f"{len(silent):,} of {int(launches.sum()):,} launches ({', '.join(names)}) have no GPU operation{where}.",
        )
    ]


def _stream_overlap(trace: Trace) -> list[HealthEntry]:
    """Operations on one stream run in order; an overlap means wrong times or merged files.

    Branches of a CUDA graph may run concurrently on one stream, and so may unified-memory migrations.
    """
    gpu = trace.gpu
    in_graph = np.append(trace.api.name.like(GRAPH_LAUNCH), False)[gpu.api_id] | (gpu.graph_node_id != NONE)
    in_order = gpu[~in_graph & (gpu.stream != NONE) & ~gpu.copy_kind.like(MIGRATION)]
    starts, ends = in_order.start_ns, in_order.end_ns
    # In a file with whole microseconds, rounding makes neighbours overlap by up to 1 µs.
    tolerance = 1_000 if len(starts) and (starts % 1000 == starts[0] % 1000).all() else 0
    stream = combinations(in_order.device, in_order.context, in_order.stream)[1]
    count, total = 0, 0
    for _, rows in grouped(np.arange(len(in_order)), stream):  # in the order of their start and end
        before, start, end = np.maximum.accumulate(ends[rows])[:-1], starts[rows][1:], ends[rows][1:]
        early = before - start > tolerance
        count += int(early.sum())
        total += int((np.minimum(before, end) - start)[early].sum())
    if not count:
        return []
    return [
        HealthEntry(
            "overlap-on-stream",
            _severity(total, _busy_ns(gpu)),
            f"{_start(count)} before the previous one on the same stream has ended "
            f"({duration(total)} in total): the times are imprecise, or several recordings were merged.",
        )
    ]


def _start(operations: int) -> str:
    return "1 operation starts" if operations == 1 else f"{operations:,} operations start"


def _durations(trace: Trace) -> list[HealthEntry]:
    gpu = trace.gpu
    if not len(gpu):
        return []
    entries = []
    lengths = gpu.end_ns - gpu.start_ns
    starts = np.append(trace.api.start_ns, trace.ops.start_ns)
    if len(starts) >= FEWEST_EVENTS:
        begin, end = int(starts.min()), int(np.append(trace.api.end_ns, trace.ops.end_ns).max())
        endless = int(((lengths > end - begin) & (gpu.api_id != NONE)).sum())
        if endless:
            entries.append(
                HealthEntry(
                    "impossible-duration",
                    "error",
                    f"GPU operations longer than the whole recording of {duration(end - begin)}: {endless:,} "
                    f"(the longest {duration(int(lengths.max()))}). Their times are wrong.",
                )
            )
    zero = int((lengths == 0).sum())
    if zero >= ZERO_FLOOD_COUNT and zero > ZERO_FLOOD_SHARE * len(gpu):
        entries.append(
            HealthEntry(
                "zero-durations",
                "warning",
                f"{zero:,} of {len(gpu):,} GPU operations have zero duration: their times were lost or rounded away.",
            )
        )
    negative = int((lengths < 0).sum())
    if negative:
        entries.append(HealthEntry("negative-duration", "error", f"{negative:,} GPU operations end before they start."))
    return entries


def _clocks(trace: Trace) -> list[HealthEntry]:
    gpu = trace.gpu
    if not len(gpu):
        return []
    entries = []
    linked = gpu[gpu.api_id != NONE]
    lead = trace.api.start_ns[linked.api_id] - linked.start_ns
    early = int((lead > SKEW_NS).sum())
    if early:
        entries.append(
            HealthEntry(
                "clock-skew",
                _severity(early, len(linked)),
                f"{early:,} GPU operations start up to {duration(int(lead.max()))} before their own launch: "
                "the host and device clocks disagree.",
            )
        )
    return entries + _clock_jump(trace)


def _clock_jump(trace: Trace) -> list[HealthEntry]:
    tables = trace.gpu, trace.api, trace.ops
    starts, ends = np.concatenate([one.start_ns for one in tables]), np.concatenate([one.end_ns for one in tables])
    if int(ends.max() - starts.min()) <= LONG_GAP_NS:
        return []
    spans = union(starts, ends)
    whole = int(spans.ends[-1] - spans.starts[0]) if len(spans) else 0
    longest = int((spans.starts[1:] - spans.ends[:-1]).max(initial=0))
    if longest <= max(LONG_GAP_NS, LONG_GAP_SHARE * whole):
        return []
    return [
        HealthEntry(
            "clock-jump",
            "warning",
            f"Nothing is recorded for {duration(longest)} of {duration(whole)}: the clock jumped, or recording paused.",
        )
    ]


def _shapes(trace: Trace) -> list[HealthEntry]:
    if not len(trace.ops) or (trace.ops.shapes.codes != NONE).any():
        return []
    return [
        HealthEntry(
            "missing-shapes",
            "info",
            "Ops were recorded without shapes (record_shapes=True adds them): their FLOPs and bytes are unknown.",
        )
    ]


def _graphs(trace: Trace) -> list[HealthEntry]:
    bars = trace.gpu[trace.gpu.kind.equal("graph")]
    if not len(bars):
        return []
    part = share(_busy_ns(bars), _busy_ns(trace.gpu))
    return [
        HealthEntry(
            "graph-as-one-bar",
            "warning",
            f"{len(bars):,} CUDA-graph replays ({part} of busy time) are recorded as one event each; "
            "nsys profile --cuda-graph-trace=node shows the kernels inside.",
        )
    ]


def _steps(trace: Trace) -> list[HealthEntry]:
    """Steps in which the device is idle throughout, and which launch nothing that runs later."""
    steps = profiler_steps(trace.ranges) or trace.all_steps
    if not len(steps.start_ns) or not len(trace.gpu):
        return []
    found = np.flatnonzero(~have_gpu_work(steps.start_ns, steps.end_ns, trace.gpu, trace.api))
    if not len(found):
        return []
    which = ", ".join(str(step) for step in found[:5]) + (" …" if len(found) > 5 else "")
    return [
        HealthEntry(
            "empty-steps",
            "warning",
            f"{len(found)} of {len(steps.start_ns)} recorded steps have no GPU operations (step {which}): the device "
            "was not recorded yet, or the recording ends there; at either end they are left out.",
        )
    ]
