"""The dispatch budget: can the CPU launch as fast as the device computes?

A step of `ops` operations costs `ops x cpu_ns` to dispatch and `ops x gpu_ns` to run; whichever is more is the step.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from warpline.analyses.idle.host_activity import SYNCHRONISE, pageable_copies
from warpline.analyses.steps import in_view
from warpline.api_names import ASYNC_COPY, COPY
from warpline.errors import CannotAnswer
from warpline.intervals import difference, union
from warpline.trace.arrays import NONE, Bools
from warpline.trace.launches import launched_ns
from warpline.trace.schema import Api, Gpu
from warpline.trace.steps.choice import on_device
from warpline.trace.trace import Trace

LAST = np.iinfo(np.int64).max


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

    def fused_ns(self, times_fewer: float) -> float:
        """The step with that many times fewer launches and the same GPU time."""
        return max(self.dispatch_ns / times_fewer, self.work_ns)


def budget_of(trace: Trace) -> DispatchBudget:
    """The budget of a trace's median step: its launches, the CPU time between them, the GPU time of one."""
    steps = trace.steps_in_view
    work = trace.gpu[_launched_in(trace)]
    if not len(work):
        raise CannotAnswer("no-gpu-work", "cannot answer, because the trace has no GPU operations")
    calls = trace.api[np.unique(work.api_id[work.api_id != NONE])]
    if not len(calls):
        raise CannotAnswer("no-launches", "cannot answer, because the trace has no launches")
    return DispatchBudget(
        ops=len(calls) / max(len(steps), 1),
        cpu_ns=_dispatch_ns(trace, calls) / len(calls),
        gpu_ns=_busy_ns(work) / len(calls),
    )


def _busy_ns(work: Gpu) -> int:
    """GPU time of the busiest device: devices work side by side, so that their times do not add up."""
    own = (work[work.device == number] for number in np.unique(work.device).tolist())
    return max(union(one.start_ns, one.end_ns).total_ns() for one in own)


def _launched_in(trace: Trace) -> Bools:
    """What the steps in view launched. A loop that only launches runs ahead of the device, so its work may run after
    them."""
    steps = trace.steps_in_view
    if not len(steps):
        return in_view(trace, trace.gpu.start_ns)
    gpu = trace.gpu
    moments = gpu.start_ns if on_device(trace.all_steps) else launched_ns(gpu, trace.api)
    is_linked = gpu.api_id != NONE
    launched_before = ~is_linked & (gpu.start_ns < gpu.start_ns[is_linked].min(initial=LAST))
    return (moments >= steps.start_ns.min()) & (moments < steps.end_ns.max()) & ~launched_before


def _dispatch_ns(trace: Trace, calls: Api) -> int:
    """Time of the steps, up to the last that the launching threads recorded, without their waits for the device."""
    steps, api = trace.steps_in_view, trace.api
    threads = np.unique(calls.thread)
    mine = np.isin(api.thread, threads)
    recorded = (table.end_ns[np.isin(table.thread, threads)] for table in (api, trace.ops, trace.ranges))
    over = max(int(ends.max(initial=0)) for ends in recorded)
    window = np.array([[trace.window.start_ns], [trace.window.end_ns]])
    starts, ends = (steps.start_ns, steps.end_ns) if len(steps) else window
    dispatching = union(starts, np.minimum(ends, over))
    waits = api.name.like(SYNCHRONISE) | (api.name.like(COPY) & ~api.name.like(ASYNC_COPY))
    waits[pageable_copies(trace)] = True
    waits &= mine
    return difference(dispatching, union(api.start_ns[waits], api.end_ns[waits])).total_ns()
