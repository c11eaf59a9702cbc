"""The cost of an op in each layer from Python to the kernel.

Python (or C++, for ops that the autograd engine calls) -> boundary (the built-in function that holds the op, where
stacks are recorded) -> framework (the op and the ops it calls: autograd, dispatcher, backend) -> API call -> queue ->
kernel, in time per op, with launches per op and the share of the CPU's time that is hidden because the device is busy
anyway. The three parts of the framework sum to it exactly:

- autograd: own time of the engine and of backward nodes (`autograd::engine::…`, `AddmmBackward0`, `AccumulateGrad`);
- backend: own time of ops that call the API themselves: choosing an algorithm, workspaces, arguments. In a forward op
  this includes what autograd records for it, which no trace shows by itself;
- dispatcher: own time of all other ops: they only call further ops, allocate or make views.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from warpline.analyses.breakdown import busy_spans
from warpline.analyses.steps import covered_before
from warpline.analyses.user_frames import user_sites, with_sites
from warpline.errors import CannotAnswer, UsageError
from warpline.trace.arrays import NONE, integers
from warpline.trace.names import matches, rows_like
from warpline.trace.nesting import nearest_marked
from warpline.trace.trace import Trace

Int64s = npt.NDArray[np.int64]

LAYERS = ("autograd", "dispatcher", "backend")
"""Parts of the framework's time."""
AUTOGRAD = r"^(torch::)?autograd::|^\w+Backward\d*$|^AccumulateGrad$"
"""Ops of the autograd engine, and nodes of the backward graph."""
BUILT_IN = r"^<built-in "
"""Frames of functions that C++ implements."""
LONGEST_PYTHON_NS = 300_000
"""A longer gap before an op is not the Python code that calls it."""


def dispatch_path(trace: Trace, op: str | None = None) -> pl.DataFrame:
    """One row per op name (the ops that Python calls, or those of the given name), costliest first.

    Columns are means per op in nanoseconds, but for `count`, `per_step`, `launches`, `depth`, `hidden_share` and the
    call site of the slowest one.
    """
    ops = trace.stored("ops")
    if not len(ops):
        raise CannotAnswer("no-ops", "cannot answer, because the trace has no framework ops: nsys records none")
    marked = _chosen(trace, op)
    owner = nearest_marked(integers(ops["parent"]), marked)
    rows = np.flatnonzero(marked)
    slot = np.full(len(ops) + 1, NONE, np.int64)
    slot[rows] = np.arange(len(rows))
    starts, ends = integers(ops["start_ns"])[rows], integers(ops["end_ns"])[rows]
    earlier = _earlier_sibling(trace)
    before, native = _before(trace, earlier)[rows], _called_from_native(trace)[rows]
    boundary, taken = (times[rows] for times in _boundary(trace, earlier))
    own, layers = _own_times(trace), _layers(trace)
    inside = _slots(np.arange(len(ops)), owner, slot)
    calls_of = _slots(trace.api.op_id, owner, slot)
    work_of = _slots(trace.gpu.op_id, owner, slot)
    table = pl.DataFrame(
        {
            "name": ops["name"].gather(rows).cast(pl.String),
            "row": rows,
            "python_ns": np.where(native, 0, np.maximum(before - taken, 0)),
            "boundary_ns": np.where(native, 0, boundary),
            "native_ns": np.where(native, before, 0),
            "is_native": native,
            **{
                f"{name}_ns": _summed(np.where(layers == layer, own, 0), inside, len(rows))
                for layer, name in enumerate(LAYERS)
            },
            "cpu_ns": ends - starts,
            "api_ns": _summed(_lengths(trace.stored("api")), calls_of, len(rows)),
            "queue_ns": _summed(_queue(trace), work_of, len(rows)),
            "kernel_ns": _summed(_lengths(trace.stored("gpu")), work_of, len(rows)),
            "launches": _summed(np.ones(len(trace.gpu), np.int64), work_of, len(rows)),
            "hidden_ns": _hidden(trace, starts, ends),
            "depth": _levels(trace, owner, slot, len(rows)),
        }
    )
    return _by_name(trace, table, _main_kernels(trace, work_of, table["name"]))


def _chosen(trace: Trace, op: str | None) -> npt.NDArray[np.bool_]:
    window = trace.window
    inside = trace.ops.start_ns
    inside_window = (
        (inside >= window.start_ns) & (inside < window.end_ns) if trace.chosen_steps else np.ones(len(inside), bool)
    )
    wanted: npt.NDArray[np.bool_] = trace.ops.parent == NONE
    if op is not None:
        wanted = (trace.stored("ops")["name"].cast(pl.String) == op).to_numpy()
    if not wanted.any():
        known = ", ".join(trace.stored("ops")["name"].cast(pl.String).value_counts(sort=True)["name"].head(6))
        raise UsageError("no-such-op", f"no op is named {op!r}", f"the trace has {known} …")
    chosen: npt.NDArray[np.bool_] = wanted & inside_window
    return chosen


def _slots(op_ids: Int64s, owner: Int64s, slot: Int64s) -> Int64s:
    found: Int64s = slot[np.append(owner, NONE)[op_ids]]
    return found


def _lengths(table: pl.DataFrame) -> Int64s:
    return integers(table["end_ns"]) - integers(table["start_ns"])


def _queue(trace: Trace) -> Int64s:
    calls = trace.gpu.api_id
    done = np.append(trace.api.end_ns, 0)[calls]
    return np.where(calls == NONE, 0, np.maximum(trace.gpu.start_ns - done, 0))


def _summed(values: Int64s, slots: Int64s, count: int) -> Int64s:
    mine = slots != NONE
    return np.bincount(slots[mine], weights=values[mine], minlength=count).astype(np.int64)[:count]


def _own_times(trace: Trace) -> Int64s:
    """Time of each op without the ops and API calls within it."""
    lengths, parents = _lengths(trace.stored("ops")), trace.ops.parent
    return (
        lengths
        - _summed(lengths, parents, len(lengths))
        - _summed(_lengths(trace.stored("api")), trace.api.op_id, len(lengths))
    )


def _layers(trace: Trace) -> Int64s:
    """The layer of each op's own time: a position in LAYERS."""
    calls = _summed(np.ones(len(trace.api), np.int64), trace.api.op_id, len(trace.ops))
    autograd = trace.ops.name.like(AUTOGRAD)
    names = {name: place for place, name in enumerate(LAYERS)}
    return np.where(autograd, names["autograd"], np.where(calls > 0, names["backend"], names["dispatcher"]))


def _called_from_native(trace: Trace) -> npt.NDArray[np.bool_]:
    """Which ops C++ calls: those within ops, the autograd engine's, and all of backward."""
    ops = trace.stored("ops")
    engine = rows_like(ops, AUTOGRAD)
    found: npt.NDArray[np.bool_] = (integers(ops["parent"]) != NONE) | engine | (integers(ops["forward_thread"], 0) > 0)
    return found


def _main_kernels(trace: Trace, work_of: Int64s, names: pl.Series) -> pl.DataFrame:
    """For each op name, the kernel that takes most of its GPU time."""
    mine = np.flatnonzero(work_of != NONE)
    kernels = trace.stored("gpu").select("kind", "name", length=pl.col("end_ns") - pl.col("start_ns"))[mine]
    table = kernels.with_columns(op=names.gather(work_of[mine]), kernel=pl.col("name").cast(pl.String))
    summed = table.filter(pl.col("kind") == "kernel").group_by("op", "kernel").agg(pl.col("length").sum())
    chosen = summed.sort("length", "kernel", descending=[True, False]).group_by("op", maintain_order=True).first()
    return chosen.select(name="op", kernel="kernel")


def _earlier_sibling(trace: Trace) -> Int64s:
    """For each op the one before it on its thread within the same op, or NONE."""
    ops = trace.ops
    threads, parents, starts = ops.thread, ops.parent, ops.start_ns
    order = np.lexsort((starts, parents, threads))
    same = (threads[order][1:] == threads[order][:-1]) & (parents[order][1:] == parents[order][:-1])
    found = np.full(len(ops), NONE, np.int64)
    found[order[1:]] = np.where(same, order[:-1], NONE)
    return found


def _before(trace: Trace, earlier: Int64s) -> Int64s:
    """From the end of the op before it (or the begin of the op around it) to its start, if short enough to be its
    caller."""
    parents, starts = trace.ops.parent, trace.ops.start_ns
    ended, began = (np.append(integers(trace.stored("ops")[name]), 0) for name in ("end_ns", "start_ns"))
    since = np.where(earlier != NONE, ended[earlier], np.where(parents != NONE, began[parents], starts))
    gap = starts - since
    return np.where((gap > 0) & (gap <= LONGEST_PYTHON_NS), gap, 0)


def _has_built_ins(trace: Trace) -> bool:
    return bool(matches(trace.stored("python")["name"], BUILT_IN).any())


def _boundary(trace: Trace, earlier: Int64s) -> tuple[Int64s, Int64s]:
    """Time in the built-in function around each op, before and after it; and how much of the pause before the op such
    time takes, its own and that of the op before.

    Python frames show the call of a built-in function, `<built-in method mul_ of Tensor object>`, and the op within it:
    between the two, C++ reads the arguments, and wraps the result.
    """
    frames, starts, ends = trace.ops.frame, trace.ops.start_ns, trace.ops.end_ns
    built_in = np.append(trace.python.name.like(BUILT_IN), False)[frames]
    first, last = (np.append(integers(trace.stored("python")[end]), 0)[frames] for end in ("start_ns", "end_ns"))
    shared = (earlier != NONE) & (np.append(frames, NONE)[earlier] == frames)
    begin = np.where(shared, np.append(ends, 0)[earlier], first)
    entering = np.where(built_in, np.clip(starts - begin, 0, LONGEST_PYTHON_NS), 0)
    leaving = np.where(built_in, np.clip(last - ends, 0, LONGEST_PYTHON_NS), 0)
    leaving[earlier[shared]] = 0  # another op of the same function follows
    return entering + leaving, entering + np.append(leaving, 0)[earlier]


def _hidden(trace: Trace, starts: Int64s, ends: Int64s) -> Int64s:
    """Part of each op's CPU time during which a device is busy."""
    spans = busy_spans(trace.stored("gpu"), trace.window)
    return covered_before(spans, ends) - covered_before(spans, starts)


def _levels(trace: Trace, owner: Int64s, slot: Int64s, count: int) -> Int64s:
    """Nesting depth of each op, itself included."""
    depths = trace.ops.depth
    inside = np.flatnonzero(owner != NONE)
    levels = np.ones(count, np.int64)
    np.maximum.at(levels, slot[owner[inside]], depths[inside] - depths[owner[inside]] + 1)
    return levels


def _by_name(trace: Trace, table: pl.DataFrame, kernels: pl.DataFrame) -> pl.DataFrame:
    steps = max(len(trace.steps_in_view), 1)
    grouped = table.group_by("name").agg(
        count=pl.len(),
        per_step=pl.len() / steps,
        launches=pl.col("launches").mean(),
        depth=pl.col("depth").max(),
        python_ns=pl.col("python_ns").mean(),
        boundary_ns=pl.col("boundary_ns").mean() if _has_built_ins(trace) else pl.lit(None, pl.Float64),
        native_ns=pl.col("native_ns").mean(),
        native_share=pl.col("is_native").mean(),
        **{f"{name}_ns": pl.col(f"{name}_ns").mean() for name in LAYERS},
        framework_ns=(pl.col("cpu_ns") - pl.col("api_ns")).mean(),
        api_ns=pl.col("api_ns").mean(),
        queue_ns=pl.when(pl.col("launches").sum() > 0).then(pl.col("queue_ns").sum() / pl.col("launches").sum()),
        kernel_ns=pl.col("kernel_ns").mean(),
        cpu_total_ns=pl.sum_horizontal("cpu_ns", "python_ns", "boundary_ns", "native_ns").sum(),
        kernel_total_ns=pl.col("kernel_ns").sum(),
        hidden_share=pl.col("hidden_ns").sum() / pl.col("cpu_ns").sum(),
        slowest=pl.col("row").get(pl.col("cpu_ns").arg_max()),
    )
    slowest = integers(grouped["slowest"])
    sites = user_sites(trace, trace.ops.thread[slowest], trace.ops.start_ns[slowest])
    placed = with_sites(grouped.with_columns(frame=sites).drop("slowest"))
    placed = placed.join(kernels, on="name", how="left", maintain_order="left")
    return placed.sort("cpu_total_ns", "name", descending=[True, False])
