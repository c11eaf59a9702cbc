"""Data loading that moves to background workers: what of it stays in the loop, and how long a step it allows."""

from __future__ import annotations

import numpy as np

from warpline.replay.costs import shares
from warpline.replay.scene import Scene
from warpline.replay.workbench import Workbench
from warpline.trace.columns import Floats, Int64s, integers
from warpline.trace.names import matches

LOADER_RANGE = r"DataLoaderIter"
"""In the names of the ranges with which torch marks the next batch of a DataLoader."""


def loading_ns(scene: Scene, part: Floats) -> float:
    """Loading in a step, from that of each node; without the first step where its loading was not seen."""
    starts = integers(scene.trace.steps_in_view["start_ns"])
    seen = len(starts) < 2 or bool((part[_middle(scene) < starts[1]] > 0).any())
    return float(part.sum()) / (scene.step_count if seen else max(scene.step_count - 1, 1))


def hand_over(bench: Workbench, case: int) -> float:
    """Moves loading to workers, and says how much a step had of it.

    The loop only takes each tensor from them, which costs no more than making it did. A step takes at least as long as
    the workers need for a batch, divided among them.
    """
    scene, graph = bench.scene, bench.graph
    part = scene.input_share * graph.duration
    nodes = np.flatnonzero(part > 0)
    loading = loading_ns(scene, part)
    before, taking = _batches(scene, nodes, case)
    total = np.bincount(before, part[nodes], minlength=len(taking))
    kept = np.minimum(total, taking) / np.maximum(total, 1.0)
    graph.duration[nodes] -= part[nodes] * (1 - kept[before])
    needed = loading * shares.LOADER_SHARE.at(case)
    bench.step_floor_ns = max(bench.step_floor_ns, needed)
    return loading


def _batches(scene: Scene, nodes: Int64s, case: int) -> tuple[Int64s, Floats]:
    """Which batch each loading node makes, and what taking its tensors costs: those copied to the device right after
    it. Where a DataLoader pins them, its thread takes them from the workers, and the loop from that thread."""
    order = scene.work[np.argsort(scene.launch_moment[scene.work], kind="stable")]
    following = np.searchsorted(scene.launch_moment[order], _middle(scene)[nodes], side="right")
    first, batch = np.unique(following, return_inverse=True)
    others = np.flatnonzero(np.append(scene.work_text("copy_kind")[order] != "HtoD", True))
    other = np.append(others, len(order))[np.searchsorted(others, first)]
    beyond = np.minimum(other, np.append(first[1:], len(order)))
    taken, pinned = scene.host.worker_tensor, scene.work_text("source_memory")[order] == "Pinned"
    each = np.where(pinned & scene.once(_has_loader), taken.low, taken.at(case))
    until = np.append(0.0, np.cumsum(each))
    return batch.astype(np.int64), np.where(beyond > first, until[beyond] - until[first], taken.at(case))


def _has_loader(scene: Scene) -> bool:
    return bool(matches(scene.trace.ranges["name"], LOADER_RANGE).any())


def _middle(scene: Scene) -> Int64s:
    """The middle of each node: a batch is mostly made in the step that it is for, and begins at the end of the last."""
    middle: Int64s = (scene.graph.measured_start + scene.graph.measured_end) // 2
    return middle
