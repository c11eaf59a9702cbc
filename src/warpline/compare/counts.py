"""How often a step does what costs time: kernels, launches, waits, copies and allocations."""

from __future__ import annotations

import numpy as np
import polars as pl

from warpline.analyses.host_activity import SYNCHRONISE
from warpline.intervals import Spans
from warpline.trace.api_names import ALLOCATION, COPY, LAUNCH
from warpline.trace.columns import integers
from warpline.trace.names import named
from warpline.trace.trace import Trace
from warpline.units import count

Counts = dict[str, float]
KINDS = ("kernels", "launches", "syncs", "copies", "allocations")
COSTLY = ("launches", "syncs", "copies")
"""What costs the CPU time and is the same in every run of one program."""


def counts_per_step(trace: Trace, steps: Spans) -> Counts:
    """The number per step of each kind, over all of these steps."""
    api, gpu = trace.api, trace.gpu
    kinds = {
        "kernels": gpu.filter(pl.col("kind").cast(pl.String) == "kernel"),
        "launches": api.filter(named(LAUNCH)),
        "syncs": api.filter(named(SYNCHRONISE) | (named(COPY) & ~named("Async"))),
        "copies": gpu.filter(pl.col("kind").cast(pl.String) == "memcpy"),
        "allocations": api.filter(named(ALLOCATION)),
    }
    return {name: _inside(kinds[name], steps) / len(steps) for name in KINDS}


def differing(a: Counts, b: Counts, least_effect: float) -> str:
    """What costs the CPU time and differs by this share, in words: `syncs 8 → 0`."""
    return ", ".join(
        f"{kind} {count(a[kind])} → {count(b[kind])}"
        for kind in COSTLY
        if abs(b[kind] - a[kind]) >= max(1, least_effect * a[kind])
    )


def _inside(rows: pl.DataFrame, steps: Spans) -> int:
    begun = np.sort(integers(rows["start_ns"]))
    return int((np.searchsorted(begun, steps.ends) - np.searchsorted(begun, steps.starts)).sum())
