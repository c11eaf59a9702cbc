"""The table of ops: what `key_averages().table()` gives, with launches, work, the roofline and the line of code.

Times, calls and nesting follow torch (see `op_tree`), so that the figures are those of `key_averages()`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from msgspec import Struct

from warpline.analyses.device import trace_device
from warpline.analyses.op_calls import OpCalls
from warpline.analyses.op_origin import Origins
from warpline.analyses.op_tree import OP, OpTree, op_tree
from warpline.analyses.roofline.nvtx_ops import with_nvtx_ops
from warpline.analyses.roofline.ops_from_elsewhere import lent_to
from warpline.analyses.roofline.pieces import Gathered
from warpline.analyses.roofline.row_work import row_work
from warpline.analyses.user_frames import with_sites
from warpline.errors import CannotAnswer, UsageError
from warpline.hardware import roof_of
from warpline.trace.arrays import NONE, Bools, Floats, Int64s, integers
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
    """GPU time of all operations in view; the self times of all rows and `without_op_ns` sum to it."""
    without_op_ns: int
    """GPU time with no op around its launch."""
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
            "ops": self.frame.to_dicts(),
        }


def ops_table(
    trace: Trace,
    *,
    group: str | None = None,
    sort: str | None = None,
    device: str | None = None,
    shapes_from: Trace | None = None,
    known_work: Gathered | None = None,
) -> OpsTable:
    """One row per op, range or CUDA call, costliest first: by GPU self time, or CPU self time without a GPU.

    For a trace without ops, those of another recording of the same program can stand in.
    """
    if group is not None and group not in GROUPS:
        raise UsageError("bad-group", f"no group {group!r}", f"the groups are {', '.join(GROUPS)}")
    if sort is not None and sort not in SORTS:
        raise UsageError("bad-sort", f"no order {sort!r}", f"the orders are {', '.join(SORTS)}")
    if not len(trace.ops):
        named = with_nvtx_ops(trace) if shapes_from is None and len(trace.gpu) else None
        if named is None:
            return _borrowed_table(trace, group, sort, device, shapes_from)
        trace = named
    tree = op_tree(trace)
    window_ns, inside = _in_view(trace, tree)
    gathered = known_work or Gathered(trace, borrowed=lent_to(trace, shapes_from))
    name, chip = trace_device(trace, device)
    times = gathered.numbers["time_ns"].to_numpy()
    owner = tree.node_of_op[integers(gathered.gpu["op_id"])]
    work = row_work(gathered, roof_of(chip) if chip else None)
    per_row = {
        "gpu": times,
        "launches": np.ones(len(times)),
        "flops": work.flops,
        "bytes": work.bytes,
        "floor": work.floor_ns,
        "priced": times * work.priced,
        "known": work.known.astype(np.float64),
    }
    own = {key: _summed(values, owner, len(tree.nodes)) for key, values in per_row.items()}
    total = tree.with_children(own)
    if not len(times):
        own_flops, own_bytes, has_work = _work_of_ops(trace, tree, inside)
        total |= {"flops": own_flops, "bytes": own_bytes, "known": has_work}
    table = tree.nodes.with_columns(
        position=pl.int_range(pl.len()),
        cpu_self=pl.Series(tree.self_ns),
        length=pl.Series(tree.lengths_ns),
        gpu_self=pl.Series(own["gpu"].astype(np.int64)),
        **{key: pl.Series(values) for key, values in total.items()},
    ).with_columns(group=_groups(trace, tree, group))
    # A node outside the steps counts for what it launched within them.
    counted = pl.Series(inside | (total["launches"] > 0)) if trace.chosen_steps else pl.Series(inside)
    frame = _by_name(table.filter(counted), bool(len(times)), max(window_ns, 1))
    ordered = _sorted(frame, sort or ("gpu-self" if len(times) else "cpu-self"))
    return OpsTable(
        group=group,
        device=(chip.name if chip else name) if len(times) else None,
        window_ns=window_ns,
        steps=len(trace.steps_in_view) or None,
        gpu_ns=int(times.sum()),
        without_op_ns=int(times[owner == NONE].sum()),
        frame=_placed(trace, tree, ordered, group),
    )


def _borrowed_table(
    trace: Trace, group: str | None, sort: str | None, device: str | None, shapes_from: Trace | None
) -> OpsTable:
    """The ops of another recording with the GPU times of this one, which has no ops."""
    lent = lent_to(trace, shapes_from)
    if not lent or not len(trace.gpu):
        raise CannotAnswer(
            "no-ops",
            "the trace has no framework ops: nsys records none",
            "name a torch.profiler trace of the same program with --shapes-from",
        )
    if group not in {None, "shape"}:
        raise CannotAnswer("no-ops", f"the trace has no framework ops to group by {group}", "use --group shape")
    gathered = Gathered(trace, borrowed=lent)
    name, chip = trace_device(trace, device)
    work = row_work(gathered, roof_of(chip) if chip else None)
    times = gathered.numbers["time_ns"].to_numpy()
    rows = integers(gathered.gpu["row"])
    ops, call = lent[0].ops[rows], lent[0].call[rows]
    known = np.flatnonzero(ops != NONE)
    labels = [lent[0].calls.text(op) for op in ops[known].tolist()]
    table = pl.DataFrame(
        {
            "kind": [OP] * len(known),
            "name": [label[0] for label in labels],
            "group": [(label[1] or None) if group else None for label in labels],
            "call": call[known],
            "gpu": times[known],
            "flops": work.flops[known],
            "bytes": work.bytes[known],
            "floor": work.floor_ns[known],
            "priced": (times * work.priced)[known],
            "known": work.known[known].astype(np.float64),
        },
        schema_overrides={"kind": pl.String, "name": pl.String, "group": pl.String},
    )
    calls = table.group_by("kind", "name", "group", "call", maintain_order=True).agg(
        pl.col("gpu", "flops", "bytes", "floor", "priced", "known").sum(), launches=pl.len()
    )
    empty = pl.lit(None, pl.Int64)
    columns = calls.with_columns(gpu_self="gpu", cpu_self=empty, length=empty, position=pl.int_range(pl.len()))
    frame = _by_name(columns, True, max(trace.window.length_ns, 1)).drop("costliest")
    nothing = {"file": pl.lit(None, pl.String), "line": pl.lit(None, pl.Int64), "function": pl.lit(None, pl.String)}
    cpu = {name: pl.lit(None, frame[name].dtype) for name in ("cpu_self_ns", "cpu_total_ns", "cpu_mean_ns")}
    ordered = _sorted(frame.with_columns(**cpu, **nothing), sort or "gpu-self")
    return OpsTable(
        group=group,
        device=chip.name if chip else name,
        window_ns=trace.window.length_ns,
        steps=len(trace.steps_in_view) or None,
        gpu_ns=int(times.sum()),
        without_op_ns=int(times.sum() - times[known].sum()),
        frame=ordered if group is not None else ordered.drop("group"),
    )


def _sorted(frame: pl.DataFrame, sort: str) -> pl.DataFrame:
    return frame.sort(SORTS[sort], "name", descending=[True, False], nulls_last=True, maintain_order=True)


def _in_view(trace: Trace, tree: OpTree) -> tuple[int, Bools]:
    """Length of the window, and which nodes begin in it. Without GPU activity, the window is that of the ops."""
    starts, ends = integers(tree.nodes["start_ns"]), integers(tree.nodes["end_ns"])
    window = trace.window
    if trace.chosen_steps:
        return window.length_ns, (starts >= window.start_ns) & (starts < window.end_ns)
    length = window.length_ns if len(trace.gpu) else int(ends.max() - starts.min())
    return length, np.ones(len(starts), bool)


def _summed(values: Floats, owner: Int64s, count: int) -> Floats:
    known = owner != NONE
    return np.bincount(owner[known], weights=values[known], minlength=count).astype(np.float64)


def _work_of_ops(trace: Trace, tree: OpTree, inside: Bools) -> tuple[Floats, Floats, Floats]:
    """FLOPs and bytes of each op by its own model, for a trace without GPU activity."""
    calls, flops, size, known = OpCalls(trace), *(np.zeros(len(tree.nodes)) for _ in range(3))
    is_op = (tree.nodes["kind"] == OP).to_numpy() & inside
    rows = integers(tree.nodes["row"])
    for node in np.flatnonzero(is_op).tolist():
        work = calls.work(int(rows[node]), ())
        if work is not None:
            flops[node], size[node], known[node] = work.main_flops, work.bytes, 1.0
    return flops, size, known


def _groups(trace: Trace, tree: OpTree, group: str | None) -> pl.Series:
    """The group of each node; null where there is none, or for what is no op."""
    is_op = (tree.nodes["kind"] == OP).to_numpy()
    if group is None:
        return pl.Series([None], dtype=pl.String).new_from_index(0, len(is_op))
    rows = np.where(is_op, integers(tree.nodes["row"]), NONE)
    if group == "shape":
        calls = OpCalls(trace)
        shapes = [calls.text(row)[1] or None if row != NONE else None for row in rows.tolist()]
        return pl.Series(shapes, dtype=pl.String)
    origins = Origins(trace)
    return {"module": origins.modules, "stack": origins.stacks, "line": origins.lines}[group](rows)


def _if_any(on_device: bool, value: pl.Expr) -> pl.Expr:
    """The value; null if nothing ran on a device."""
    return pl.when(pl.lit(on_device)).then(value)


def _by_name(table: pl.DataFrame, on_device: bool, window_ns: int) -> pl.DataFrame:
    priced, measured = pl.col("floor").sum(), pl.col("priced").sum()
    any_known = pl.col("known").sum() > 0
    whole = pl.col("gpu_self" if on_device else "cpu_self").sum()
    return table.group_by("kind", pl.col("name").cast(pl.String), "group", maintain_order=True).agg(
        calls=pl.len(),
        cpu_self_ns=pl.col("cpu_self").sum(),
        cpu_total_ns=pl.col("length").sum(),
        cpu_mean_ns=pl.col("length").mean(),
        gpu_self_ns=_if_any(on_device, pl.col("gpu_self").sum()),
        gpu_total_ns=_if_any(on_device, pl.col("gpu").sum().cast(pl.Int64)),
        gpu_mean_ns=_if_any(on_device, pl.col("gpu").mean()),
        share=whole / window_ns,
        launches=_if_any(on_device, pl.col("launches").sum().cast(pl.Int64)),
        flops=pl.when(any_known).then(pl.col("flops").sum().round().cast(pl.Int64)),
        bytes=pl.when(any_known).then(pl.col("bytes").sum().round().cast(pl.Int64)),
        roof_pct=pl.when(measured > 0).then(100 * priced / measured),
        costliest=pl.col("position").get(pl.max_horizontal("gpu_self", "cpu_self").arg_max()),
    )


def _placed(trace: Trace, tree: OpTree, frame: pl.DataFrame, group: str | None) -> pl.DataFrame:
    """The table with the line of the costliest call of each row."""
    nodes = integers(frame["costliest"])
    is_op = (tree.nodes["kind"] == OP).to_numpy()[nodes]
    rows = np.where(is_op, integers(tree.nodes["row"])[nodes], NONE)
    placed = with_sites(frame.with_columns(frame=Origins(trace).lines(rows)).drop("costliest"))
    return placed if group is not None else placed.drop("group")
