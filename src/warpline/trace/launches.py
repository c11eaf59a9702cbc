"""When GPU operations were launched."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from warpline.api_names import GRAPH_LAUNCH
from warpline.trace.arrays import NEVER, NONE, Bools, Int64s, count_of, greatest_of, grouped
from warpline.trace.schema import MIGRATION, Api, Gpu
from warpline.trace.table import filled

FULL_QUEUE = 500
"""So many launches pending on a stream may fill its queue: current drivers have 1,024 entries, and some launches take
two."""
LONG_LAUNCH = 10
"""A launch that takes as many times the median of all did not only launch."""


def launched_ns(gpu: Gpu, api: Api) -> Int64s:
    """When each operation was launched: the start of its call, or its own start where no launch was recorded."""
    calls = gpu.api_id
    return np.where(calls == NONE, gpu.start_ns, np.append(api.start_ns, 0)[calls])


def are_unlaunched(gpu: Gpu) -> Bools:
    """Which operations have no recorded launch; pages of unified memory migrate without one."""
    return (gpu.api_id == NONE) & ~gpu.copy_kind.like(MIGRATION)


def waits_for_room(gpu: Gpu, api: Api) -> Int64s:
    """The calls (rows of `api`) that waited for space in the launch queue: much longer than launches are, while the
    calls before them had filled a stream. A CUDA graph, which one call launches, takes one place."""
    linked = np.flatnonzero(gpu.api_id != NONE)
    calls = np.unique(gpu.api_id[linked])
    lengths = (api.end_ns - api.start_ns)[calls]
    slow = calls[lengths > LONG_LAUNCH * np.median(lengths)] if len(calls) else calls
    pending = np.zeros(len(slow), np.int64)
    streams = (filled(gpu.device, 0) << 32) + filled(gpu.stream, 0)
    for _, rows in grouped(linked, streams[linked]):
        own, place = np.unique(gpu.api_id[rows], return_inverse=True)
        ends = greatest_of(len(own), place, gpu.end_ns[rows])
        begun = np.searchsorted(np.sort(api.start_ns[own]), api.start_ns[slow])
        pending = np.maximum(pending, begun - np.searchsorted(np.sort(ends), api.start_ns[slow]))
    return slow[pending >= FULL_QUEUE]


def graph_calls(gpu: Gpu, api: Api) -> Int64s:
    """The call (row of `api`) that launched each operation's CUDA graph; NONE for other operations."""
    is_graph = np.append(api.name.like(GRAPH_LAUNCH), False)
    return np.where(is_graph[gpu.api_id], gpu.api_id, NONE)


def nodes_of_calls(gpu: Gpu, api: Api) -> Int64s:
    """How many nodes of a CUDA graph each call launched; 0 for calls that launched none."""
    return count_of(len(api), graph_calls(gpu, api))


def replays_graphs(gpu: Gpu, api: Api) -> bool:
    """Whether operations of CUDA graphs are recorded."""
    return bool((graph_calls(gpu, api) != NONE).any())


def launch_moments(gpu: Gpu, api: Api, first: int, beyond: int) -> Int64s:
    """When each operation was launched, for steps from `first` to `beyond`: its own start where the launch is unknown.

    A stream runs its work in the order of the launches: what has no launch and runs before all work that these steps
    launched to its stream (or to any, if they launched none there) was launched before them.
    """
    begun, calls, launched = gpu.start_ns, gpu.api_id, launched_ns(gpu, api)
    own = np.flatnonzero((calls != NONE) & (launched >= first) & (launched < beyond))
    lost = np.flatnonzero(calls == NONE)
    if not len(own) or not len(lost):
        return launched
    streams = (filled(gpu.device, 0) << 32) + filled(gpu.stream, 0)
    known, lane = np.unique(streams[own], return_inverse=True)
    begins = np.full(len(known) + 1, begun[own].min())
    begins[:-1] = NEVER
    np.minimum.at(begins, lane, begun[own])
    place = np.minimum(np.searchsorted(known, streams[lost]), len(known) - 1)
    place = np.where(known[place] == streams[lost], place, len(known))
    launched[lost[begun[lost] < begins[place]]] = first - 1
    return launched


class Launches(Struct, frozen=True):
    """When GPU operations were launched, and by which thread."""

    moments: Int64s
    """For each row of `gpu`, in order of time."""
    busy_ns: Int64s
    """Device time launched before each of them, and in total."""
    window: tuple[int, int]
    """When the device began and ended."""
    of_thread: dict[int, Int64s]
    """The same moments per launching thread."""
    first_kernel: int
    """When the first kernel was launched: what comes before it loads data."""

    @classmethod
    def of(cls, gpu: Gpu, api: Api) -> Launches:
        """From the launching calls; an operation without a call counts as launched at its start."""
        moments = launched_ns(gpu, api)
        order = np.argsort(moments, kind="stable")
        threads = np.append(api.thread, NONE)[gpu.api_id[order]]
        return cls(
            moments[order],
            np.append(0, np.cumsum((gpu.end_ns - gpu.start_ns)[order])),
            (int(gpu.start_ns.min()), int(gpu.end_ns.max())),
            {thread: own for thread, own in grouped(moments[order], threads) if thread != NONE},
            int(moments[gpu.kind.equal("kernel", "graph")].min(initial=NEVER)),
        )

    def share(self, start_ns: int, end_ns: int) -> float:
        """Share of the device's busy time launched in this interval, or of its window that the interval covers."""
        first, beyond = np.searchsorted(self.moments, [start_ns, end_ns])
        busy = float((self.busy_ns[beyond] - self.busy_ns[first]) / max(1, self.busy_ns[-1]))
        begin, end = self.window
        return max(busy, (min(end_ns, end) - max(start_ns, begin)) / max(1, end - begin))

    def working(self, thread: int, starts: Int64s, ends: Int64s) -> float:
        """Share of these spans in which their thread launched something."""
        moments = self.of_thread[thread]
        return float((np.searchsorted(moments, starts) < np.searchsorted(moments, ends)).mean())
