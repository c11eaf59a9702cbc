"""When what a fix touches ran: the operations and the host's time that its replay changes, in the recorded steps."""

from __future__ import annotations

import numpy as np

from warpline.fixes.evidence import Evidence
from warpline.intervals import Spans, union
from warpline.trace.columns import integers


def touched_spans(evidence: Evidence, fix: str) -> Spans:
    """The recorded time of all that the fix changes; the replayed steps if it changes only what waits for what."""
    change, graph = evidence.changed(fix), evidence.labelled.graph
    nodes = change.work | change.host
    if nodes.any():
        return union(graph.measured_start[nodes], graph.measured_end[nodes])
    steps = evidence.trace.steps_in_view
    if len(steps):
        return union(integers(steps["start_ns"]), integers(steps["end_ns"]))
    window = evidence.trace.window
    return union(np.array([window.start_ns]), np.array([window.end_ns]))
