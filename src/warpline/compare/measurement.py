"""One run as a comparison needs it: its typical step, what a step does, and where it was recorded."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from warpline.api_names import KERNEL_LAUNCH
from warpline.compare.comparable import Setting, setting_of
from warpline.compare.counts import Counts, counts_per_step
from warpline.compare.spread import RunTime, Side
from warpline.compare.stopwatch import BareStepTime, stopwatch_of
from warpline.compare.typical_step import TypicalStep, typical_step
from warpline.errors import CannotAnswer
from warpline.findings.diagnosis import Diagnosis
from warpline.intervals import Spans
from warpline.trace.arrays import grouped
from warpline.trace.trace import Trace

LaunchTimes = dict[str, float]
"""Median time of the calls of each name, in nanoseconds."""
MIN_CALLS = 10
"""Fewer calls of a name say nothing."""


class RunMeasurement(Struct, frozen=True):
    """One run."""

    file: str
    setting: Setting
    step: TypicalStep
    counts: Counts
    """Per step."""
    launch_times: LaunchTimes = field(default_factory=dict)
    """By which runs tell how fast their hosts were; empty if an older baseline does not say."""
    errors: tuple[str, ...] = ()
    """What is wrong with the recording, so that its answers are missing or false: it was cut off, for example."""
    stopwatch: BareStepTime | None = None
    """The step without the profiler; None if the run was not timed, or an older baseline does not say."""

    @property
    def idle_ns(self) -> float:
        """Idle time of the typical step."""
        return sum(self.step.idle_ns.values())


def measure(trace: Trace) -> RunMeasurement:
    """Measure a recording."""
    step = typical_step(trace)
    counts, times = counts_per_step(trace, step), launch_times(trace, step.spans)
    errors = tuple(entry.message for entry in trace.health_entries if entry.severity == "error")
    stopwatch = stopwatch_of(trace, step.lengths_ns.tolist(), run_time(step)) if step.has_steps else None
    return RunMeasurement(trace.file.name, setting_of(trace), step, counts, times, errors, stopwatch)


def measure_sound(found: Diagnosis) -> RunMeasurement:
    """Measure a recording that is to be relied on: a part of one, or of a program, would keep every budget."""
    run = measure(found.trace)
    if run.errors:
        raise CannotAnswer("damaged-recording", f"{run.file}: {run.errors[0].rstrip('.')}", "record it again")
    if found.obstacle is not None:
        what, _, hint = found.obstacle.partition("; ")
        raise CannotAnswer("unclear-recording", f"{run.file}: {what}", hint)
    return run


def median_run(runs: Sequence[RunMeasurement]) -> RunMeasurement:
    """The run whose typical step is the median."""
    return sorted(runs, key=lambda run: run.step.step_ns)[(len(runs) - 1) // 2]


def side_of(runs: Sequence[RunMeasurement]) -> Side:
    """The runs for the statistics."""
    return tuple(run_time(run.step) for run in runs)


def sides_of(a: Sequence[RunMeasurement], b: Sequence[RunMeasurement]) -> tuple[Side, Side]:
    """The runs of both sides, with how slow the host of each was."""
    runs, slow = side_of([*a, *b]), slowness([run.launch_times for run in (*a, *b)])
    if slow is not None:
        runs = tuple(replace(run, host=host) for run, host in zip(runs, slow, strict=True))
    return runs[: len(a)], runs[len(a) :]


def slower_host(a: Sequence[RunMeasurement], b: Sequence[RunMeasurement]) -> float:
    """How much slower the hosts of B were, as a ratio; 1 if it is unknown."""
    slow = slowness([run.launch_times for run in (*a, *b)])
    return math.exp(float(np.mean(slow[len(a) :]) - np.mean(slow[: len(a)]))) if slow else 1.0


def run_time(step: TypicalStep) -> RunTime:
    """The time of a step by what differs between runs. What the CPU does differs as the GPU's waits for it do."""
    if step.is_on_cpu:
        return RunTime(0.0, step.step_ns, step.lengths_ns)
    with_host = np.array([one.is_host_copy for one in step.operations], bool)
    copies_ns = float(step.exposed_ns[with_host].sum())
    work_ns = float(step.exposed_ns.sum()) - copies_ns
    return RunTime(work_ns, sum(step.idle_ns.values()), step.lengths_ns, copies_ns, step.ahead_ns)


def launch_times(trace: Trace, steps: Spans) -> LaunchTimes:
    """Of the calls that launch a kernel, from the first of these steps to the last.

    The CPU's time for a step differs by a third between runs of one program, because hosts are noisy. A launch is the
    same work for the CPU in every run and does not wait, so its time tells how slow the host was: with that taken out,
    the CPU's time differs by a tenth (docs/noise.md).
    """
    api = trace.api
    inside = (api.start_ns >= steps.starts[0]) & (api.start_ns <= steps.ends[-1])
    launches = np.flatnonzero(inside & api.name.like(KERNEL_LAUNCH))
    found = {}
    for code, calls in grouped(launches, api.name.codes[launches]):
        median = float(np.median((api.end_ns - api.start_ns)[calls]))
        if len(calls) >= MIN_CALLS and median > 0:
            found[api.name.words[code]] = median
    return dict(sorted(found.items()))


def slowness(runs: Sequence[LaunchTimes]) -> list[float] | None:
    """How slow the host was in each run: the logarithm of the times of calls that all of them make, over the mean of
    all runs. None if they have none in common."""
    names = sorted(set.intersection(*(set(run) for run in runs)))
    if not names:
        return None
    logs = np.log([[run[name] for name in names] for run in runs])
    return [float(one) for one in np.median(logs - logs.mean(axis=0), axis=1)]
