"""Whether a program is compiled already, so that nobody is told to compile it."""

from __future__ import annotations

import numpy as np

from warpline.replay.scene import Scene
from warpline.trace import api_names
from warpline.trace.columns import NONE, Bools

MOST_COMPILED = 0.5


def already_compiled(scene: Scene, nodes: Bools) -> bool:
    """Whether at least half of these kernels were written or launched by a compiler."""
    mine = nodes & (scene.step != NONE)
    regions = scene.trace.ops["name"].cast(str).unique()
    names = regions.filter(regions.str.contains(api_names.COMPILED_CODE)).to_list()
    compiled = scene.under_op(*names) if names else np.zeros(len(mine), bool)
    compiled = compiled | scene.kernels_where(lambda kernel: kernel.library == "triton")
    return bool(mine.any()) and float(compiled[mine].mean()) >= MOST_COMPILED
