"""What ran on the CPU as one tree per thread, by the rules of torch's `key_averages()`.

Ops, `record_function` ranges and CUDA calls are nodes. A node's parent is the innermost node of its thread around it;
its self time is its time less that of its children. An only child with its parent's name is part of the parent (an op
that redispatches to itself), and the profiler's own ops are left out (torch/autograd/profiler_util.py, torch 2.13).
Python frames are no nodes: torch counts them since 2.11 where stacks are recorded, and a range's self time is then
smaller by theirs.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl
from msgspec import Struct

from warpline.library_names import PROFILER_STEP
from warpline.trace.arrays import NONE, Bools, Floats, Int64s, integers
from warpline.trace.names import matches
from warpline.trace.nesting import ROUNDED_TWICE, clock_tick_ns, levels, nearest_marked, nest, order_for_nesting
from warpline.trace.trace import Trace

OP, RANGE, CALL = "op", "range", "call"
"""Kinds of nodes."""
PROFILER_OPS = (
    r"^(profiler::_record_function_(enter|enter_new|exit)|aten::(is_leaf|output_nr|_version)"
    r"|\[memory\]|\[OutOfMemory\])$"
)
"""Ops that `key_averages()` leaves out."""
ANY_STEP = "ProfilerStep*"
"""The name under which torch sums the steps."""


class OpTree(Struct, frozen=True):
    """The nodes, by (thread, begin); one that is part of its parent has left the tree."""

    nodes: pl.DataFrame
    """`kind`, `name`, `thread`, `start_ns`, `end_ns`, and `row`, the position in `ops`, `ranges` or `api`."""
    parents: Int64s
    depths: Int64s
    node_of_op: Int64s
    """For each row of `ops`, the node that counts for it, or NONE; one more element at the end for no op."""

    @property
    def lengths_ns(self) -> Int64s:
        """Time of each node, with its children."""
        return integers(self.nodes["end_ns"]) - integers(self.nodes["start_ns"])

    @property
    def self_ns(self) -> Int64s:
        """Time of each node without its children."""
        lengths = self.lengths_ns
        inner = self.parents != NONE
        within = np.bincount(self.parents[inner], weights=lengths[inner], minlength=len(lengths))
        return lengths - within.astype(np.int64)

    def with_children(self, values: Mapping[str, Floats]) -> dict[str, Floats]:
        """The sums of values over each node and all it encloses."""
        totals = {key: own.astype(np.float64) for key, own in values.items()}
        for level in reversed(levels(self.depths)):
            rows = level[self.parents[level] != NONE]
            for total in totals.values():
                np.add.at(total, self.parents[rows], total[rows])
        return totals


def op_tree(trace: Trace) -> OpTree:
    """The tree of a trace; its window does not matter."""
    nodes = _gathered(trace)
    lanes, starts, ends = (integers(nodes[name]) for name in ("thread", "start_ns", "end_ns"))
    order = order_for_nesting(lanes, starts, ends)
    nodes = nodes[order]
    tree = nest(lanes[order], starts[order], ends[order], ROUNDED_TWICE * clock_tick_ns(starts, ends))
    kept = ~_repeats(integers(nodes["name"].to_physical()), tree.parents)
    place = np.append(np.where(kept, np.cumsum(kept) - 1, NONE), NONE)
    counts_for = np.append(nearest_marked(tree.parents, kept), NONE)
    is_op = (nodes["kind"] == OP).to_numpy()
    node_of_op = np.full(len(trace.ops) + 1, NONE, np.int64)
    node_of_op[integers(nodes["row"])[is_op]] = place[counts_for[np.flatnonzero(is_op)]]
    parents = place[counts_for[tree.parents[kept]]]
    return OpTree(nodes.filter(kept), parents, _depths(parents), _without_gaps(trace, node_of_op))


def _gathered(trace: Trace) -> pl.DataFrame:
    """All nodes; at equal times, ranges are outside ops, and ops outside calls."""
    span = ("name", "thread", "start_ns", "end_ns")
    style = pl.col("style").cast(pl.String) == "annotation"
    ranges = (
        trace.stored("ranges")
        .with_row_index("row")
        .filter(style, pl.col("thread").is_not_null(), pl.col("end_ns").is_not_null())
    )
    own = trace.ops.name.like(PROFILER_OPS)
    calls = trace.stored("api")
    threads = np.append(trace.ops.thread, NONE)[integers(calls["op_id"])]
    parts = [
        ranges.select(pl.lit(RANGE).alias("kind"), "row", *span),
        trace.stored("ops").with_row_index("row").filter(~own).select(pl.lit(OP).alias("kind"), "row", *span),
        calls.with_row_index("row")
        .with_columns(thread=pl.Series(np.where(threads == NONE, integers(calls["thread"]), threads)))
        .select(pl.lit(CALL).alias("kind"), "row", *span),
    ]
    whole = pl.concat([part.cast({"thread": pl.Int64, "row": pl.Int64}) for part in parts])
    is_step = matches(whole["name"], PROFILER_STEP)
    return whole.with_columns(name=pl.when(is_step).then(pl.lit(ANY_STEP).cast(pl.Categorical)).otherwise("name"))


def _repeats(names: Int64s, parents: Int64s) -> Bools:
    """Which nodes are an only child with the name of its parent."""
    children = np.bincount(parents[parents != NONE], minlength=len(parents) + 1)
    result: Bools = (parents != NONE) & (np.append(names, NONE)[parents] == names) & (children[parents] == 1)
    return result


def _depths(parents: Int64s) -> Int64s:
    depths = np.zeros(len(parents), np.int64)
    above = parents.copy()
    while (inner := above != NONE).any():
        depths += inner
        above = np.append(parents, NONE)[above]
    return depths


def _without_gaps(trace: Trace, node_of_op: Int64s) -> Int64s:
    """The same, where an op that is no node counts for the op around it."""
    present = node_of_op[:-1] != NONE
    nearest = np.append(nearest_marked(trace.ops.parent, present), NONE)
    result: Int64s = node_of_op[nearest]
    return result
