"""What ran on the CPU as one tree per thread, by the rules of torch's `key_averages()`.

Ops, `record_function` ranges and CUDA calls are nodes. A node's parent is the innermost node of its thread around it;
its self time is its time less that of its children. An only child with its parent's name is part of the parent (an op
that redispatches to itself), and the profiler's own ops are left out (torch/autograd/profiler_util.py, torch 2.13).
Python frames are no nodes: torch counts them since 2.11 where stacks are recorded, and a range's self time is then
smaller by theirs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from warpline.analyses.thread_events import CALL, OP, RANGE, ThreadEvents
from warpline.library_names import PROFILER_STEP
from warpline.trace.arrays import NONE, Bools, Floats, Int64s, count_of, sum_of
from warpline.trace.nesting import ROUNDED_TWICE, levels, nearest_marked
from warpline.trace.table import Names
from warpline.trace.trace import Trace

PROFILER_OPS = (
    r"^(profiler::_record_function_(enter|enter_new|exit)|aten::(is_leaf|output_nr|_version)"
    r"|\[memory\]|\[OutOfMemory\])$"
)
"""Ops that `key_averages()` leaves out."""
ANY_STEP = "ProfilerStep*"
"""The name under which torch sums the steps."""


def why_no_ops(trace: Trace) -> str:
    """Why a trace has no framework ops, as the end of a sentence."""
    if trace.source == "nsys":
        return ": nsys records none"
    return ": the CPU was not recorded (activities=[ProfilerActivity.CPU, …])" if trace.source == "kineto" else ""


class OpTree(Struct, frozen=True):
    """The nodes, by (thread, start); one that is part of its parent has left the tree."""

    nodes: ThreadEvents
    parents: Int64s
    depths: Int64s
    node_of_op: Int64s
    """For each row of `ops`, the node that counts for it, or NONE; one more element at the end for no op."""

    @property
    def ops(self) -> Int64s:
        """For each node its row of `ops`, or NONE if it is no op."""
        return np.where(self.nodes.kind.equal(OP), self.nodes.row, NONE)

    @property
    def lengths_ns(self) -> Int64s:
        """Time of each node, with its children."""
        return self.nodes.end_ns - self.nodes.start_ns

    @property
    def self_ns(self) -> Int64s:
        """Time of each node without its children. Where a range outlasts the one around it, as an optimizer's step does
        that ends after the profiler's, the time of both is that of the later one; torch counts it twice."""
        lengths, nodes = self.lengths_ns, self.nodes
        within = sum_of(len(lengths), self.parents, lengths).astype(np.int64)
        order = np.lexsort((nodes.start_ns, self.parents, nodes.thread))
        before, after = order[:-1], order[1:]
        beside = (nodes.thread[before] == nodes.thread[after]) & (self.parents[before] == self.parents[after])
        shared = np.minimum(nodes.end_ns[before], nodes.end_ns[after]) - nodes.start_ns[after]
        within[before] += np.where(beside, np.maximum(shared, 0), 0)
        return np.maximum(lengths - within, 0)

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
    nodes = _nodes(trace)
    parents = nodes.nested(ROUNDED_TWICE).parents
    stays = ~_repeats(nodes.name, parents)
    place = np.append(np.where(stays, np.cumsum(stays) - 1, NONE), NONE)
    counts_for = np.append(nearest_marked(parents, stays), NONE)
    is_op = np.flatnonzero(nodes.kind.equal(OP))
    node_of_op = np.full(len(trace.ops) + 1, NONE, np.int64)
    node_of_op[nodes.row[is_op]] = place[counts_for[is_op]]
    # An op that is no node counts for the op around it.
    present = nearest_marked(trace.ops.parent, node_of_op[:-1] != NONE)
    remaining = place[counts_for[parents[stays]]]
    return OpTree(nodes[stays], remaining, _depths(remaining), node_of_op[np.append(present, NONE)])


def _nodes(trace: Trace) -> ThreadEvents:
    """All nodes in order; at equal times, ranges are outside ops, and ops outside calls."""
    ops, api, ranges = trace.ops, trace.api, trace.ranges
    events = ThreadEvents.of(
        (RANGE, ranges, ranges.style.equal("annotation")),
        (OP, ops, ~ops.name.like(PROFILER_OPS)),
        (CALL, api, np.ones(len(api), bool)),
    )
    # A call lies on the thread of its op, where that is known.
    calls = np.flatnonzero(events.kind.equal(CALL))
    op_threads = np.append(ops.thread, NONE)[api.op_id[events.row[calls]]]
    threads = events.thread.copy()
    threads[calls] = np.where(op_threads == NONE, threads[calls], op_threads)
    names = events.name.renamed(lambda name: ANY_STEP if re.match(PROFILER_STEP, name) else name)
    return replace(events, thread=threads, name=names).in_order()


def _repeats(names: Names, parents: Int64s) -> Bools:
    """Which nodes are an only child with the name of its parent."""
    children = count_of(len(parents) + 1, parents)
    return (parents != NONE) & (names.at(parents).codes == names.codes) & (children[parents] == 1)


def _depths(parents: Int64s) -> Int64s:
    depths = np.zeros(len(parents), np.int64)
    above = parents.copy()
    while (inner := above != NONE).any():
        depths += inner
        above = np.append(parents, NONE)[above]
    return depths
