"""Where the CPU waits for the device: every synchronising call, explicit or hidden, by op and line.

`blocked_ns` is how long the calls blocked their thread. Only a replay shows how much of that is recoverable:
removing syncs does not help a loop that cannot dispatch fast enough.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from warpline.analyses.framework import framework_of
from warpline.analyses.idle.host_activity import ALLOCATE, pageable_copies
from warpline.analyses.steps import in_view
from warpline.analyses.user_frames import UserFrames, with_sites
from warpline.analyses.wait_expressions import wait_expressions
from warpline.api_names import COPY, HOST_WAIT
from warpline.trace.arrays import NONE, Int64s
from warpline.trace.nesting import outermost
from warpline.trace.trace import Trace

WAITS = ("synchronise", "blocking copy", "pageable copy", "free")
TORCH_SOURCES = {"kineto", "autograd"}
"""Profiles that only PyTorch writes."""
FREE = r"^(cuda|hip)Free|^cuMemFree"


def sync_points(trace: Trace) -> pl.DataFrame:
    """One row per place: what waits (`kind`), its op, what the program wrote, its source line, the count, and the
    blocked time; `calls` are the rows of `api`."""
    calls, kinds = _waiting_calls(trace)
    api = trace.api[calls]
    # The op that the user called, not the innermost one.
    ops = np.append(outermost(trace.ops.parent), NONE)[api.op_id]
    # A program without PyTorch wrote the calls themselves.
    is_torch = trace.source in TORCH_SOURCES or framework_of(trace) == "pytorch"
    written = wait_expressions(trace, calls, ops) if is_torch else [None] * len(calls)
    rows = pl.DataFrame(
        {
            "kind": [WAITS[kind] for kind in kinds.tolist()],
            "call": api.name.series(),
            "op": trace.ops.name.at(ops).series(),
            "written": written,
            "frame": trace.once(UserFrames).sites(api.thread, api.start_ns).tolist(),
            "calls": calls,
            "blocked_ns": api.end_ns - api.start_ns,
        },
        schema_overrides=dict.fromkeys(("kind", "written", "frame"), pl.String),
    )
    places = rows.group_by("kind", "call", "op", "written", "frame").agg(
        count=pl.len(), blocked_ns=pl.col("blocked_ns").sum(), calls=pl.col("calls")
    )
    first = pl.col("calls").list.first()  # no two places share one: the order is the same every time
    order = ["blocked_ns", "count", "call", "op", "written", first]
    return with_sites(places).sort(order, descending=[True, True, False, False, False, False])


def _waiting_calls(trace: Trace) -> tuple[Int64s, Int64s]:
    """The calls in view that wait, and the kind of each."""
    api = trace.api
    blocking = ~api.name.like("Async")
    pageable = np.zeros(len(api), bool)
    pageable[pageable_copies(trace)] = True
    copying, freeing = api.name.like(COPY) & blocking, api.name.like(FREE) & api.name.like(ALLOCATE) & blocking
    waits = np.stack([api.name.like(HOST_WAIT), copying, pageable, freeing])
    calls = np.flatnonzero(waits.any(axis=0) & in_view(trace, api.start_ns))
    return calls, waits[:, calls].argmax(axis=0)  # of several kinds, the first counts
