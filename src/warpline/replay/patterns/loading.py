"""Data loading in background workers: what stays in the loop, and the shortest step it allows."""

from __future__ import annotations

import numpy as np

from warpline.capture.run_folder import LoaderWork
from warpline.replay.costs import shares
from warpline.replay.graph_edit import GraphEdit
from warpline.replay.labelled_graph import LabelledGraph
from warpline.trace.arrays import Floats, Int64s
from warpline.units import duration, several

LOADER_RANGE = r"DataLoaderIter"
"""Part of the name of the range that torch records around the next batch of a DataLoader."""
WORKERS = r"_MultiProcessingDataLoaderIter|dataloader\.py\(\d+\): _(try_)?get_data"
"""In the names of ranges, ops and frames of a DataLoader that has worker processes."""
RECEIVED = r"^recvmsg$"
"""The call with which a process receives a tensor from another one, as a file descriptor."""


def loading_ns(labelled: LabelledGraph, part: Floats) -> float:
    """Loading time per step, from that of each node; without the first step if its loading was not recorded."""
    starts = labelled.trace.steps_in_view.start_ns
    seen = len(starts) < 2 or bool((part[_middle(labelled) < starts[1]] > 0).any())
    return float(part.sum()) / (labelled.step_count if seen else max(labelled.step_count - 1, 1))


def loader_limit(work: LoaderWork, now_ns: float) -> str:
    """Which step the workers of a DataLoader allow, as a sentence; they allow the step as it is."""
    return (
        f"The DataLoader has {several(work.workers, 'worker')}: {duration(work.cpu_ns)} of CPU time for each step, so "
        f"no step is shorter than about {duration(min(work.step_ns, now_ns))} without more of them."
    )


def hand_over(edit: GraphEdit, case: int) -> float:
    """Moves loading to workers, and returns the loading time per step.

    The loop only receives each tensor from them, which costs no more than creating it did. A step is at least as
    long as the workers need for a batch, divided among them; what those that exist need may have been measured.
    """
    labelled, graph = edit.labelled, edit.graph
    part = labelled.input_share * graph.duration
    nodes = np.flatnonzero(part > 0)
    loading = loading_ns(labelled, part)
    before, taking = _batches(labelled, nodes, case)
    total = np.bincount(before, part[nodes], minlength=len(taking))
    remaining = np.minimum(total, taking) / np.maximum(total, 1.0)
    graph.duration[nodes] -= part[nodes] * (1 - remaining[before])
    share, work = shares.LOADER_SHARE.at(case), labelled.loader_work
    edit.step_floor_ns = max(loading * share, min(work.step_ns, work.cpu_ns * share) if work else 0.0)
    return loading


def _batches(labelled: LabelledGraph, nodes: Int64s, case: int) -> tuple[Int64s, Floats]:
    """The batch that each loading node prepares, and the cost of receiving its tensors (those copied to the device
    right after it). If a DataLoader pins them, its thread receives them, and the loop takes them from it."""
    order = labelled.work[np.argsort(labelled.launch_moment[labelled.work], kind="stable")]
    following = np.searchsorted(labelled.launch_moment[order], _middle(labelled)[nodes], side="right")
    first, batch = np.unique(following, return_inverse=True)
    others = np.flatnonzero(np.append(~labelled.copy_kind[order].equal("HtoD"), True))
    other = np.append(others, len(order))[np.searchsorted(others, first)]
    beyond = np.minimum(other, np.append(first[1:], len(order)))
    taken, pinned = labelled.host.worker_tensor, labelled.source_memory[order].equal("Pinned")
    each = np.where(pinned & labelled.once(_has_loader), taken.low, taken.at(case))
    until = np.append(0.0, np.cumsum(each))
    return batch.astype(np.int64), np.where(beyond > first, until[beyond] - until[first], taken.at(case))


def has_workers(labelled: LabelledGraph) -> bool:
    """Whether worker processes load already."""
    trace = labelled.trace
    named = any(table.name.like(WORKERS).any() for table in (trace.ranges, trace.ops, trace.python))
    received = trace.osrt.name.like(RECEIVED) & np.isin(trace.osrt.thread, labelled.host_time.launching)
    return bool(named or received.any())


def _has_loader(labelled: LabelledGraph) -> bool:
    return bool(labelled.trace.ranges.name.like(LOADER_RANGE).any())


def _middle(labelled: LabelledGraph) -> Int64s:
    """The middle of each node: a batch is mostly prepared in its own step, from the end of the previous one."""
    return (labelled.graph.measured_start + labelled.graph.measured_end) // 2
