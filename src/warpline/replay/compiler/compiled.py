"""Whether a program is already compiled, so that compiling is not suggested."""

from __future__ import annotations

import re

from warpline import api_names
from warpline.replay.labelled_graph import LabelledGraph
from warpline.trace.arrays import Bools

MIN_COMPILED_SHARE = 0.5
"""Share of kernels generated or launched by a compiler from which a program counts as compiled."""


def already_compiled(labelled: LabelledGraph, nodes: Bools) -> bool:
    """Whether at least half of these kernels were generated or launched by a compiler."""
    mine = nodes & labelled.has_step
    return bool(mine.any()) and float(labelled.once(_compiled)[mine].mean()) >= MIN_COMPILED_SHARE


def _compiled(labelled: LabelledGraph) -> Bools:
    """Kernels that were generated or launched by a compiler."""
    launched = labelled.under_op_where(lambda name: re.search(api_names.COMPILED_CODE, name) is not None)
    return launched | labelled.kernels_where(lambda kernel: kernel.library == "triton")
