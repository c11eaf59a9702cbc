"""Fixes of order: work that need not wait for other work runs beside it."""

from __future__ import annotations

import numpy as np

from warpline.replay.bench import Bench
from warpline.replay.interventions import constants
from warpline.replay.interventions.registry import OPTIMISTIC, intervention

SMALL_GRID_SHARE = 0.25
"""A kernel whose blocks fill at most this share of the SMs leaves room for another beside it."""
DEFAULT_SMS = 108


@intervention(
    "overlap_comm",
    16,
    "Collectives run on a stream of their own, beside the kernels that do not need their result.",
    "A collective still waits for what it sends; nothing but the end of the step waits for what it brings.",
    "Kernels beside a collective slow down a little.",
)
def overlap_comm(bench: Bench, case: int) -> int:
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
    "Copies between host and device run on a stream of their own, beside kernels.",
    "Nothing but the end of the step waits for the copies (double buffering).",
    "The best case also lets kernels with small grids run beside their neighbours.",
)
def streams(bench: Bench, case: int) -> int:
    """Copies are detached; in the best case small kernels too."""
    scene = bench.scene
    usable = scene.in_steps & ~bench.gone
    copies = usable & (scene.kind == "memcpy") & np.isin(scene.work_text("copy_kind"), ["HtoD", "DtoH"])
    chosen = np.flatnonzero(copies)
    bench.detach(chosen)
    if case == OPTIMISTIC:
        sms = scene.trace.devices["sm_count"].drop_nulls()
        limit = SMALL_GRID_SHARE * (int(sms[0]) if len(sms) else DEFAULT_SMS)
        blocks = scene.work_number("grid_x") * scene.work_number("grid_y") * scene.work_number("grid_z")
        small = np.flatnonzero(usable & (scene.kind == "kernel") & (blocks > 0) & (blocks <= limit))
        # Neighbours that leave three quarters of the device free can run two at a time.
        bench.graph.duration[small[1::2]] *= 0.5
    return len(chosen)
