"""GPU activity that joins the results of the iterations of a loop; it is not needed if the loop is batched."""

from __future__ import annotations

import numpy as np

from warpline.replay.labelled_graph import LabelledGraph
from warpline.trace.arrays import NONE, Int64s

GATHERING = ("aten::stack", "aten::cat")


def gathered_after(labelled: LabelledGraph, stream: Int64s, last: int) -> Int64s:
    """GPU activity of gathering ops directly after a node on a stream, within its step."""
    after = stream[np.searchsorted(stream, last, side="right") :]
    names = labelled.trace.stored("ops")["name"]
    found: list[int] = []
    for node in after.tolist():
        root = int(labelled.root_op[node])
        if root == NONE or str(names[root]) not in GATHERING or labelled.step[node] != labelled.step[last]:
            break
        found.append(node)
    return np.array(found, np.int64)
