"""How fast the host was in a run, by its kernel launches.

The CPU's time for a step differs by a third between runs of one program, because hosts are noisy. A launch is the same
work for the CPU in every run and does not wait, so its time tells how slow the host was: with that taken out, the CPU's
time differs by a tenth (docs/noise.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from warpline.api_names import KERNEL_LAUNCH
from warpline.intervals import Spans
from warpline.trace.names import named
from warpline.trace.trace import Trace

LaunchTimes = dict[str, float]
"""Median time of the calls of each name, in nanoseconds."""
LEAST_CALLS = 10
"""Fewer calls of a name say nothing."""


def launch_times(trace: Trace, steps: Spans) -> LaunchTimes:
    """Of the calls that launch a kernel, from the first of these steps to the last."""
    length = pl.col("end_ns") - pl.col("start_ns")
    inside = pl.col("start_ns").is_between(int(steps.starts[0]), int(steps.ends[-1]))
    known = (
        trace.api.filter(named(KERNEL_LAUNCH) & inside)
        .group_by(pl.col("name").cast(pl.String))
        .agg(median=length.median(), calls=pl.len())
        .filter((pl.col("calls") >= LEAST_CALLS) & (pl.col("median") > 0))
        .sort("name")
    )
    return {str(name): float(median) for name, median, _ in known.iter_rows()}


def slowness(runs: Sequence[LaunchTimes]) -> list[float] | None:
    """How slow the host was in each run: the logarithm of the times of calls that all of them make, over the mean of
    all runs. None if they have none in common."""
    names = sorted(set.intersection(*(set(run) for run in runs)))
    if not names:
        return None
    logs = np.log([[run[name] for name in names] for run in runs])
    return [float(one) for one in np.median(logs - logs.mean(axis=0), axis=1)]
