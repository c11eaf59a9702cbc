"""Whether a program is already compiled, so that compiling is not suggested."""

from __future__ import annotations

import numpy as np

from warpline.replay.scene import Scene
from warpline.trace import api_names
from warpline.trace.columns import NONE, Bools

MIN_COMPILED_SHARE = 0.5
"""Share of kernels generated or launched by a compiler from which a program counts as compiled."""


def already_compiled(scene: Scene, nodes: Bools) -> bool:
    """Whether at least half of these kernels were generated or launched by a compiler."""
    mine = nodes & (scene.step != NONE)
    regions = scene.trace.ops["name"].cast(str).unique()
    names = regions.filter(regions.str.contains(api_names.COMPILED_CODE)).to_list()
    compiled = scene.under_op(*names) if names else np.zeros(len(mine), bool)
    compiled = compiled | scene.kernels_where(lambda kernel: kernel.library == "triton")
    return bool(mine.any()) and float(compiled[mine].mean()) >= MIN_COMPILED_SHARE
