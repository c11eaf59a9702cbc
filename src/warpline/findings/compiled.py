"""Whether a program is compiled already, so that nobody is told to compile it."""

from __future__ import annotations

import numpy as np

from warpline.findings.evidence import Evidence
from warpline.trace.columns import Bools

REGION = r"Torch-Compiled Region|CompiledFxGraph|CompiledFunction"
"""Ops in which torch.compile runs what it compiled."""
MOST_COMPILED = 0.5


def already_compiled(evidence: Evidence, nodes: Bools) -> bool:
    """Whether at least half of these kernels were written or launched by a compiler."""
    scene, mine = evidence.scene, evidence.in_steps(nodes)
    regions = evidence.trace.ops["name"].cast(str).unique()
    names = regions.filter(regions.str.contains(REGION)).to_list()
    compiled = scene.under_op(*names) if names else np.zeros(len(mine), bool)
    compiled = compiled | scene.kernels_where(lambda kernel: kernel.library == "triton")
    return bool(mine.any()) and float(compiled[mine].mean()) >= MOST_COMPILED
