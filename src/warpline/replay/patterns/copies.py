"""Shared by the fixes of copies: which copies there are, and what replaces them."""

from __future__ import annotations

import numpy as np

from warpline.replay.costs.cost import Cost
from warpline.replay.graph.model import EdgeKind, NodeKind
from warpline.replay.graph_edit import GraphEdit
from warpline.replay.labelled_graph import LabelledGraph
from warpline.trace.arrays import NONE, Int64s

SMALL_COPY_BYTES = 64 << 10
"""A copy up to this size holds values rather than a batch: a result that is read (`item`, `tolist`, count of a mask)
or a few arguments. It takes about as long as a copy of one number (32 KiB 2.0 µs, 8 bytes 1.5 µs on an H200)."""
FEW_NUMBERS_BYTES = 256
"""A smaller copy to the device holds a few numbers that the device could fill in itself: no batch to pin."""
MIN_COPIES = 8
"""Fewer copies in a row are not worth gathering."""
PASSING = Cost(1.1, 1.4, 2.5, "not measured yet: a cautious range")
"""Time of one pass over device memory, as a multiple of its bytes at peak bandwidth."""


def copies_of(labelled: LabelledGraph, direction: str, edit: GraphEdit) -> Int64s:
    """Remaining copies within steps, in one direction."""
    chosen = labelled.is_copy & labelled.copy_kind.equal(direction) & labelled.in_steps & ~edit.gone
    return np.flatnonzero(chosen)


def device_byte_ns(labelled: LabelledGraph, case: int) -> float:
    """Time per byte that kernels read from or write to device memory."""
    return labelled.device.some_memory_byte.at(case) * PASSING.at(case)


def unblock(edit: GraphEdit, copies: Int64s, case: int, *, keep_waiting: bool) -> None:
    """Makes the copies asynchronous: their calls cost a launch and no longer wait."""
    labelled = edit.labelled
    copies = copies[labelled.call_of_work[copies] != NONE]  # of others nobody knows what they wait for
    calls = labelled.call_of_work[copies]
    if not keep_waiting:
        edit.stop_waiting(calls)
        followers = same_op_waits(labelled, calls)
        edit.stop_waiting(followers)
        edit.graph.duration[followers] = 0.0
    cost = labelled.host.copy_call.at(case)
    edit.graph.duration[calls] = np.minimum(edit.graph.duration[calls], cost)
    into = np.isin(edit.graph.edge_to, copies)
    launch, stream = into & (edit.graph.edge_kind == EdgeKind.LAUNCH), into & (edit.graph.edge_kind == EdgeKind.STREAM)
    edit.graph.lag[launch] = np.minimum(edit.graph.lag[launch], cost)
    edit.graph.lag[stream] = np.minimum(edit.graph.lag[stream], labelled.device.smallest_copy.at(case))


def same_op_waits(labelled: LabelledGraph, calls: Int64s) -> Int64s:
    """Waits that belong to these copies: `to` and `cpu` synchronise in the same op after a blocking copy. Without ops,
    it is the thread's next call."""
    ops = np.unique(labelled.op_of_call[calls])
    waits = np.flatnonzero(labelled.stream_waits & (labelled.op_of_call != NONE))
    inside = waits[np.isin(labelled.op_of_call[waits], ops[ops != NONE])]
    return np.union1d(inside, _next_waits(labelled, calls[labelled.op_of_call[calls] == NONE]))


def _next_waits(labelled: LabelledGraph, calls: Int64s) -> Int64s:
    """The waits among the calls that come next on the threads of these calls."""
    graph = labelled.graph
    in_order = np.flatnonzero(graph.kind == NodeKind.CALL)
    in_order = in_order[np.lexsort((graph.measured_start[in_order], graph.lane[in_order]))]
    before, after = in_order[:-1], in_order[1:]
    follows = (graph.lane[before] == graph.lane[after]) & np.isin(before, calls) & labelled.stream_waits[after]
    return after[follows]


def in_a_row(labelled: LabelledGraph, copies: Int64s) -> list[Int64s]:
    """Runs of two or more consecutive copies on one stream, within a step."""
    chosen = np.zeros(len(labelled.graph), bool)
    chosen[copies] = True
    runs: list[Int64s] = []
    for lane in np.unique(labelled.graph.lane[copies]).tolist():
        nodes = labelled.work_of_lane[lane]
        group = np.cumsum(~chosen[nodes] | (np.diff(labelled.step[nodes], prepend=labelled.step[nodes[:1]]) != 0))
        own, keys = nodes[chosen[nodes]], group[chosen[nodes]]
        runs += [run for run in np.split(own, np.flatnonzero(np.diff(keys)) + 1) if len(run) > 1]
    return runs
