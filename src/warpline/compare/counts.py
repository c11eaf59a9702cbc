"""How often a step does what costs time: kernels, launches, waits, copies and allocations."""

from __future__ import annotations

import numpy as np

from warpline.api_names import ALLOCATION, ASYNC_COPY, COPY, HOST_WAIT, LAUNCH
from warpline.compare.typical_step import TypicalStep
from warpline.intervals import Spans
from warpline.trace.arrays import Bools, Int64s
from warpline.trace.schema import Api
from warpline.trace.trace import Trace
from warpline.units import count

Counts = dict[str, float]
KINDS = ("kernels", "launches", "syncs", "copies", "allocations")
DEVICE_KINDS = {"kernels": "kernel", "copies": "memcpy"}
"""What the device does, with its kind in the table."""
CALLS = ("launches", "syncs", "allocations")
"""What the CPU does."""
COSTLY = ("launches", "syncs", "copies")
"""What costs the CPU time and is the same in every run of one program."""


def counts_per_step(trace: Trace, steps: TypicalStep) -> Counts:
    """The number per step of each kind, over all warm steps: of calls those that the CPU makes in its steps."""
    api, gpu = trace.api, trace.gpu
    work = {name: gpu.kind.equal(kind) for name, kind in DEVICE_KINDS.items()}
    calls = {"launches": api.name.like(LAUNCH), "syncs": waits(api), "allocations": api.name.like(ALLOCATION)}
    found = {name: _inside(gpu.start_ns[rows], steps.spans) for name, rows in work.items()}
    found |= {name: _inside(api.start_ns[rows], steps.cpu_spans) for name, rows in calls.items()}
    return {name: found[name] / len(steps.spans) for name in KINDS}


def waits(api: Api) -> Bools:
    """Which calls wait for the device: synchronising ones and blocking copies."""
    return api.name.like(HOST_WAIT) | (api.name.like(COPY) & ~api.name.like(ASYNC_COPY))


def differing(a: Counts, b: Counts, least_effect: float) -> str:
    """What costs the CPU time and differs by this share, in words: `syncs 8 → 0`."""
    return ", ".join(
        f"{kind} {count(a[kind])} → {count(b[kind])}"
        for kind in COSTLY
        if abs(b[kind] - a[kind]) >= max(1, least_effect * a[kind])
    )


def _inside(moments: Int64s, steps: Spans) -> int:
    """How many moments lie in the steps."""
    moments = np.sort(moments)
    return int((np.searchsorted(moments, steps.ends) - np.searchsorted(moments, steps.starts)).sum())
