"""Replays a graph: every node starts as soon as all its dependencies allow.

The graph is in topological order, so one pass suffices, and the same graph always gives the same times. The pass is
compiled (`simulate.c`, a few nanoseconds a node); where it was not, Python takes about a microsecond a node.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import numpy as np
from msgspec import Struct

from warpline.native import library_of, load
from warpline.replay.graph.model import EdgeKind, Graph
from warpline.trace.arrays import Floats

SOURCE = Path(__file__).with_name("simulate.c")
_FLOATS, _INTEGERS, _KINDS = (np.ctypeslib.ndpointer(kind, flags="C") for kind in (np.float64, np.int64, np.int8))


class Schedule(Struct, frozen=True):
    """Start and end of each node in a replay, in nanoseconds from the graph's origin."""

    start: Floats
    finish: Floats

    @property
    def span_ns(self) -> float:
        """Time from the origin to the last end."""
        return float(self.finish.max(initial=0.0))


@cache
def load_library() -> ctypes.CDLL | None:
    """The compiled pass, or None where it was not built from this source."""
    library = load(library_of(SOURCE), SOURCE)
    if library is None:
        return None
    size = ctypes.c_int64
    library.simulate.argtypes = [size, _FLOATS, size, _INTEGERS, _INTEGERS, _FLOATS, _KINDS, _FLOATS]
    library.simulate.restype = None
    return library


def simulate(graph: Graph) -> Schedule:
    """Begin and end of every node."""
    library = load_library()
    finish = _compiled(library, graph) if library else _interpreted(graph)
    return Schedule(finish - graph.duration, finish)


def _compiled(library: ctypes.CDLL, graph: Graph) -> Floats:
    finish = np.zeros(len(graph))
    duration, lag = (np.ascontiguousarray(values, np.float64) for values in (graph.duration, graph.lag))
    sources, targets = (np.ascontiguousarray(values, np.int64) for values in (graph.edge_from, graph.edge_to))
    kind = np.ascontiguousarray(graph.edge_kind, np.int8)
    library.simulate(len(graph), duration, len(targets), sources, targets, lag, kind, finish)
    return finish


def _interpreted(graph: Graph) -> Floats:
    """The same in Python."""
    edges = np.flatnonzero(graph.edge_kind != EdgeKind.GONE)
    sources, lags = graph.edge_from[edges].tolist(), graph.lag[edges].tolist()
    first = np.searchsorted(graph.edge_to[edges], np.arange(len(graph) + 1)).tolist()
    finish: list[float] = []
    for node, duration in enumerate(graph.duration.tolist()):
        allowed = (finish[sources[edge]] + lags[edge] for edge in range(first[node], first[node + 1]))
        finish.append(max(allowed, default=0.0) + duration)
    return np.array(finish)
