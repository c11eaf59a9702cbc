"""The dispatch budget: can the CPU launch as fast as the device computes?

A step of `ops` operations costs `ops x cpu_ns` to dispatch and `ops x gpu_ns` to run; whichever is more is the step.
"""

from __future__ import annotations

import polars as pl
from msgspec import Struct

from warpline.analyses.idle.host_activity import SYNCHRONISE
from warpline.analyses.kernels import in_window
from warpline.errors import CannotAnswer
from warpline.intervals import union
from warpline.trace.arrays import integers
from warpline.trace.names import named
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

    def fused_ns(self, times_fewer: float) -> float:
        """The step with that many times fewer launches and the same GPU time."""
        return max(self.dispatch_ns / times_fewer, self.work_ns)


def budget_of(trace: Trace) -> DispatchBudget:
    """The budget of a trace's median step: its launches, the CPU time between them, the GPU time of one."""
    steps = trace.steps_in_view.stored
    work = _work_of(steps, trace) if len(steps) else in_window(trace.stored("gpu"), trace)
    if not len(work):
        raise CannotAnswer("no-gpu-work", "cannot answer, because the trace has no GPU operations")
    count = max(len(steps), 1)
    calls = trace.stored("api")[work["api_id"].drop_nulls().unique().sort().to_list()]
    if not len(calls):
        raise CannotAnswer("no-launches", "cannot answer, because the trace has no launches")
    wall = steps_ns(steps, trace)
    busy = union(integers(work["start_ns"]), integers(work["end_ns"])).total_ns()
    waited = _waited_ns(trace, calls)
    return DispatchBudget(len(calls) / count, max(wall - waited, 0) / len(calls), busy / len(calls))


def _work_of(steps: pl.DataFrame, trace: Trace) -> pl.DataFrame:
    """What the steps launched. A loop that only launches runs ahead of the device, so its work may run after them."""
    moment = trace.stored("gpu")["start_ns"]
    if not on_device(trace.all_steps):
        moment = trace.stored("api")["start_ns"].gather(trace.stored("gpu")["api_id"]).fill_null(moment)
    return trace.stored("gpu").filter((moment >= steps["start_ns"].min()) & (moment < steps["end_ns"].max()))


def steps_ns(steps: pl.DataFrame, trace: Trace) -> int:
    """Time of the steps in view, or of the whole window."""
    return int((steps["end_ns"] - steps["start_ns"]).sum()) if len(steps) else trace.window.length_ns


def _waited_ns(trace: Trace, calls: pl.DataFrame) -> int:
    """Time that the launching threads spent in synchronising calls between the first and the last launch."""
    waits = in_window(trace.stored("api"), trace).filter(
        named(SYNCHRONISE),
        pl.col("thread").is_in(calls["thread"].unique().implode()),
        pl.col("start_ns").is_between(calls["start_ns"].min(), calls["start_ns"].max()),
    )
    return int((waits["end_ns"] - waits["start_ns"]).sum())
