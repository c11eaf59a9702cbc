"""The dependency graph of a trace: nodes and edges as flat arrays, in topological order.

Times are nanoseconds from the graph's origin. An edge means: the node starts no earlier than the end of the
other plus a lag. What begins together with a call hangs on the segment before the call, which ends there.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from warpline.trace.arrays import NONE, Bools, Floats, Int64s

Int8s = npt.NDArray[np.int8]


class NodeKind(IntEnum):
    """What a node is."""

    SEGMENT = 0
    """CPU time between calls."""
    CALL = 1
    """An API call, without its waiting."""
    RELEASE = 2
    """The return of a call once its wait is over."""
    JOIN = 3
    """A thread that waits for another."""
    WORK = 4
    """Something a device ran."""


class EdgeKind(IntEnum):
    """Why a node cannot start before another has ended."""

    GONE = -1
    """No reason any more: a fix removed the edge. It stays in its place, and the replay passes over it."""
    THREAD = 0
    """Program order."""
    LAUNCH = 1
    """A call launches work."""
    STREAM = 2
    """Order within a stream."""
    SYNC = 3
    """A call waits for work."""
    EVENT = 4
    """Work waits for work of another stream through an event."""
    HANDOFF = 5
    """A thread waits for another."""
    INFERRED = 6
    """Work began right after other work ended: the times alone say so."""
    CONTENTION = 7
    """Work waited until other work left room on the device, by the times alone. The lag is negative: so long before the
    end of the other did it find room."""


class Graph(Struct):
    """Nodes in topological order, and edges sorted by the node they lead to."""

    kind: Int8s
    lane: Int64s
    """Thread (row of `threads`) of a CPU node; number of the stream of work."""
    row: Int64s
    """Row of `api` or of `gpu`; -1 for segments and joins. A segment before a call has that call in `before`."""
    before: Int64s
    """For a segment, the row of `api` that follows it on its thread, or -1."""
    measured_start: Int64s
    measured_end: Int64s
    duration: Floats
    edge_from: Int64s
    edge_to: Int64s
    lag: Floats
    edge_kind: Int8s
    origin_ns: int
    dropped_edges: int = 0
    """Edges that contradicted the time order, and were dropped."""

    def __len__(self) -> int:
        return len(self.kind)

    def copy(self) -> Graph:
        """A graph whose durations, lags and kinds of edges a fix may change; edges it adds."""
        return replace(self, duration=self.duration.copy(), lag=self.lag.copy(), edge_kind=self.edge_kind.copy())

    def with_edges(self, sources: Int64s, targets: Int64s, lag: Floats, kind: EdgeKind) -> Graph:
        """The graph with more edges; those that contradict the order are dropped and counted."""
        forward = sources < targets
        edge_to = np.concatenate([self.edge_to, targets[forward]])
        order = np.argsort(edge_to, kind="stable")
        return replace(
            self,
            edge_from=np.concatenate([self.edge_from, sources[forward]])[order],
            edge_to=edge_to[order],
            lag=np.concatenate([self.lag, lag[forward]])[order],
            edge_kind=np.concatenate([self.edge_kind, np.full(int(forward.sum()), kind, np.int8)])[order],
            dropped_edges=self.dropped_edges + int((~forward).sum()),
        )

    def marked(self, nodes: Int64s) -> Bools:
        """Whether each node is one of these."""
        result = np.zeros(len(self), bool)
        result[nodes] = True
        return result

    def marked_rows(self, rows: Int64s) -> Bools:
        """Marks these rows among all that nodes have; the last mark is that of NONE."""
        result = np.zeros(int(self.row.max(initial=NONE)) + 2, bool)
        result[rows] = True
        return result

    def of_kinds(self, *kinds: NodeKind) -> Bools:
        """Whether each node is of one of these kinds."""
        chosen = np.zeros(len(NodeKind), bool)
        chosen[list(kinds)] = True
        return chosen[self.kind]

    def nodes(self, kind: NodeKind) -> Int64s:
        """Positions of the nodes of one kind."""
        return np.flatnonzero(self.kind == kind)
