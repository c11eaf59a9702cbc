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

from collections import Counter

import numpy as np
import polars as pl

from warpline.analyses.breakdown import busy_spans
from warpline.analyses.idle.host_activity import LONGEST_PYTHON_NS
from warpline.analyses.op_tree import why_no_ops
from warpline.analyses.steps import in_view
from warpline.analyses.user_frames import UserFrames, with_sites
from warpline.errors import CannotAnswer, UsageError
from warpline.intervals import covered_before
from warpline.trace.arrays import NONE, Bools, Int64s, Texts, combinations
from warpline.trace.nesting import nearest_marked
from warpline.trace.schema import Ops
from warpline.trace.table import Names
from warpline.trace.trace import Trace

LAYERS = ("autograd", "dispatcher", "backend")
"""Parts of the framework's time."""
AUTOGRAD = r"^(torch::)?autograd::|^\w+Backward\d*$|^AccumulateGrad$"
"""Ops of the autograd engine, and nodes of the backward graph."""
BUILT_IN = r"^<built-in "
"""Frames of functions that C++ implements."""
KNOWN_OPS = 6
"""Ops that are named to someone who asks for another."""


def dispatch_path(trace: Trace, op: str | None = None) -> pl.DataFrame:
    """One row per op name (the ops that Python calls, or those of the given name), costliest first.

    Columns are means per op in nanoseconds, but for `count`, `per_step`, `launches`, `depth`, `hidden_share` and the
    call site of the slowest one.
    """
    ops, api, gpu = trace.ops, trace.api, trace.gpu
    if not len(ops):
        raise CannotAnswer("no-ops", f"cannot answer, because the trace has no framework ops{why_no_ops(trace)}")
    chosen = _chosen(trace, op)
    rows = np.flatnonzero(chosen)
    # For each op, which of the chosen ones it is or lies in; one more for no op.
    place = np.full(len(ops) + 1, NONE, np.int64)
    place[rows] = np.arange(len(rows))
    place = np.append(place[nearest_marked(ops.parent, chosen)], NONE)

    def summed(values: Int64s, op_ids: Int64s) -> Int64s:
        return _summed(values, place[op_ids], len(rows))

    earlier = _earlier_sibling(ops)
    before, native = _before(ops, earlier)[rows], _called_from_native(ops)[rows]
    boundary, taken = (times[rows] for times in _boundary(trace, earlier))
    own, layers = _own_times(trace), _layers(trace)
    starts, ends, every = ops.start_ns[rows], ops.end_ns[rows], np.arange(len(ops))
    table = pl.DataFrame(
        {
            "name": ops.name[rows].series(),
            "row": rows,
            "python_ns": np.where(native, 0, np.maximum(before - taken, 0)),
            "boundary_ns": np.where(native, 0, boundary),
            "native_ns": np.where(native, before, 0),
            "is_native": native,
            **{f"{name}_ns": summed(np.where(layers == name, own, 0), every) for name in LAYERS},
            "cpu_ns": ends - starts,
            "api_ns": summed(api.end_ns - api.start_ns, api.op_id),
            "queue_ns": summed(_queued(trace), gpu.op_id),
            "kernel_ns": summed(gpu.end_ns - gpu.start_ns, gpu.op_id),
            "launches": summed(np.ones(len(gpu), np.int64), gpu.op_id),
            "hidden_ns": _hidden(trace, starts, ends),
            "depth": _depths(ops, place, rows),
        }
    )
    return _by_name(trace, table, _main_kernels(trace, place[gpu.op_id], ops.name[rows]))


def _chosen(trace: Trace, op: str | None) -> Bools:
    ops = trace.ops
    wanted = ops.parent == NONE if op is None else ops.name.equal(op)
    if not wanted.any():
        known = ", ".join(name for name, _ in Counter(ops.name.texts.tolist()).most_common(KNOWN_OPS))
        raise UsageError("no-such-op", f"no op is named {op!r}", f"the trace has {known} …")
    return wanted & in_view(trace, ops.start_ns)


def _queued(trace: Trace) -> Int64s:
    """From the end of each operation's call to its start."""
    gpu = trace.gpu
    returned = np.append(trace.api.end_ns, 0)[gpu.api_id]
    return np.where(gpu.api_id == NONE, 0, np.maximum(gpu.start_ns - returned, 0))


def _summed(values: Int64s, places: Int64s, count: int) -> Int64s:
    known = places != NONE
    return np.bincount(places[known], weights=values[known], minlength=count).astype(np.int64)


def _own_times(trace: Trace) -> Int64s:
    """Time of each op without the ops and API calls within it."""
    ops, api = trace.ops, trace.api
    lengths = ops.end_ns - ops.start_ns
    in_ops = _summed(lengths, ops.parent, len(ops))
    in_calls = _summed(api.end_ns - api.start_ns, api.op_id, len(ops))
    return lengths - in_ops - in_calls


def _layers(trace: Trace) -> Texts:
    """The layer of each op's own time."""
    calls = np.bincount(trace.api.op_id[trace.api.op_id != NONE], minlength=len(trace.ops))
    autograd = trace.ops.name.like(AUTOGRAD)
    return np.where(autograd, "autograd", np.where(calls > 0, "backend", "dispatcher")).astype(object)


def _called_from_native(ops: Ops) -> Bools:
    """Which ops C++ calls: those within ops, the autograd engine's, and all of backward."""
    return (ops.parent != NONE) | ops.name.like(AUTOGRAD) | (ops.forward_thread > 0)


def _main_kernels(trace: Trace, op: Int64s, names: Names) -> pl.DataFrame:
    """For each op name, the kernel that takes most of its GPU time; `op` is each operation's position in `names`."""
    gpu = trace.gpu
    rows = np.flatnonzero((op != NONE) & gpu.kind.equal("kernel"))
    one_of_each, which = combinations(names.codes[op[rows]], gpu.name.codes[rows])
    summed = pl.DataFrame(
        {
            "name": names[op[rows[one_of_each]]].series(),
            "kernel": gpu.name[rows[one_of_each]].series(),
            "length": np.bincount(which, (gpu.end_ns - gpu.start_ns)[rows], len(one_of_each)),
        }
    )
    ordered = summed.sort("length", "kernel", descending=[True, False])
    return ordered.group_by("name", maintain_order=True).first().select("name", "kernel")


def _earlier_sibling(ops: Ops) -> Int64s:
    """For each op the one before it on its thread within the same op, or NONE."""
    order = np.lexsort((ops.start_ns, ops.parent, ops.thread))
    threads, parents = ops.thread[order], ops.parent[order]
    same = (threads[1:] == threads[:-1]) & (parents[1:] == parents[:-1])
    found = np.full(len(ops), NONE, np.int64)
    found[order[1:]] = np.where(same, order[:-1], NONE)
    return found


def _before(ops: Ops, earlier: Int64s) -> Int64s:
    """From the end of the op before it (or the start of the op around it) to its start, if short enough to be its
    caller."""
    entered = np.where(ops.parent != NONE, np.append(ops.start_ns, 0)[ops.parent], ops.start_ns)
    since = np.where(earlier != NONE, np.append(ops.end_ns, 0)[earlier], entered)
    gap = ops.start_ns - since
    return np.where((gap > 0) & (gap <= LONGEST_PYTHON_NS), gap, 0)


def _boundary(trace: Trace, earlier: Int64s) -> tuple[Int64s, Int64s]:
    """Time in the built-in function around each op, before and after it; and how much of the pause before the op such
    time takes, its own and that of the op before.

    Python frames show the call of a built-in function, `<built-in method mul_ of Tensor object>`, and the op within it:
    between the two, C++ reads the arguments, and wraps the result.
    """
    ops, python = trace.ops, trace.python
    built_in = np.append(python.name.like(BUILT_IN), False)[ops.frame]
    first, last = (np.append(column, 0)[ops.frame] for column in (python.start_ns, python.end_ns))
    shared = (earlier != NONE) & (np.append(ops.frame, NONE)[earlier] == ops.frame)
    begin = np.where(shared, np.append(ops.end_ns, 0)[earlier], first)
    entering = np.where(built_in, np.clip(ops.start_ns - begin, 0, LONGEST_PYTHON_NS), 0)
    leaving = np.where(built_in, np.clip(last - ops.end_ns, 0, LONGEST_PYTHON_NS), 0)
    leaving[earlier[shared]] = 0  # another op of the same function follows
    return entering + leaving, entering + np.append(leaving, 0)[earlier]


def _hidden(trace: Trace, starts: Int64s, ends: Int64s) -> Int64s:
    """Part of each op's CPU time during which a device is busy."""
    spans = busy_spans(trace.gpu, trace.window)
    return covered_before(spans, ends) - covered_before(spans, starts)


def _depths(ops: Ops, place: Int64s, rows: Int64s) -> Int64s:
    """How deep the ops within each of these nest, itself included."""
    inside = np.flatnonzero(place[:-1] != NONE)
    found = np.ones(len(rows), np.int64)
    np.maximum.at(found, place[inside], ops.depth[inside] - ops.depth[rows[place[inside]]] + 1)
    return found


def _by_name(trace: Trace, table: pl.DataFrame, kernels: pl.DataFrame) -> pl.DataFrame:
    steps = max(len(trace.steps_in_view), 1)
    has_built_ins = trace.python.name.like(BUILT_IN).any()
    grouped = table.group_by("name").agg(
        count=pl.len(),
        per_step=pl.len() / steps,
        launches=pl.col("launches").mean(),
        depth=pl.col("depth").max(),
        python_ns=pl.col("python_ns").mean(),
        boundary_ns=pl.col("boundary_ns").mean() if has_built_ins else pl.lit(None, pl.Float64),
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
    slowest = trace.ops[grouped["slowest"].to_numpy()]
    sites = UserFrames(trace).sites(slowest.thread, slowest.start_ns).tolist()
    placed = with_sites(grouped.with_columns(frame=pl.Series(sites, dtype=pl.String)).drop("slowest"))
    placed = placed.join(kernels, on="name", how="left", maintain_order="left")
    return placed.sort("cpu_total_ns", "name", descending=[True, False])
