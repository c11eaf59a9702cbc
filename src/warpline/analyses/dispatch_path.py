"""The cost of an op in each layer from Python to the kernel.

Python (or C++, for ops that the autograd engine calls) -> boundary (the built-in function that holds the op, where
stacks are recorded) -> framework (the op and the ops it calls: autograd, dispatcher, backend) -> API call -> queue ->
kernel, in time per op, with launches per op and the share of the CPU's time that is hidden because the device is busy
anyway. The three parts of the framework sum to it exactly:

- autograd: own time of the engine and of backward nodes (`autograd::engine::…`, `AddmmBackward0`, `AccumulateGrad`);
- backend: own time of ops that call the API themselves: choosing an algorithm, workspaces, arguments. In a forward op
  this includes what autograd records for it, which no trace shows by itself;
- dispatcher: own time of all other ops: they only call further ops, allocate or make views.

A kernel that no op launches, such as one of Triton, has a row of its own: Python from the call or op before it, its API
call, queue and kernel. Of kernels that one call launches, a CUDA graph, the call has the row.
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
from warpline.trace.arrays import NONE, Bools, Floats, Int64s, Texts, count_of, sum_of
from warpline.trace.nesting import nearest_marked
from warpline.trace.schema import Ops
from warpline.trace.trace import Trace

LAYERS = ("autograd", "dispatcher", "backend")
"""Parts of the framework's time."""
AUTOGRAD = r"^(torch::)?autograd::|^\w+Backward\d*$|^AccumulateGrad$"
"""Ops of the autograd engine, and nodes of the backward graph."""
BUILT_IN = r"^<built-in "
"""Frames of functions that C++ implements."""
KNOWN_OPS = 6
"""Ops that are named to someone who asks for another."""
EVENTS = "events_"
"""Prefix of the columns that count recorded events, `events_LAYER_KIND`: what recording costs depends on them. Half of
an event lies in the layer around it, at its start, and half in its own."""


def dispatch_path(trace: Trace, op: str | None = None) -> pl.DataFrame:
    """One row per op name (the ops that Python calls, or those of the given name), costliest first.

    Columns are means per op in nanoseconds, but for `count`, `per_step`, `launches`, `depth`, `hidden_share`, the call
    site of the slowest one, and the number of recorded events in each layer.
    """
    if not len(trace.ops):
        raise CannotAnswer("no-ops", f"cannot answer, because the trace has no framework ops{why_no_ops(trace)}")
    chosen, alone = _chosen(trace, op)
    named = _by_name(trace, _of_ops(trace, chosen), trace.ops.thread, trace.ops.start_ns)
    launched = _by_name(trace, _of_kernels(trace, alone), trace.api.thread, trace.api.start_ns)
    kernels = _main_kernels(trace, chosen, alone)
    found = pl.concat([named, launched]).join(kernels, on="name", how="left", maintain_order="left")
    return with_sites(found).sort("cpu_total_ns", "name", descending=[True, False])


def _of_ops(trace: Trace, chosen: Bools) -> pl.DataFrame:
    """A row for each of these ops."""
    ops, api, gpu = trace.ops, trace.api, trace.gpu
    rows = np.flatnonzero(chosen)
    # For each op, which of the chosen ones it is or lies in; one more for no op.
    place = _places(ops, chosen)

    def summed(values: Int64s, op_ids: Int64s) -> Int64s:
        return sum_of(len(rows), place[op_ids], values).astype(np.int64)

    earlier = _earlier_sibling(ops)
    before, native = _before(ops, earlier)[rows], _called_from_native(ops)[rows]
    boundary, taken = (times[rows] for times in _boundary(trace, earlier))
    own, layers = _own_times(trace), _layers(trace)
    starts, ends, every = ops.start_ns[rows], ops.end_ns[rows], np.arange(len(ops))
    frames = _moments_within(trace, ops.thread[rows], starts - before, starts)
    # Of each op within a chosen one, half an event lies in the op around it; of the chosen one, outside.
    around = np.where(chosen, NONE, ops.parent)
    ops_inside = count_of(len(ops), around) + 1
    calls_inside = count_of(len(ops), api.op_id)
    return pl.DataFrame(
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
            "ops": summed(np.ones(len(ops), np.int64), every),
            "hidden_ns": _hidden(trace, starts, ends),
            "depth": _depths(ops, place, rows),
            f"{EVENTS}python_op": np.where(native, 0.0, 0.5),
            f"{EVENTS}native_op": np.where(native, 0.5, 0.0),
            f"{EVENTS}python_frame": np.where(native, 0.0, frames / 2),
            **{f"{EVENTS}{name}_op": summed(np.where(layers == name, ops_inside, 0), every) / 2 for name in LAYERS},
            **{f"{EVENTS}{name}_call": summed(np.where(layers == name, calls_inside, 0), every) / 2 for name in LAYERS},
            f"{EVENTS}api_call": summed(calls_inside, every) / 2,
        }
    )


def _of_kernels(trace: Trace, alone: Int64s) -> pl.DataFrame:
    """A row for each call that launched some of these operations, which are in no op."""
    gpu, api, ops = trace.gpu[alone], trace.api, trace.ops
    calls, first, of_call, counts = np.unique(gpu.api_id, return_index=True, return_inverse=True, return_counts=True)
    starts, ends, threads = api.start_ns[calls], api.end_ns[calls], api.thread[calls]
    before, nothing = np.zeros(len(calls), np.int64), np.zeros(len(calls))
    for thread in np.unique(threads).tolist():
        mine = threads == thread
        past = np.sort(np.concatenate((api.end_ns[api.thread == thread], ops.end_ns[ops.thread == thread])))
        spot = np.searchsorted(past, starts[mine], side="right") - 1
        gap = starts[mine] - np.append(past, 0)[spot]
        before[mine] = np.where((spot >= 0) & (gap <= LONGEST_PYTHON_NS), gap, 0)
    return pl.DataFrame(
        {
            "name": pl.Series(_launched_names(trace, alone)[first], dtype=pl.String),
            "row": calls,
            "python_ns": before,
            "boundary_ns": nothing.astype(np.int64),
            "native_ns": nothing.astype(np.int64),
            "is_native": nothing.astype(bool),
            **{f"{name}_ns": nothing.astype(np.int64) for name in LAYERS},
            "cpu_ns": ends - starts,
            "api_ns": ends - starts,
            "queue_ns": np.bincount(of_call, _queued(trace)[alone], len(calls)).astype(np.int64),
            "kernel_ns": np.bincount(of_call, gpu.end_ns - gpu.start_ns, len(calls)).astype(np.int64),
            "launches": counts,
            "ops": np.zeros(len(calls), np.int64),
            "hidden_ns": _hidden(trace, starts, ends),
            "depth": np.zeros(len(calls), np.int64),
            f"{EVENTS}python_op": nothing,
            f"{EVENTS}native_op": nothing,
            f"{EVENTS}python_frame": _moments_within(trace, threads, starts - before, starts) / 2,
            **{f"{EVENTS}{name}_{kind}": nothing for kind in ("op", "call") for name in LAYERS},
            f"{EVENTS}api_call": nothing + 0.5,
        }
    )


def _moments_within(trace: Trace, threads: Int64s, starts: Int64s, ends: Int64s) -> Floats:
    """How many Python frames begin or end on each thread within these times."""
    python = trace.python
    found = np.zeros(len(threads))
    for thread in np.unique(threads).tolist():
        mine, own = threads == thread, python.thread == thread
        moments = np.sort(np.concatenate((python.start_ns[own], python.end_ns[own])))
        found[mine] = np.searchsorted(moments, ends[mine]) - np.searchsorted(moments, starts[mine])
    return found


def _chosen(trace: Trace, op: str | None) -> tuple[Bools, Int64s]:
    """Which ops, and which operations that no op launched, are asked for."""
    ops, gpu = trace.ops, trace.gpu
    wanted = ops.parent == NONE if op is None else ops.name.equal(op)
    alone = (gpu.op_id == NONE) & (gpu.api_id != NONE) & gpu.kind.equal("kernel")
    alone_rows = np.flatnonzero(alone)
    if op is not None:
        alone_rows = alone_rows[_launched_names(trace, alone_rows) == op]
    if not (wanted.any() or len(alone_rows)):
        known = ", ".join(name for name, _ in Counter(ops.name.texts.tolist()).most_common(KNOWN_OPS))
        raise UsageError("no-such-op", f"no op is named {op!r}", f"the trace has {known} …")
    called = trace.api.start_ns[gpu.api_id[alone_rows]]
    return wanted & in_view(trace, ops.start_ns), alone_rows[in_view(trace, called)]


def _places(ops: Ops, chosen: Bools) -> Int64s:
    """For each op, which of the chosen ones it is or lies in, or NONE; one more at the end for no op."""
    place = np.full(len(ops) + 1, NONE, np.int64)
    place[np.flatnonzero(chosen)] = np.arange(int(chosen.sum()))
    return np.append(place[nearest_marked(ops.parent, chosen)], NONE)


def _queued(trace: Trace) -> Int64s:
    """From the end of each operation's call to its start."""
    gpu = trace.gpu
    returned = np.append(trace.api.end_ns, 0)[gpu.api_id]
    return np.where(gpu.api_id == NONE, 0, np.maximum(gpu.start_ns - returned, 0))


def _own_times(trace: Trace) -> Int64s:
    """Time of each op without the ops and API calls within it."""
    ops, api = trace.ops, trace.api
    lengths = ops.end_ns - ops.start_ns
    in_ops = sum_of(len(ops), ops.parent, lengths)
    in_calls = sum_of(len(ops), api.op_id, api.end_ns - api.start_ns)
    return lengths - (in_ops + in_calls).astype(np.int64)


def _layers(trace: Trace) -> Texts:
    """The layer of each op's own time."""
    calls = count_of(len(trace.ops), trace.api.op_id)
    autograd = trace.ops.name.like(AUTOGRAD)
    return np.where(autograd, "autograd", np.where(calls > 0, "backend", "dispatcher")).astype(object)


def _called_from_native(ops: Ops) -> Bools:
    """Which ops C++ calls: those within ops, the autograd engine's, and all of backward."""
    return (ops.parent != NONE) | ops.name.like(AUTOGRAD) | (ops.forward_thread > 0)


def _launched_names(trace: Trace, alone: Int64s) -> Texts:
    """The name of the row of each of these kernels: its own, or that of its call where that launches several."""
    gpu = trace.gpu[alone]
    _, of_call, counts = np.unique(gpu.api_id, return_inverse=True, return_counts=True)
    return np.where(counts[of_call] > 1, trace.api.name.at(gpu.api_id).texts, gpu.name.texts)


def _main_kernels(trace: Trace, chosen: Bools, alone: Int64s) -> pl.DataFrame:
    """For each row's name, the kernel that takes most of its GPU time; None if a copy or memset takes more."""
    gpu = trace.gpu
    op = _places(trace.ops, chosen)[gpu.op_id]
    in_ops = np.flatnonzero(op != NONE)
    rows = np.concatenate((in_ops, alone))
    names = trace.ops.name[np.flatnonzero(chosen)].texts[op[in_ops]]
    work = pl.DataFrame(
        {
            "name": np.concatenate((names, _launched_names(trace, alone))),
            "kernel": gpu.name[rows].series(),
            "is_kernel": gpu.kind[rows].equal("kernel"),
            "length": (gpu.end_ns - gpu.start_ns)[rows],
        },
        schema_overrides={"name": pl.String, "kernel": pl.String},
    )
    summed = (
        work.group_by("name", pl.when("is_kernel").then("kernel").alias("kernel"))
        .agg(pl.col("length").sum())
        .sort("length", "kernel", descending=[True, False])
    )
    return summed.group_by("name", maintain_order=True).first().select("name", "kernel")


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


def _by_name(trace: Trace, table: pl.DataFrame, threads: Int64s, starts: Int64s) -> pl.DataFrame:
    """The rows summed by name; `threads` and `starts` are those of the rows that `row` names."""
    steps = max(len(trace.steps_in_view), 1)
    has_built_ins = trace.python.name.like(BUILT_IN).any()
    cpu_parts = ("python_ns", "boundary_ns", "native_ns", *(f"{name}_ns" for name in LAYERS), "api_ns")
    grouped = table.group_by("name").agg(
        count=pl.len(),
        per_step=pl.len() / steps,
        launches=pl.col("launches").mean(),
        ops=pl.col("ops").mean(),
        depth=pl.col("depth").max(),
        python_ns=pl.col("python_ns").mean(),
        boundary_ns=pl.col("boundary_ns").mean() if has_built_ins else pl.lit(None, pl.Float64),
        native_ns=pl.col("native_ns").mean(),
        native_share=pl.col("is_native").mean(),
        **{f"{name}_ns": pl.col(f"{name}_ns").mean() for name in LAYERS},
        framework_ns=(pl.col("cpu_ns") - pl.col("api_ns")).mean(),
        api_ns=pl.col("api_ns").mean(),
        before_ns=pl.sum_horizontal(cpu_parts).mean(),
        queue_ns=pl.when(pl.col("launches").sum() > 0).then(pl.col("queue_ns").sum() / pl.col("launches").sum()),
        kernel_ns=pl.col("kernel_ns").mean(),
        cpu_total_ns=pl.sum_horizontal("cpu_ns", "python_ns", "boundary_ns", "native_ns").sum(),
        kernel_total_ns=pl.col("kernel_ns").sum(),
        hidden_share=pl.col("hidden_ns").sum() / pl.col("cpu_ns").sum(),
        slowest=pl.col("row").get(pl.col("cpu_ns").arg_max()),
        **{name: pl.col(name).mean() for name in table.columns if name.startswith(EVENTS)},
    )
    slowest = grouped["slowest"].to_numpy()
    sites = trace.once(UserFrames).sites(threads[slowest], starts[slowest]).tolist()
    return grouped.with_columns(frame=pl.Series(sites, dtype=pl.String)).drop("slowest")
