"""Fixes of order: work that need not wait for other work runs beside it."""

from __future__ import annotations

import numpy as np

from warpline.replay.costs import constants
from warpline.replay.graph.model import STREAM
from warpline.replay.interventions.registry import PESSIMISTIC, intervention
from warpline.replay.workbench import Workbench
from warpline.trace.columns import Bools, Int64s

SMALL_GRID_SHARE = 0.25
"""A kernel whose blocks fill at most this share of the SMs leaves room for another beside it."""
DEFAULT_SMS = 108
LONG_KERNEL_NS = 15_000
"""Kernels shorter than this cost more to launch on other streams than they gain."""


@intervention(
    "overlap_comm",
    16,
    "Collectives run on a stream of their own, beside the kernels that do not need their result.",
    "A collective still waits for what it sends; nothing but the end of the step waits for what it brings.",
    "Kernels beside a collective slow down a little.",
)
def overlap_comm(bench: Workbench, case: int) -> int:
    """Collectives are detached from what follows them."""
    scene = bench.scene
    moving = scene.kernels("comm")
    comm = np.flatnonzero(moving & scene.in_steps & ~bench.gone)
    if not len(comm):
        return 0
    bench.detach(comm)
    others = np.flatnonzero((scene.kind == "kernel") & scene.in_steps & ~bench.gone & ~moving)
    slower = constants.COMM_SLOWDOWN.at(case) - 1
    share = float(bench.graph.duration[comm].sum()) / max(1.0, float(bench.graph.duration[others].sum()))
    bench.graph.duration[others] *= 1 + slower * min(1.0, share)
    return len(comm)


@intervention(
    "streams",
    17,
    "Copies to the host, and repeated kernels with small grids, run on streams of their own.",
    "Nothing but the end of the step waits for the copies; copies to the device are `prefetch`'s.",
    "Repeated kernels that leave most of the device free do not depend on each other, and run side by side; in the "
    "worst case they do not.",
)
def streams(bench: Workbench, case: int) -> int:
    """Copies are detached; in the best case small kernels too."""
    scene = bench.scene
    usable = scene.in_steps & ~bench.gone
    copies = usable & (scene.kind == "memcpy") & (scene.work_text("copy_kind") == "DtoH")
    chosen = np.flatnonzero(copies)
    bench.detach(chosen)
    if case == PESSIMISTIC:
        return len(chosen)
    sms = scene.trace.devices["sm_count"].drop_nulls()
    limit = SMALL_GRID_SHARE * (int(sms[0]) if len(sms) else DEFAULT_SMS)
    blocks = scene.work_number("grid_x") * scene.work_number("grid_y") * scene.work_number("grid_z")
    small = usable & (scene.kind == "kernel") & (blocks > 0) & (blocks <= limit) & ~scene.kernels("comm")
    small &= bench.graph.duration >= LONG_KERNEL_NS
    return len(chosen) + _side_by_side(bench, small, blocks, limit / SMALL_GRID_SHARE)


def _side_by_side(bench: Workbench, small: Bools, blocks: Int64s, sms: float) -> int:
    """Runs of the same small kernel share the device: they take the longest of them, as often as it fills up."""
    scene, graph, changed = bench.scene, bench.graph, 0
    for lane in np.unique(graph.lane[small]):
        nodes = scene.work[graph.lane[scene.work] == lane]
        labels = np.where(small[nodes], scene.name[nodes], np.arange(len(nodes)).astype(str))
        for run in np.split(nodes, np.flatnonzero((labels[1:] != labels[:-1]) | (np.diff(scene.step[nodes]) != 0)) + 1):
            if len(run) < 2 or not small[run].all():
                continue
            rounds = np.ceil(blocks[run].sum() / sms)
            graph.duration[run[1:]] = 0.0
            graph.duration[run[0]] = rounds * scene.graph.duration[run].max()
            graph.lag[(graph.edge_kind == STREAM) & np.isin(graph.edge_to, run[1:])] = 0.0
            changed += len(run)
    return changed
