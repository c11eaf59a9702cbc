"""CPU and GPU time by stack, cut to what can be seen."""

from __future__ import annotations

import numpy as np

from warpline.analyses.stacks import Stacks, all_stacks
from warpline.findings.diagnosis import Diagnosis
from warpline.reports.page.contract import Flame, Flames
from warpline.trace.columns import NONE

MOST_NODES, MOST_THREADS = 2_500, 4
MIN_SHARE = 0.0002
"""Narrower nodes are under a pixel wide on any screen."""


def flame_panel(diagnosis: Diagnosis) -> Flames | None:
    """GPU time by the stack that launched it, then the CPU time of the busiest threads."""
    found = all_stacks(diagnosis.trace)[: 1 + MOST_THREADS]
    return Flames([_cut(stacks) for stacks in found]) if found else None


def _cut(stacks: Stacks) -> Flame:
    """The widest nodes; what is left out shows as room beside them."""
    totals = stacks.node_totals()
    # A caller is at least as wide as what it calls, and comes before it: no kept node loses its caller.
    widest = np.argsort(-totals, kind="stable")[:MOST_NODES]
    kept = np.sort(widest[totals[widest] >= max(MIN_SHARE * stacks.total_ns, 1)])
    place = np.full(len(totals) + 1, NONE, np.int64)
    place[kept] = np.arange(len(kept))
    used, frame = np.unique(stacks.frame[kept], return_inverse=True)
    return Flame(
        name=stacks.name,
        frames=[stacks.frames[number] for number in used.tolist()],
        frame=frame.tolist(),
        parent=place[stacks.parent[kept]].tolist(),
        total_ns=totals[kept].tolist(),
    )
