"""Calls in which the CPU waits for the device rather than for a transfer."""

from __future__ import annotations

import numpy as np

from warpline import api_names
from warpline.replay.graph.model import EdgeKind, NodeKind
from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.patterns.copies import FEW_NUMBERS_BYTES, MIN_COPIES, SMALL_COPY_BYTES, in_a_row, same_op_waits
from warpline.replay.patterns.python_constants import created_from_numbers
from warpline.trace.arrays import NONE, Bools, Int64s

LARGEST_RESULT_BYTES = 1 << 20
"""A copy of a result to the host is small, or up to this size and much shorter than its call."""
FEWEST_STEPS, RARE = 3, 0.5
"""With this many steps, a wait outside ops in fewer than this share of them is not part of the loop."""
SOON_DONE = 0.1
"""A result that is not small is still no transfer if the copy takes less than this share of its call."""


def awaited_calls(labelled: LabelledGraph) -> Int64s:
    """Calls within steps that wait for the device without moving much data: explicit synchronizations, and copies of
    results that are small or short."""
    graph = labelled.graph
    explicit = labelled.call_name.like(api_names.HOST_WAIT)
    waits = np.flatnonzero((graph.kind == NodeKind.RELEASE) & labelled.in_steps & explicit)
    rows = set(graph.row[waits[~_of_the_harness(labelled, waits)]].tolist())
    rows -= set(graph.row[labelled.once(waits_of_uploads)].tolist())
    calls = _calls_of_results(labelled)
    rows |= set(graph.row[calls].tolist())
    return np.flatnonzero((graph.kind != NodeKind.RELEASE) & ~labelled.is_work & np.isin(graph.row, list(rows)))


def waits_of_uploads(labelled: LabelledGraph) -> Int64s:
    """Waits for a copy to the device from pageable memory: they end where the copy is pinned, or made with others in
    one. A few numbers are no batch, so that their wait is the program's, unless many such copies follow one another;
    and so are tensors made from Python numbers."""
    copies = labelled.is_copy & labelled.copy_kind.equal("HtoD") & labelled.in_steps
    uploads = np.flatnonzero(copies & labelled.source_memory.equal("Pageable"))
    constants = np.array([one.copy for one in created_from_numbers(labelled, uploads)], np.int64)
    uploads = np.setdiff1d(uploads, constants)
    small = uploads[labelled.bytes[uploads] <= SMALL_COPY_BYTES]
    many = [run for run in in_a_row(labelled, small) if len(run) >= MIN_COPIES]
    batches = np.concatenate([uploads[labelled.bytes[uploads] > FEW_NUMBERS_BYTES], *many])
    calls = labelled.call_of_work[batches]
    return same_op_waits(labelled, calls[calls != NONE])


def _of_the_harness(labelled: LabelledGraph, waits: Int64s) -> Bools:
    """Explicit waits that are not the program's: in the profiler's own frames, or, outside ops, in so few steps that
    whatever records or times the program makes them."""
    graph = labelled.graph
    called = labelled.trace.api.start_ns[graph.row[waits]]
    harness = labelled.host_time.is_labelled("profiler", graph.lane[waits], called)
    if labelled.step_count < FEWEST_STEPS:
        return harness
    bare = labelled.op_of_call[waits] == NONE
    names = labelled.call_name.codes[waits]
    for name in np.unique(names[bare]):
        own = bare & (names == name)
        if len(np.unique(labelled.step[waits[own]])) < RARE * labelled.step_count:
            harness |= own
    return harness


def awaited(labelled: LabelledGraph) -> Bools:
    """The calls that `remove_sync` drops; if a small copy and the wait for it are in one op, the wait.

    Without ops, an asynchronous copy belongs to the wait that follows it.
    """
    dropped = np.zeros(len(labelled.graph), bool)
    dropped[awaited_calls(labelled)] = True
    dropped &= labelled.graph.kind == NodeKind.CALL
    waits = dropped & ~labelled.calls_like(api_names.COPY)
    outer = labelled.root_op_of_call
    ops = np.unique(outer[waits])
    copies: Bools = dropped & ~waits & ~np.isin(outer, ops[ops != NONE])
    if waits.any():
        copies &= (outer != NONE) | ~labelled.calls_like(api_names.ASYNC_COPY)
    return waits | copies


def _calls_of_results(labelled: LabelledGraph) -> Int64s:
    """Calls that copy a result to the host and wait, mostly not for the copy itself."""
    graph = labelled.graph
    results = labelled.is_copy & labelled.copy_kind.equal("DtoH") & labelled.in_steps
    copies = graph.edge_from[(graph.edge_kind == EdgeKind.SYNC) & results[graph.edge_from]]
    calls = labelled.call_of_work[copies]
    copies, calls = copies[calls != NONE], calls[calls != NONE]
    waited = (labelled.trace.api.end_ns - labelled.trace.api.start_ns)[graph.row[calls]]
    soon_done = (graph.measured_end - graph.measured_start)[copies] < SOON_DONE * waited
    size = labelled.bytes[copies]
    return calls[(size <= SMALL_COPY_BYTES) | ((size <= LARGEST_RESULT_BYTES) & soon_done)]
