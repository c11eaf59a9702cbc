"""What a verdict looks at beside the limits: the judged steps, and whether they stand for the recording."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from warpline.analyses.breakdown import device_times
from warpline.analyses.collective_waits import least_waits_ns
from warpline.analyses.framework import Framework
from warpline.analyses.idle.host_activity import WAITING
from warpline.api_names import ALLOCATION, BEGIN_CAPTURE, GRAPH_LAUNCH
from warpline.capture.run_folder import LoaderWork
from warpline.estimate import CLEAR_GAIN
from warpline.fixes.claim import CAUSES
from warpline.fixes.evidence import Evidence
from warpline.fixes.words import StepNoun
from warpline.replay.bounds import DeviceWork
from warpline.replay.patterns.allocator import calls_in_steps, frees_in_steps
from warpline.replay.patterns.grids import LIBRARY_CLASSES, Grids
from warpline.replay.remaining import KERNEL_SPREAD
from warpline.replay.representative_steps import warm_steps
from warpline.trace.arrays import NONE
from warpline.trace.launches import are_unlaunched, launched_ns
from warpline.trace.schema import MIGRATION
from warpline.trace.steps.proper_steps import loaded_before
from warpline.trace.trace import Trace

MIN_COVERED = 0.5
"""Share of the recording's GPU time that the steps must hold to stand for it."""

MIN_DIFFERENCE = 0.02
"""Busy shares with and without the profiler that differ by less are shown as one."""

COPIES = "Copies on the device"
"""The name of the cause `memory` where nothing is allocated."""

MIN_CAPTURED = 0.5
"""Share of the judged time from which a recording is one of a graph capture."""

LEAST_SHOWN = 0.001
"""The smallest share that is written as a number: one digit after the point says nothing about smaller ones."""

MOST_OF_A_STEP = 0.5
"""Share of a step from which kernels that leave the device half empty, or that gather and add rows, are most of it."""

ADDING_ROWS = ("index_add", "scatter_gather")
MOVING_ROWS = (*ADDING_ROWS, "gather", "embedding_backward")
"""What kernels do that add rows at indices (index_add, scatter_add), and that read rows for it or in its backward."""


class HalfEmpty(Struct, frozen=True):
    """Kernels that, by their grids, can use half of the device at most."""

    time_ns: float
    """In a step."""
    blocks: int
    threads: int
    """Blocks of the longest of them, and threads of each block."""
    sms: int
    """Multiprocessors of the device …"""
    warp_size: int
    """… and threads of a warp."""


class Rest(Struct, frozen=True):
    """What a program without steps does before its first GPU operation and after its last."""

    time_ns: int
    """From the first recorded event of a thread that launches to the last, without the time in between."""
    activity: str
    """What a launching thread does in most of it: a cause of idle time, or `unknown`."""
    activity_ns: int


CPU_SIDE = ("ops", "Python stacks", "OS calls")
"""What a recording can say of the CPU, beside calls and ranges."""


class State(Struct, frozen=True):
    """The judged steps of the busiest device."""

    step_ns: float
    """Without a profiler."""
    idle_share: float
    """As recorded, of all warm steps or the recording: what the answer shows below the verdict."""
    bare_idle_share: float
    """Without a profiler."""
    errors: tuple[str, ...] = ()
    """Codes of the health errors."""
    covered: float = 1.0
    """Share of the recording's GPU time that was launched in steps."""
    noun: StepNoun = StepNoun("step")
    """What its times are about: a recording in which no steps were found counts as one."""
    operations: int = 2
    """Operations of the GPU in the judged steps."""
    framework: Framework = "pytorch"
    """What the program is written with."""
    slowness: float = 1.0
    """How many times slower than usual the host was, where no stopwatch ran."""
    captured: float = 0.0
    """Share of the judged time in which the GPU is idle while a graph is captured; 1 where nothing else is recorded."""
    unrecorded_ns: float = 0.0
    """Idle time of a step in which what is launched waits for what was not recorded; 0 where other idle time without a
    reason is longer."""
    share_of_recording: float = 1.0
    """Share of the recording's time that the steps take, or, without steps, what lies between the first GPU operation
    and the last."""
    rest: Rest | None = None
    """The time before and after that; None with steps."""
    fits_devices: bool = True
    """Whether a step is at least as long as what a device does in it."""
    replay_error: float = 0.0
    """How far the unchanged replay is from the recorded step, as a share of it."""
    unlaunched_share: float = 0.0
    """Share of the recording's GPU time without a recorded launch: nothing says when it could have started."""
    distortion: float = 1.0
    """The recorded step over the one without a profiler."""

    unexplained_ns: float = 0.0
    """Idle time of a step for which nothing recorded gives a reason …"""
    lacks: tuple[str, ...] = CPU_SIDE
    """… what of the CPU's side was not recorded …"""
    migrations: float = 0.0
    """… and how often pages of unified memory migrate in it, outside any stream."""
    half_empty: HalfEmpty | None = None
    """The kernels that take most of a step and can use half of the device at most; None where others do."""
    graph_bars_ns: float = 0.0
    """Time of a step in CUDA graphs that are recorded as one event each: their kernels are not known."""
    rows_ns: float = 0.0
    """Time of a step in kernels that gather rows and add them at indices, where that is most of it; 0 elsewhere."""
    own_code_ns: float = 0.0
    """Time of a step in which the CPU runs the program's own code and launches nothing."""
    allocates: bool = True
    """Whether the driver allocates or frees memory in the steps."""
    copies_ns: float = 0.0
    """Time of a step in copies between host and device."""
    comm_ns: float = 0.0
    """Time of collectives in a step …"""
    rank_wait_ns: float = 0.0
    """… and how much of it is waiting for other ranks, at the least."""
    loader: LoaderWork | None = None
    """What the workers of a DataLoader do for a step."""
    is_one_rank: bool = False
    """Whether the collectives are those of a single device, and other ranks have files of their own."""

    @property
    def is_covered(self) -> bool:
        """Whether the steps stand for the recording."""
        return self.covered >= MIN_COVERED

    @property
    def is_one_operation(self) -> bool:
        """Whether the GPU does a single thing, of which no step can be told."""
        return self.operations < 2

    @property
    def is_capture(self) -> bool:
        """Whether the recording is of a graph capture."""
        return self.captured >= MIN_CAPTURED

    @property
    def the_step(self) -> str:
        """`the step` or `the recording`."""
        return self.noun.one("the")

    @property
    def each_step(self) -> str:
        """`each step` or `the recording`."""
        return self.noun.one("each")

    @property
    def busy(self) -> str:
        """The busy share in words, without what recording visibly took from it."""
        recorded, bare = percent(1 - self.idle_share), percent(1 - self.bare_idle_share)
        if self.idle_share - self.bare_idle_share < MIN_DIFFERENCE:
            return f"busy {recorded} of {self.each_step}"
        return f"busy {bare} of {self.each_step} without the profiler ({recorded} as recorded)"

    def name_of(self, cause: str) -> str:
        """The first words of a verdict. Most of a collective's time may be a wait for other ranks, and not
        communication; without allocations, what remains of memory is copies."""
        if cause == "comm" and self.rank_wait_ns > self.comm_ns / 2:
            return "Waiting for other ranks"
        if cause == "memory" and not self.allocates:
            return COPIES
        return next((name for known, name in CAUSES.items() if known == cause), "Waiting")


def state_of(trace: Trace, evidence: Evidence, work: DeviceWork) -> State:
    """The state of a trace whose judged steps the evidence is about."""
    rest = _rest(evidence)
    return State(
        step_ns=evidence.step_ns,
        idle_share=_recorded_idle_share(trace),
        bare_idle_share=evidence.bare.idle_share,
        errors=tuple(entry.code for entry in trace.health_entries if entry.severity == "error"),
        covered=covered_share(trace),
        noun=evidence.noun,
        operations=len(evidence.trace.gpu),
        framework=evidence.framework,
        slowness=evidence.bare.slowness,
        own_code_ns=evidence.host_time_saved("less_host_code"),
        allocates=_allocates(evidence),
        copies_ns=evidence.time_per_step(evidence.labelled.is_copy & evidence.labelled.copy_kind.equal("HtoD", "DtoH")),
        comm_ns=evidence.time_per_step(evidence.labelled.kernels("comm")),
        rank_wait_ns=_rank_wait_ns(evidence),
        loader=evidence.labelled.loader_work,
        is_one_rank=len(np.unique(evidence.labelled.work_number("device")[evidence.labelled.kernels("comm")])) == 1,
        captured=_captured_share(trace, evidence),
        unexplained_ns=evidence.idle["unknown"] / evidence.steps,
        lacks=tuple(
            name for name, table in zip(CPU_SIDE, (trace.ops, trace.python, trace.osrt), strict=True) if not len(table)
        ),
        migrations=float(evidence.trace.gpu.copy_kind.like(MIGRATION).sum()) / evidence.steps,
        half_empty=_half_empty(evidence),
        graph_bars_ns=_graph_bars_ns(evidence),
        rows_ns=_rows_ns(evidence),
        unrecorded_ns=_unrecorded_ns(evidence),
        share_of_recording=_share_of_recording(trace, rest),
        rest=rest,
        distortion=evidence.question.replay.measured_step_ns / evidence.step_ns,
        unlaunched_share=_unlaunched_share(trace),
        replay_error=evidence.question.replay.error_pct / 100,
        fits_devices=work.busy_ns <= (1 + KERNEL_SPREAD) * evidence.bare.step_ns.high,
    )


def _allocates(evidence: Evidence) -> bool:
    calls = calls_in_steps(evidence.labelled, ALLOCATION), frees_in_steps(evidence.labelled)
    return any(map(len, calls))


def _recorded_idle_share(trace: Trace) -> float:
    steps = warm_steps(trace)
    busiest = max(device_times(trace.with_steps(steps) if steps else trace), key=lambda device: device.busy_ns)
    return busiest.idle_ns / max(busiest.window_ns, 1)


def _captured_share(trace: Trace, evidence: Evidence) -> float:
    """Of the idle time in which a graph is captured; 1 for a recording without steps that only captures graphs, and
    replays none."""
    names = trace.api.name
    only = not len(trace.steps_in_view) and names.like(BEGIN_CAPTURE).any() and not names.like(GRAPH_LAUNCH).any()
    return 1.0 if only else evidence.captured_share


def _rank_wait_ns(evidence: Evidence) -> float:
    """What the collectives of a step wait for other ranks, at the least."""
    labelled = evidence.labelled
    nodes = evidence.in_steps(labelled.kernels("comm"))
    return float(least_waits_ns(labelled.trace)[labelled.graph.row[nodes]].sum()) / evidence.steps


def _unlaunched_share(trace: Trace) -> float:
    gpu = trace.gpu
    lengths = (gpu.end_ns - gpu.start_ns).astype(np.float64)
    return float(lengths[are_unlaunched(gpu)].sum()) / max(float(lengths.sum()), 1.0)


def _half_empty(evidence: Evidence) -> HalfEmpty | None:
    """Libraries choose the grids of their kernels, and know why."""
    labelled = evidence.labelled
    grids = labelled.once(Grids)
    nodes = grids.half_empty() & labelled.is_kernel & ~labelled.kernels(*LIBRARY_CLASSES)
    time_ns = evidence.time_per_step(nodes)
    if time_ns <= MOST_OF_A_STEP * evidence.step_ns:
        return None
    longest = int(np.argmax(np.where(nodes, labelled.graph.duration, 0.0)))
    return HalfEmpty(
        time_ns, round(grids.blocks[longest]), round(grids.threads[longest]), round(grids.sms), grids.warp_size
    )


def _graph_bars_ns(evidence: Evidence) -> float:
    bars = evidence.trace.gpu[evidence.trace.gpu.kind.equal("graph")]
    return float((bars.end_ns - bars.start_ns).sum()) / evidence.steps


def _rows_ns(evidence: Evidence) -> float:
    """Gathers alone, as of embeddings, are no sparse matmul."""
    labelled = evidence.labelled
    adding_ns = evidence.time_per_step(labelled.kernels_where(lambda kernel: kernel.op in ADDING_ROWS))
    moving_ns = evidence.time_per_step(labelled.kernels_where(lambda kernel: kernel.op in MOVING_ROWS))
    is_most = moving_ns > MOST_OF_A_STEP * evidence.step_ns
    return moving_ns if is_most and adding_ns >= (CLEAR_GAIN - 1) * evidence.step_ns else 0.0


def _unrecorded_ns(evidence: Evidence) -> float:
    late_ns = evidence.bare.recorded_gaps.unrecorded_ns
    return late_ns / evidence.steps if 2 * late_ns > evidence.idle["unknown"] else 0.0


def _share_of_recording(trace: Trace, rest: Rest | None) -> float:
    """1 where steps were asked for; cold steps at either end are not counted."""
    if rest is not None:
        inside_ns = trace.window.length_ns
        return inside_ns / max(inside_ns + rest.time_ns, 1)
    steps = warm_steps(trace)
    if steps is None:
        return 1.0
    return trace.with_steps(steps).window.length_ns / max(trace.whole().window.length_ns, 1)


def _rest(evidence: Evidence) -> Rest | None:
    trace, host = evidence.trace, evidence.labelled.host_time
    if len(trace.all_steps) or not len(host.launching):
        return None
    ranges = trace.ranges[trace.ranges.end_ns != NONE]
    starts, ends = [trace.window.start_ns], [trace.window.end_ns]
    for table in (trace.api, trace.ops, ranges, trace.python, trace.osrt):
        own = np.isin(table.thread, host.launching)
        starts.append(int(table.start_ns[own].min(initial=starts[0])))
        ends.append(int(table.end_ns[own].max(initial=ends[0])))
    begin, end = (np.array(side) for side in ((min(starts), trace.window.end_ns), (trace.window.start_ns, max(ends))))
    threads, launches = np.unique(host.calls.thread, return_counts=True)
    lane = np.full(2, threads[launches.argmax()])
    spent = {label: int(spans.covered_ns(lane, begin, end).sum()) for label, spans in host.activity.items()}
    time_ns = int((end - begin).sum())
    spent["unknown"] = time_ns - sum(spent.values()) + spent.pop(WAITING)
    activity = max(spent, key=lambda label: spent[label])
    return Rest(time_ns, activity, spent[activity])


def covered_share(trace: Trace) -> float:
    """Share of the GPU time that was launched (or ran, where the launch is unknown) in the steps; 1 where steps were
    asked for, or none were found. A model that is loaded before the first kernel is not counted."""
    steps = trace.steps_in_view
    if trace.has_some_steps_chosen or not len(steps) or not len(trace.gpu):
        return 1.0
    starts, ends = trace.gpu.start_ns, trace.gpu.end_ns
    launched = launched_ns(trace.gpu, trace.api)
    inside = np.zeros(len(starts), bool)
    for moment in (starts, launched):
        step = np.searchsorted(steps.start_ns, moment, side="right") - 1
        inside |= (step >= 0) & (moment < steps.end_ns[step])
    length = np.where(loaded_before(trace.gpu), 0, np.maximum(ends - starts, 0))
    return float(length[inside].sum()) / max(float(length.sum()), 1.0)


def percent(share: float) -> str:
    """A share in percent; 0 % and 100 % only where it is nothing, or nearly all."""
    if 0 < share < LEAST_SHOWN:
        return f"under {100 * LEAST_SHOWN:.1f} %"
    digits = 1 if share < 0.005 or 0.995 <= share < 0.9995 else 0
    return f"{100 * share:.{digits if share else 0}f} %"
