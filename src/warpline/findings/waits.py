"""Calls in which the CPU waits for the device, as the rules count them."""

from __future__ import annotations

import numpy as np

from warpline.findings.evidence import Evidence
from warpline.replay.graph.model import CALL
from warpline.replay.interventions.waiting import awaited_calls
from warpline.trace import api_names
from warpline.trace.columns import NONE, Bools


def awaited(evidence: Evidence) -> Bools:
    """The calls that `remove_sync` drops; of a small copy and the wait for it in one op, the wait.

    Without ops, an asynchronous copy belongs to the wait that follows it.
    """
    scene = evidence.scene
    dropped = np.zeros(len(scene.graph), bool)
    dropped[awaited_calls(scene)] = True
    dropped &= scene.graph.kind == CALL
    waits = dropped & ~scene.calls_like(api_names.COPY)
    outer = scene.root_op_of_call
    ops = np.unique(outer[waits])
    copies: Bools = dropped & ~waits & ~np.isin(outer, ops[ops != NONE])
    if waits.any():
        copies &= (outer != NONE) | scene.calls_like(api_names.BLOCKING_COPY)
    return waits | copies
