"""Calls to the CUDA allocator inside steps."""

from __future__ import annotations

import numpy as np

from warpline.api_names import EMPTY_CACHE_FREE
from warpline.replay.graph_edit import GraphEdit
from warpline.replay.labelled_graph import LabelledGraph
from warpline.trace.arrays import Bools, Int64s


def calls_in_steps(labelled: LabelledGraph, pattern: str) -> Int64s:
    """Calls within steps whose names match, without those in which a library is initialised."""
    return np.flatnonzero(labelled.calls_like(pattern) & labelled.in_steps & ~labelled.once(_initialising))


def frees_in_steps(labelled: LabelledGraph) -> Int64s:
    """Calls within steps that return memory to the driver, which waits for the device and unmaps it. A call that takes
    less than a launch returned nothing: libraries free a null pointer to start CUDA."""
    calls = calls_in_steps(labelled, EMPTY_CACHE_FREE)
    lengths = (labelled.graph.measured_end - labelled.graph.measured_start)[calls]
    return calls[lengths >= labelled.host.launch.low]


def _initialising(labelled: LabelledGraph) -> Bools:
    """Nodes that begin in time known as cold start."""
    graph = labelled.graph
    found = labelled.host_time.is_labelled("cold_start", graph.lane, graph.measured_start)
    return found & ~labelled.is_work


def drop_calls(edit: GraphEdit, calls: Int64s) -> None:
    """Removes the calls; the host time before them stays."""
    edit.graph.duration[calls] = 0.0
    edit.stop_waiting(calls)
