"""What was captured into CUDA graphs: each launch between the start and the end of a capture is a node of the graph."""

from __future__ import annotations

import re

import numpy as np
from msgspec import Struct

from warpline.analyses.recorded_arguments import recorded_arguments
from warpline.api_names import BEGIN_CAPTURE, COPY, END_CAPTURE, KERNEL_LAUNCH, MEMSET
from warpline.trace.arrays import Int64s
from warpline.trace.trace import Trace

_NODES = (("kernel", re.compile(KERNEL_LAUNCH)), ("memset", re.compile(MEMSET)), ("memcpy", re.compile(COPY)))
"""Calls that become nodes of a graph that is being captured."""


class Capture(Struct, frozen=True):
    """One captured graph."""

    end: int
    """The call (row of `api`) that ended the capture."""
    calls: Int64s
    """The call of each node, in order."""
    kinds: list[str]
    """kernel, memcpy or memset."""
    names: list[str]
    """The kernel of each node where the call records it, as HIP's do; else empty."""


def captures_of(trace: Trace) -> list[Capture]:
    """The captures of a trace, in order of their ends."""
    api = trace.api
    begins, ends, kinds = api.name.like(BEGIN_CAPTURE), api.name.like(END_CAPTURE), api.name.renamed(_node).texts
    if not begins.any():
        return []
    open_captures: dict[int, list[int]] = {}
    found: list[tuple[int, list[int]]] = []
    for row in np.flatnonzero(begins | ends | (kinds != "")).tolist():
        thread = int(api.thread[row])
        if begins[row]:
            open_captures[thread] = []
        elif ends[row] and thread in open_captures:
            found.append((row, open_captures.pop(thread)))
        elif kinds[row] and thread in open_captures:
            open_captures[thread].append(row)
    calls = [np.array(rows, np.int64) for _, rows in found]
    names = _kernel_names(trace, np.concatenate([np.zeros(0, np.int64), *calls]))
    return [
        Capture(end, rows, kinds[rows].tolist(), [names.get(row, "") for row in rows.tolist()])
        for (end, _), rows in zip(found, calls, strict=True)
    ]


def _node(name: str) -> str:
    """The kind of node that a call becomes in a graph; empty if it becomes none."""
    return next((kind for kind, pattern in _NODES if pattern.search(name)), "")


def _kernel_names(trace: Trace, calls: Int64s) -> dict[int, str]:
    """The kernels that calls of HIP name in their arguments, by row of `api`."""
    api = trace.api[calls]
    if not api.name.like("^hip").any():
        return {}
    arguments = recorded_arguments(trace, api.args_offset, api.args_length)
    named = zip(calls.tolist(), (found.get("kernel") for found in arguments), strict=True)
    return {row: name for row, name in named if isinstance(name, str)}
