"""The table of ops: what `key_averages().table()` gives, with launches, work, the roofline and the line of code.

Times, calls and nesting follow torch (see `op_tree`), so that the figures are those of `key_averages()`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from msgspec import Struct

from warpline.analyses.device import trace_device
from warpline.analyses.framework import framework_of
from warpline.analyses.op_calls import OpCalls
from warpline.analyses.op_origin import Origins
from warpline.analyses.op_tree import OpTree, op_tree, why_no_ops
from warpline.analyses.roofline.nvtx_ops import with_nvtx_ops
from warpline.analyses.roofline.ops_from_elsewhere import ForeignOps, foreign_ops
from warpline.analyses.roofline.pieces import GpuWork
from warpline.analyses.roofline.row_work import ROOF_PCT, RowWork, row_work
from warpline.analyses.steps import in_view
from warpline.analyses.thread_events import OP
from warpline.analyses.user_frames import with_sites
from warpline.errors import CannotAnswer, UsageError
from warpline.hardware import roof_of
from warpline.trace.arrays import NONE, Bools, Floats, Int64s, sum_of
from warpline.trace.trace import Trace

SCHEMA = "warpline.ops/1"
GROUPS = ("shape", "module", "stack", "line")
SORTS = {
    "gpu": "gpu_total_ns",
    "gpu-self": "gpu_self_ns",
    "cpu": "cpu_total_ns",
    "cpu-self": "cpu_self_ns",
    "calls": "calls",
    "launches": "launches",
    "flops": "flops",
    "bytes": "bytes",
    "roof": "roof_pct",
}
"""Orders of the table, and the column of each."""


class OpsTable(Struct, frozen=True):
    """The ops of the selected steps.

    >>> warpline.open("trace.json.gz").ops_table().frame.select("name", "calls", "cpu_self_ns", "gpu_self_ns")
    """

    group: str | None
    """What separates rows beside the name: shape, module, stack or line."""
    device: str | None
    """None if nothing ran on a device."""
    window_ns: int
    steps: int | None
    gpu_ns: int
    """GPU time of all operations in view; the self times of all rows sum to it."""
    without_op_ns: int
    """The part of it with no op around its launch: rows of the kinds kernel, memcpy, memset and graph."""
    inferred_ns: int
    """The part of it whose op is not recorded with its launch, but inferred: from the capture of its graph, or from the
    same sequence of kernels elsewhere."""
    frame: pl.DataFrame
    """One row per name (and group), in the order asked for; docs/commands/ops.md has the columns."""

    def to_dict(self) -> dict[str, Any]:
        """The JSON contract `warpline.ops/1`."""
        return {
            "schema": SCHEMA,
            "trace": {"device": self.device, "steps": self.steps, "window_ns": self.window_ns},
            "group": self.group,
            "gpu_ns": self.gpu_ns,
            "without_op_ns": self.without_op_ns,
            "inferred_ns": self.inferred_ns,
            "ops": self.frame.to_dicts(),
        }


def ops_table(
    trace: Trace,
    *,
    group: str | None = None,
    sort: str | None = None,
    device: str | None = None,
    shapes_from: Trace | None = None,
    known_work: GpuWork | None = None,
) -> OpsTable:
    """One row per op, range or CUDA call, costliest first: by GPU self time, or CPU self time without a GPU.

    For a trace without ops, those of another recording of the same program can stand in.
    """
    if group is not None and group not in GROUPS:
        raise UsageError("bad-group", f"no group {group!r}", f"the groups are {', '.join(GROUPS)}")
    if sort is not None and sort not in SORTS:
        raise UsageError("bad-sort", f"no order {sort!r}", f"the orders are {', '.join(SORTS)}")
    if not len(trace.ops) and shapes_from is None and len(trace.gpu):
        trace = with_nvtx_ops(trace) or trace
    if known_work is None or known_work.trace is not trace:
        known_work = GpuWork(trace, foreign=foreign_ops(trace, shapes_from))
    name, chip = trace_device(trace, device)
    work = row_work(known_work, roof_of(chip) if chip else None)
    calls = _recorded_calls(known_work, work, group) if len(trace.ops) else _foreign_calls(known_work, work, group)
    has_work = len(work.time_ns) > 0
    frame = _by_name(calls.frame, has_work, max(calls.window_ns, 1))
    order = SORTS[sort or ("gpu-self" if has_work else "cpu-self")]
    frame = frame.sort(order, "name", descending=[True, False], nulls_last=True, maintain_order=True)
    # Each row has the line of its costliest call.
    lines = Origins(trace).lines(calls.ops[frame["costliest"].to_numpy()])
    frame = with_sites(frame.with_columns(frame=pl.Series(lines, dtype=pl.String)).drop("costliest"))
    return OpsTable(
        group=group,
        device=(chip.name if chip else name) if has_work else None,
        window_ns=calls.window_ns,
        steps=len(trace.steps_in_view) or None,
        gpu_ns=int(work.time_ns.sum()),
        without_op_ns=calls.without_op_ns,
        inferred_ns=calls.inferred_ns,
        frame=frame if group is not None else frame.drop("group"),
    )


class _Calls(Struct, frozen=True):
    """Calls of ops, ranges and API functions in view."""

    frame: pl.DataFrame
    """`kind`, `name`, `group`, CPU time with (`length`) and without children (`cpu_self`), GPU time without them
    (`gpu_self`), and with them what `RowWork.columns` has, and `launches`."""
    ops: Int64s
    """Row of `ops` of each, or NONE."""
    window_ns: int
    without_op_ns: int
    inferred_ns: int


def _recorded_calls(gpu_work: GpuWork, work: RowWork, group: str | None) -> _Calls:
    """The calls of the trace, with what they launched."""
    trace, tree = gpu_work.trace, op_tree(gpu_work.trace)
    nodes, count = tree.nodes, len(tree.nodes)
    owner = tree.node_of_op[gpu_work.gpu.op_id]
    launched = {**work.columns(np.arange(len(owner))), "launches": np.ones(len(owner))}
    own = {key: sum_of(count, owner, values) for key, values in launched.items()}
    total, inside = tree.with_children(own), in_view(trace, nodes.start_ns)
    if not len(owner):
        total |= _work_of_ops(trace, tree, inside)
    frame = pl.DataFrame(
        {
            "kind": nodes.kind.series(),
            "name": nodes.name.series(),
            "group": pl.Series(_groups(trace, tree.ops, group), dtype=pl.String),
            "length": tree.lengths_ns,
            "cpu_self": tree.self_ns,
            "gpu_self": own["time"].astype(np.int64),
            "inferred": 0,
            **total,
        }
    )
    # A node outside the steps counts for what it launched within them.
    counted = inside | (total["launches"] > 0) if trace.chosen_steps else inside
    alone = np.flatnonzero(owner == NONE)
    # Without GPU activity, the window is that of the ops.
    has_window = trace.chosen_steps or len(trace.gpu)
    window_ns = trace.window.length_ns if has_window else int(nodes.end_ns.max() - nodes.start_ns.min())
    others, without_op_ns, inferred_ns = _not_launched_here(gpu_work, work, group, alone)
    calls = pl.concat([frame.filter(counted), others], how="diagonal_relaxed")
    ops = np.append(tree.ops[counted], np.full(len(others), NONE))
    return _Calls(calls, ops, window_ns, without_op_ns, inferred_ns)


def _without_op(gpu_work: GpuWork, work: RowWork, rows: Int64s) -> pl.DataFrame:
    """What no op launched, such as kernels of Triton or of one's own: a call each, under the name of the kernel."""
    gpu = gpu_work.gpu[rows]
    nothing = pl.lit(None, pl.Int64)
    return pl.DataFrame(
        {
            "kind": gpu.kind.series(),
            "name": gpu.name.series().fill_null(""),
            "group": pl.Series([None] * len(rows), dtype=pl.String),
            **work.columns(rows),
            "launches": np.ones(len(rows)),
        }
    ).with_columns(gpu_self=pl.col("time").cast(pl.Int64), cpu_self=nothing, length=nothing)


def _foreign_calls(gpu_work: GpuWork, work: RowWork, group: str | None) -> _Calls:
    """The calls of another recording with the GPU times of this one, which has no ops."""
    if not gpu_work.foreign or not len(gpu_work.trace.gpu):
        trace = gpu_work.trace
        hint = (
            "name a torch.profiler trace of the same program with --shapes-from"
            if trace.source == "kineto" or framework_of(trace) == "pytorch"
            else "a program without a framework has none: warpline stats lists its kernels"
        )
        raise CannotAnswer("no-ops", f"the trace has no framework ops{why_no_ops(trace)}", hint)
    frame, without_op_ns, inferred_ns = _not_launched_here(gpu_work, work, group, np.arange(len(gpu_work.rows)))
    ops = np.full(len(frame), NONE)
    return _Calls(frame, ops, gpu_work.trace.window.length_ns, without_op_ns, inferred_ns)


def _not_launched_here(
    gpu_work: GpuWork, work: RowWork, group: str | None, rows: Int64s
) -> tuple[pl.DataFrame, int, int]:
    """What no op of this trace launched: calls of ops elsewhere, and the rest under the names of the kernels. With it
    the time of the rest, and the time whose op is inferred."""
    frames, inferred_ns = [], 0
    for foreign in gpu_work.foreign:
        ops = foreign.ops[gpu_work.rows]
        known = rows[ops[rows] != NONE]
        rows = rows[ops[rows] == NONE]
        frames.append(_lent_calls(gpu_work, work, group, foreign, known))
        inferred_ns += int(work.time_ns[known].sum()) if foreign.evidence != "recorded" else 0
    frames.append(_without_op(gpu_work, work, rows))
    return pl.concat(frames, how="diagonal_relaxed"), int(work.time_ns[rows].sum()), inferred_ns


def _lent_calls(gpu_work: GpuWork, work: RowWork, group: str | None, foreign: ForeignOps, rows: Int64s) -> pl.DataFrame:
    """The calls of ops elsewhere that these operations belong to, with the GPU times of this trace."""
    places = gpu_work.rows[rows]
    ops = foreign.ops[places]
    groups = _groups(foreign.calls.trace, ops, group)
    if group == "shape":
        groups = [name if exact else None for name, exact in zip(groups, foreign.has_shapes[places], strict=True)]
    lent = pl.DataFrame(
        {
            "name": pl.Series([foreign.calls.text(op)[0] for op in ops.tolist()], dtype=pl.String),
            "group": pl.Series(groups, dtype=pl.String),
            "call": foreign.call[places],
            **work.columns(rows),
        }
    )
    calls = lent.group_by("name", "group", "call", maintain_order=True).agg(pl.all().sum(), launches=pl.len())
    nothing, inferred = pl.lit(None, pl.Int64), pl.col("time") if foreign.evidence != "recorded" else pl.lit(0)
    return calls.with_columns(
        kind=pl.lit(OP), gpu_self="time", cpu_self=nothing, length=nothing, inferred=inferred.cast(pl.Int64)
    ).drop("call")


def _work_of_ops(trace: Trace, tree: OpTree, inside: Bools) -> dict[str, Floats]:
    """FLOPs and bytes of each op by its own model, for a trace without GPU activity."""
    calls, flops, size, known = OpCalls(trace), *(np.zeros(len(tree.nodes)) for _ in range(3))
    ops = tree.ops
    for node in np.flatnonzero((ops != NONE) & inside).tolist():
        work = calls.work(int(ops[node]), ())
        if work is not None:
            flops[node], size[node], known[node] = work.main_flops, work.bytes, 1.0
    return {"flops": flops, "bytes": size, "known": known}


def _groups(trace: Trace, ops: Int64s, group: str | None) -> list[str | None]:
    """The group of each op; None where there is none, or for what is no op."""
    if group is None:
        return [None] * len(ops)
    if group == "shape":
        calls = OpCalls(trace)
        return [calls.text(op)[1] or None if op != NONE else None for op in ops.tolist()]
    origins = Origins(trace)
    return {"module": origins.modules, "stack": origins.stacks, "line": origins.lines}[group](ops)


def _by_name(calls: pl.DataFrame, on_device: bool, window_ns: int) -> pl.DataFrame:
    """The calls summed by name and group; null for times of a CPU or device of which nothing was recorded."""

    def of_device(value: pl.Expr) -> pl.Expr:
        return pl.when(pl.lit(on_device)).then(value)

    def if_known(value: pl.Expr) -> pl.Expr:
        return pl.when(pl.col("known").sum() > 0).then(value.round().cast(pl.Int64))

    on_cpu = pl.col("length").count() > 0
    whole = pl.col("gpu_self" if on_device else "cpu_self").sum()
    return (
        calls.with_row_index("position")
        .group_by("kind", "name", "group", maintain_order=True)
        .agg(
            calls=pl.len(),
            cpu_self_ns=pl.when(on_cpu).then(pl.col("cpu_self").sum()),
            cpu_total_ns=pl.when(on_cpu).then(pl.col("length").sum()),
            cpu_mean_ns=pl.col("length").mean(),
            gpu_self_ns=of_device(pl.col("gpu_self").sum()),
            gpu_total_ns=of_device(pl.col("time").sum().cast(pl.Int64)),
            gpu_mean_ns=of_device(pl.col("time").mean()),
            share=whole / window_ns,
            launches=of_device(pl.col("launches").sum().cast(pl.Int64)),
            flops=if_known(pl.col("flops").sum()),
            bytes=if_known(pl.col("bytes").sum()),
            roof_pct=ROOF_PCT,
            inferred_ns=of_device(pl.col("inferred").sum()),
            costliest=pl.col("position").get(pl.max_horizontal("gpu_self", "cpu_self").arg_max()),
        )
    )
