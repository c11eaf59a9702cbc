"""How often a step does what costs time: kernels, launches, waits, copies and allocations."""

from __future__ import annotations

import numpy as np
import polars as pl

from warpline.analyses.idle.host_activity import SYNCHRONISE
from warpline.api_names import ALLOCATION, COPY, LAUNCH
from warpline.compare.typical_step import TypicalStep
from warpline.intervals import Spans
from warpline.trace.arrays import integers
from warpline.trace.names import named
from warpline.trace.trace import Trace
from warpline.units import count

Counts = dict[str, float]
KINDS = ("kernels", "launches", "syncs", "copies", "allocations")
DEVICE_KINDS = {"kernels": "kernel", "copies": "memcpy"}
"""What the device does, with its kind in the table; the others are calls of the CPU."""
COSTLY = ("launches", "syncs", "copies")
"""What costs the CPU time and is the same in every run of one program."""


def counts_per_step(trace: Trace, steps: TypicalStep) -> Counts:
    """The number per step of each kind, over all warm steps: of calls those that the CPU makes in its steps."""
    api, gpu = trace.stored("api"), trace.stored("gpu")
    work = {name: gpu.filter(pl.col("kind").cast(pl.String) == kind) for name, kind in DEVICE_KINDS.items()}
    calls = {
        "launches": api.filter(named(LAUNCH)),
        "syncs": api.filter(named(SYNCHRONISE) | (named(COPY) & ~named("Async"))),
        "allocations": api.filter(named(ALLOCATION)),
    }
    found = {name: _inside(rows, steps.spans) for name, rows in work.items()}
    found |= {name: _inside(rows, steps.cpu_spans) for name, rows in calls.items()}
    return {name: found[name] / len(steps.spans) for name in KINDS}


def differing(a: Counts, b: Counts, least_effect: float) -> str:
    """What costs the CPU time and differs by this share, in words: `syncs 8 → 0`."""
    return ", ".join(
        f"{kind} {count(a[kind])} → {count(b[kind])}"
        for kind in COSTLY
        if abs(b[kind] - a[kind]) >= max(1, least_effect * a[kind])
    )


def _inside(rows: pl.DataFrame, steps: Spans) -> int:
    starts = np.sort(integers(rows["start_ns"]))
    return int((np.searchsorted(starts, steps.ends) - np.searchsorted(starts, steps.starts)).sum())
