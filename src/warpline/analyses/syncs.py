"""Where the CPU waits for the device: every synchronising call, explicit or hidden, by op and line.

`blocked_ns` is how long the calls blocked their thread. Only a replay shows how much of that is recoverable:
removing syncs does not help a loop that cannot dispatch fast enough.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from warpline.analyses.framework import framework_of
from warpline.analyses.idle.host_activity import ALLOCATE, SYNCHRONISE, pageable_copies
from warpline.analyses.kernels import in_window
from warpline.analyses.user_frames import UserFrames, with_sites
from warpline.analyses.wait_expressions import written
from warpline.api_names import COPY
from warpline.trace.arrays import NONE, Int64s, ids, integers
from warpline.trace.names import rows_like
from warpline.trace.nesting import outermost
from warpline.trace.trace import Trace

WAITS = ["synchronise", "blocking copy", "pageable copy", "free"]
KINDS = pl.Enum(WAITS)
TORCH_SOURCES = {"kineto", "autograd"}
"""Profiles that only PyTorch writes."""
FREE = r"^(cuda|hip)Free|^cuMemFree"


def sync_points(trace: Trace, own: UserFrames) -> pl.DataFrame:
    """One row per place: what waits (`kind`), its op, what the program wrote, its source line, the count, and the
    blocked time; `calls` are the rows of `api`, `own` the user's frames."""
    calls = in_window(_waiting_calls(trace), trace)
    threads, moments = integers(calls["thread"]), integers(calls["start_ns"])
    ops = _outermost_ops(trace, integers(calls["op_id"]))
    rows = calls.select(
        "kind",
        calls=pl.col("call"),
        call=pl.col("name"),
        op=ops,
        written=_written(trace, ops, calls["name"], own, threads, moments),
        frame=own.sites(threads, moments),
        blocked_ns=pl.col("end_ns") - pl.col("start_ns"),
    )
    del calls, ops, threads, moments  # as many as there are calls
    grouped = rows.group_by("kind", "call", "op", "written", "frame").agg(
        count=pl.len(), blocked_ns=pl.col("blocked_ns").sum(), calls=pl.col("calls")
    )
    grouped = grouped.with_columns(pl.col("kind", "call", "op", "written").cast(pl.String))
    first = pl.col("calls").list.first()  # no two places share one: the order is the same every time
    order = ["blocked_ns", "count", "call", "op", "written", first]
    return with_sites(grouped).sort(order, descending=[True, True, False, False, False, False])


def _waiting_calls(trace: Trace) -> pl.DataFrame:
    """The calls that wait, with their kind."""
    api = trace.stored("api")
    blocking = ~rows_like(api, "Async")
    pageable = np.zeros(len(api), bool)
    pageable[integers(pageable_copies(trace))] = True
    copying, freeing = rows_like(api, COPY) & blocking, rows_like(api, FREE) & rows_like(api, ALLOCATE) & blocking
    held = np.stack([rows_like(api, SYNCHRONISE), copying, pageable, freeing])  # the first that holds counts
    calls = np.flatnonzero(held.any(axis=0))
    kind = pl.Series("kind", [WAITS[number] for number in held[:, calls].argmax(axis=0).tolist()], dtype=KINDS)
    return api[["name", "thread", "start_ns", "end_ns", "op_id"]].with_row_index("call")[calls].hstack([kind])


def _written(
    trace: Trace, ops: pl.Series, calls: pl.Series, own: UserFrames, threads: Int64s, moments: Int64s
) -> pl.Series:
    """What the program wrote; a program without PyTorch wrote the calls themselves."""
    if trace.source in TORCH_SOURCES or framework_of(trace) == "pytorch":
        return written(ops, calls, own, threads, moments, has_ops=len(trace.ops) > 0)
    return pl.Series([None], dtype=pl.Categorical).new_from_index(0, len(calls))


def _outermost_ops(trace: Trace, innermost: npt.NDArray[np.int64]) -> pl.Series:
    """The op that the user called, not the innermost op."""
    chosen = np.append(outermost(trace.ops.parent), NONE)[innermost]
    return trace.stored("ops")["name"].gather(ids(chosen))
