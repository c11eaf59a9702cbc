"""Host time of a thread that a fix removes."""

from __future__ import annotations

import numpy as np

from warpline.replay.graph.model import NodeKind
from warpline.replay.graph_edit import GraphEdit
from warpline.trace.arrays import Int64s


def take_out(edit: GraphEdit, starts: Int64s, ends: Int64s, threads: Int64s, *, bare: bool = False) -> None:
    """Removes the host time between these moments, waits included; the intervals of a thread do not overlap.

    From a host segment that they cover in part, they remove their share of its time without profiler overhead, or, if
    `bare`, all of their own time.
    """
    graph, share = edit.graph, edit.labelled.covered(starts, ends, threads)
    own = share * (graph.measured_end - graph.measured_start) if bare else share * graph.duration
    graph.duration[:] = np.maximum(graph.duration - own, 0.0)
    calls = np.flatnonzero(graph.kind == NodeKind.CALL)
    inside = np.zeros(len(calls), bool)
    for thread in np.unique(threads):
        mine = np.flatnonzero(threads == thread)
        mine = mine[np.argsort(starts[mine])]
        moment = graph.measured_start[calls]
        spot = np.searchsorted(starts[mine], moment, side="right") - 1
        inside |= (graph.lane[calls] == thread) & (spot >= 0) & (moment < ends[mine][spot])
    graph.duration[calls[inside]] = 0.0
    edit.stop_waiting(calls[inside])
