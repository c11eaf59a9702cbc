"""Replays a graph: every node starts as soon as all its dependencies allow.

The graph is in topological order, so one pass suffices, and the same graph always gives the same times. The pass is
compiled (`simulate.c`, a few nanoseconds a node); where it was not, Python takes half a microsecond a node.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import numpy as np

from warpline.native import load
from warpline.records import dataclass
from warpline.replay.graph.model import GONE, Graph
from warpline.trace.columns import Floats

LIBRARY = Path(__file__).with_name("_simulate.so")
VERSION = 2
"""Of the interface; a library built from older sources is not used."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Start and end of each node in a replay, in nanoseconds from the graph's origin."""

    start: Floats
    finish: Floats

    @property
    def span_ns(self) -> float:
        """Time from the origin to the last end."""
        return float(self.finish.max(initial=0.0))


@cache
def load_library() -> ctypes.CDLL | None:
    """The compiled pass, or None where it was not built."""
    library = load(LIBRARY, "simulate_version", VERSION)
    if library is None:
        return None
    size, array = ctypes.c_int64, ctypes.c_void_p
    library.simulate.argtypes = [size, array, size, array, array, array, array, array]
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
    # Addresses, because numpy's own checks of its arguments take longer than a small graph.
    edges = (sources.ctypes.data, targets.ctypes.data, lag.ctypes.data, kind.ctypes.data)
    library.simulate(len(graph), duration.ctypes.data, len(targets), *edges, finish.ctypes.data)
    return finish


def _interpreted(graph: Graph) -> Floats:
    """The same in Python: nodes with one or two edges, nearly all of them, are quick."""
    count, kept = len(graph), np.flatnonzero(graph.edge_kind != GONE)
    edge_from, edge_lag = graph.edge_from[kept], graph.lag[kept]
    first = np.searchsorted(graph.edge_to[kept], np.arange(count + 1))
    edges = np.diff(first)
    # A node without dependencies starts at the origin: it depends, without lag, on an empty node.
    one_from = np.full(count, -1, np.int64)
    one_lag = np.zeros(count)
    some = edges > 0
    one_from[some], one_lag[some] = edge_from[first[:-1][some]], edge_lag[first[:-1][some]]
    two_from, two_lag = one_from.copy(), one_lag.copy()
    several = edges > 1
    two_from[several], two_lag[several] = edge_from[first[:-1][several] + 1], edge_lag[first[:-1][several] + 1]
    more = {int(node): (int(first[node]), int(first[node + 1])) for node in np.flatnonzero(edges > 2)}
    finish = [0.0] * (count + 1)
    sources, lags = edge_from.tolist(), edge_lag.tolist()
    rows = zip(
        one_from.tolist(), one_lag.tolist(), two_from.tolist(), two_lag.tolist(), graph.duration.tolist(), strict=True
    )
    for node, (source, lag, other, other_lag, duration) in enumerate(rows):
        begin = finish[source] + lag
        also = finish[other] + other_lag
        if also > begin:  # noqa: PLR1730 - a call of max() doubles the time
            begin = also
        if node in more:
            for edge in range(more[node][0] + 2, more[node][1]):
                also = finish[sources[edge]] + lags[edge]
                if also > begin:  # noqa: PLR1730
                    begin = also
        finish[node] = begin + duration
    return np.array(finish[:-1])
