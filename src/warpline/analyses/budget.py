"""The dispatch budget: can the CPU launch as fast as the device computes?

A step of `ops` operations costs `ops x cpu_ns` to dispatch and `ops x gpu_ns` to run; whichever is more is the step.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from warpline.analyses.idle.host_activity import LONGEST_PYTHON_NS, pageable_copies
from warpline.analyses.idle.host_time import HostTime
from warpline.api_names import ASYNC_COPY, COPY, HOST_WAIT
from warpline.errors import CannotAnswer, NoGpuWork
from warpline.intervals import Spans, difference, intersection, joined, union
from warpline.trace.arrays import NEVER, NONE, Bools, Int64s
from warpline.trace.launches import launched_ns, waits_for_room
from warpline.trace.schema import Api, Gpu
from warpline.trace.steps.choice import on_device
from warpline.trace.trace import Trace


class DispatchBudget(Struct, frozen=True):
    """Dispatch time and GPU time of a step."""

    ops: float
    """Launches in a step."""
    cpu_ns: float
    """CPU time to dispatch one of them."""
    gpu_ns: float
    """GPU time of one of them."""

    @property
    def dispatch_ns(self) -> float:
        """CPU time of a step."""
        return self.ops * self.cpu_ns

    @property
    def work_ns(self) -> float:
        """GPU time of a step."""
        return self.ops * self.gpu_ns

    @property
    def step_ns(self) -> float:
        """The step time, if dispatch runs ahead without waits."""
        return max(self.dispatch_ns, self.work_ns)

    @property
    def bound(self) -> str:
        """`cpu` or `gpu`: whichever a step waits for."""
        return "cpu" if self.dispatch_ns > self.work_ns else "gpu"

    @property
    def crossover_ops(self) -> float | None:
        """Launches that the CPU can make during the step's GPU time; with more, the CPU is the bottleneck.

        None where a launch takes no time.
        """
        return self.work_ns / self.cpu_ns if self.cpu_ns else None

    def graph_ns(self, launch_ns: float, gap_ns: float) -> float:
        """The step as one CUDA graph, which takes `launch_ns` to launch and has `gap_ns` between two kernels."""
        return launch_ns + self.work_ns + self.ops * gap_ns

    def fused_ns(self, times_fewer: float, loading_ns: float = 0.0) -> float:
        """The step with that many times fewer launches, the same GPU time, and the same loading by the threads that
        launch."""
        return max(self.dispatch_ns / times_fewer + loading_ns, self.work_ns)


class RecordedBudget(Struct, frozen=True):
    """The budget of a trace as recorded, and where its dispatch lies."""

    budget: DispatchBudget
    dispatch: dict[int, Spans]
    """For each launching thread, the time in which it dispatches."""
    loading_ns: float
    """Time per step in which the launching threads load data, and which is no dispatch."""
    copies: float
    """How many of a step's launches copy or fill memory."""


def budget_of(trace: Trace) -> DispatchBudget:
    """The budget of a trace's steps: their launches, the CPU time of one, the GPU time of one."""
    return recorded_budget(trace).budget


def recorded_budget(trace: Trace) -> RecordedBudget:
    """The budget, as recorded.

    A launching thread dispatches while it runs ops and API calls, and in the short pauses between them, which are
    Python. Waits for the device or for space in the launch queue, blocking copies, loading data and loading or
    compiling code are no dispatch. Threads work at the same time: what one does while another dispatches adds nothing.
    """
    steps = trace.steps_in_view
    if not len(steps):
        raise CannotAnswer(
            "no-steps", "cannot answer, because the trace has no steps", "name a range that is one with --step-range"
        )
    work = trace.gpu[_launched_in(trace)]
    if not len(work):
        raise NoGpuWork("a budget weighs launches against the GPU's time, and the steps have no GPU operations")
    calls = trace.api[_calls_of(work)]
    if not len(calls):
        raise CannotAnswer("no-launches", "cannot answer, because the trace has no launches")
    window = _host_window(trace, calls)
    host = HostTime(trace)
    known, cold = host.loading(), host.activity["cold_start"]
    loading = {thread: intersection(known.of(thread), window) for thread in np.unique(calls.thread).tolist()}
    dispatch = {
        thread: difference(_active(trace, thread, window), joined([spans, cold.of(thread)]))
        for thread, spans in loading.items()
    }
    together = joined(list(dispatch.values()))
    return RecordedBudget(
        budget=DispatchBudget(
            ops=len(calls) / len(steps),
            cpu_ns=together.total_ns() / len(calls),
            gpu_ns=_busy_ns(work) / len(calls),
        ),
        dispatch=dispatch,
        loading_ns=difference(joined(list(loading.values())), together).total_ns() / len(steps),
        copies=len(np.setdiff1d(_calls_of(work), _calls_of(work[work.kind.equal("kernel", "graph")]))) / len(steps),
    )


def _calls_of(work: Gpu) -> Int64s:
    """The calls that launched these operations."""
    return np.unique(work.api_id[work.api_id != NONE])


def _busy_ns(work: Gpu) -> int:
    """GPU time of the busiest device: devices work side by side, so that their times do not add up."""
    own = (work[work.device == number] for number in np.unique(work.device).tolist())
    return max(union(one.start_ns, one.end_ns).total_ns() for one in own)


def _launched_in(trace: Trace) -> Bools:
    """What the steps in view launched. A loop that only launches runs ahead of the device, so its work may run after
    them."""
    steps, gpu = trace.steps_in_view, trace.gpu
    moments = gpu.start_ns if on_device(trace.all_steps) else launched_ns(gpu, trace.api)
    is_linked = gpu.api_id != NONE
    launched_before = ~is_linked & (gpu.start_ns < gpu.start_ns[is_linked].min(initial=NEVER))
    return (moments >= steps.start_ns.min()) & (moments < steps.end_ns.max()) & ~launched_before


def _host_window(trace: Trace, calls: Api) -> Spans:
    """Where the CPU may dispatch the steps: in them, up to the last that the launching threads recorded. Steps that are
    known from the device alone are dispatched before they run: from their first launch to their last."""
    steps = trace.steps_in_view
    if on_device(trace.all_steps):
        return union(calls.start_ns.min(keepdims=True), calls.end_ns.max(keepdims=True))
    threads = np.unique(calls.thread)
    tables = (trace.api, trace.ops, trace.ranges)
    over = max(int(table.end_ns[np.isin(table.thread, threads)].max(initial=0)) for table in tables)
    return union(steps.start_ns, np.minimum(steps.end_ns, over))


def _active(trace: Trace, thread: int, window: Spans) -> Spans:
    """When a thread runs ops, calls or the Python between them, within the window and without waits for the device."""
    api, ops = trace.api, trace.ops
    mine = api.thread == thread
    waits = api.name.like(HOST_WAIT) | (api.name.like(COPY) & ~api.name.like(ASYNC_COPY))
    waits[pageable_copies(trace)] = True
    waits[waits_for_room(trace.gpu, api)] = True
    waits &= mine
    in_ops = ops.thread == thread
    recorded = intersection(
        union(np.append(api.start_ns[mine], ops.start_ns[in_ops]), np.append(api.end_ns[mine], ops.end_ns[in_ops])),
        window,
    )
    # A pause lasts from one record, or the start of a step, to the next, or the end of the step.
    pauses = difference(window, recorded)
    short = (pauses.ends - pauses.starts) <= LONGEST_PYTHON_NS
    python = union(pauses.starts[short], pauses.ends[short])
    return difference(joined([recorded, python]), union(api.start_ns[waits], api.end_ns[waits]))
