"""Time by call stack: CPU time of each thread, and GPU time by the stack that launched it.

A thread's ranges, Python frames, ops and API calls are one tree by time: an op inside a frame is its child, and a frame
inside an op (a custom autograd function) likewise. Each moment belongs to the innermost of them, so that the times of a
thread's stacks sum to the time in which anything is open on it, and nothing is counted twice.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from warpline.analyses.cpu_time import segments
from warpline.analyses.thread_events import thread_events
from warpline.trace.arrays import NONE, Bools, Int64s
from warpline.trace.nesting import levels
from warpline.trace.trace import Trace

NO_LAUNCH = "(no launch recorded)"


class Stacks(Struct, frozen=True):
    """A tree of calls: a node for each distinct stack, after the node of its caller."""

    name: str
    frames: tuple[str, ...]
    """Distinct names of frames, ops, calls and kernels."""
    frame: Int64s
    """Of each node, its position in `frames`."""
    parent: Int64s
    """Of each node, the node of its caller, or NONE."""
    self_ns: Int64s
    """Time of each node itself, without what it calls."""

    @property
    def total_ns(self) -> int:
        """Time of all stacks."""
        return int(self.self_ns.sum())

    def node_totals(self) -> Int64s:
        """Time of each node with what it calls."""
        totals = self.self_ns.copy()
        for node in range(len(totals) - 1, -1, -1):
            if self.parent[node] != NONE:
                totals[self.parent[node]] += totals[node]
        return totals


def all_stacks(trace: Trace) -> list[Stacks]:
    """GPU time by stack, if there is any, then the CPU time of each thread, the busiest first."""
    events = _Events(trace)
    gpu = gpu_stacks(trace, events)
    return [*([gpu] if gpu is not None else []), *cpu_stacks(trace, events)]


def cpu_stacks(trace: Trace, events: _Events | None = None) -> list[Stacks]:
    """For each thread with events in the window, or in the whole recording if no steps were chosen: its stacks."""
    events = events or _Events(trace)
    if not len(events.names):
        return []
    window = trace.window
    whole = int(events.nest.starts.min()), int(events.nest.ends.max())
    span = (window.start_ns, window.end_ns) if trace.chosen_steps is not None else whole
    found = []
    for thread in np.unique(events.nest.lanes).tolist():
        mine = events.nest.lanes == thread
        begins, lengths = segments(events.nest.starts[mine], events.nest.ends[mine], [span])
        owners = events.nest.innermost(np.full_like(begins, thread), begins)
        inside = owners != NONE
        self_ns = np.bincount(owners[inside], lengths[inside], len(mine)).astype(np.int64)
        stacks, _ = events.stacks(f"CPU {thread_title(trace, thread)}", mine, self_ns)
        if stacks.total_ns:
            found.append(stacks)
    return sorted(found, key=lambda stacks: -stacks.total_ns)


def gpu_stacks(trace: Trace, events: _Events | None = None) -> Stacks | None:
    """Durations of GPU operations by the stack that launched them, with the operation as the innermost frame.

    Operations that run at the same time count each. None without GPU work in the window.
    """
    window = trace.window
    begun = trace.gpu.start_ns
    gpu = trace.gpu[(begun >= window.start_ns) & (begun < max(window.end_ns, window.start_ns + 1))]
    if not len(gpu):
        return None
    events = events or _Events(trace)
    threads, moments = (np.append(column, NONE)[gpu.api_id] for column in (trace.api.thread, trace.api.start_ns))
    owners = events.nest.innermost(threads, moments) if len(events.names) else np.full(len(gpu), NONE, np.int64)
    callers, node_of = events.stacks("GPU time", events.with_callers(owners), np.zeros(len(events.names), np.int64))
    # The names of callers and of operations in one list.
    known = {name: code for code, name in enumerate(callers.frames)}
    for name in [*gpu.name.present(), NO_LAUNCH]:
        known.setdefault(name, len(known))
    codes = gpu.name.numbers(lambda name: known.get(name, NONE))
    nodes = np.append(node_of, NONE)[owners]
    frame, parent, self_ns = callers.frame, callers.parent, callers.self_ns
    if (nodes == NONE).any():
        nodes = np.where(nodes == NONE, len(frame), nodes)
        frame, parent, self_ns = np.append(frame, known[NO_LAUNCH]), np.append(parent, NONE), np.append(self_ns, 0)
    leaves, leaf = np.unique(nodes * len(known) + codes, return_inverse=True)
    times = np.bincount(leaf, gpu.end_ns - gpu.start_ns, len(leaves)).astype(np.int64)
    return Stacks(
        "GPU time",
        tuple(known),
        np.concatenate([frame, leaves % len(known)]),
        np.concatenate([parent, leaves // len(known)]),
        np.concatenate([self_ns, times]),
    )


class _Events:
    """The events of all threads as one tree, and their names."""

    def __init__(self, trace: Trace) -> None:
        events = thread_events(trace).in_order()
        self.nest, self.names = events.nested(), events.name

    def with_callers(self, rows: Int64s) -> Bools:
        """Which events are these, or call one of them."""
        found = np.zeros(len(self.names), bool)
        while len(rows):
            rows = np.unique(rows[rows != NONE])
            found[rows] = True
            rows = self.nest.parents[rows]
        return found

    def stacks(self, title: str, chosen: Bools, self_ns: Int64s) -> tuple[Stacks, Int64s]:
        """The chosen events, with all their callers, as a tree, and each event's node; `self_ns` is of each event."""
        nodes, parent, code = self._merged(chosen)
        times = np.bincount(nodes[chosen], self_ns[chosen], len(parent)).astype(np.int64)
        used, frame = np.unique(code, return_inverse=True)
        frames = tuple(self.names.words[number] for number in used.tolist())
        return Stacks(title, frames, frame.astype(np.int64), parent, times), nodes

    def _merged(self, chosen: Bools) -> tuple[Int64s, Int64s, Int64s]:
        """For each event its node, and for each node its caller and name: events with the same names from the outermost
        on are one node. Callers are merged before what they call."""
        rows, words = np.flatnonzero(chosen), len(self.names.words)
        nodes = np.full(len(self.names) + 1, NONE, np.int64)
        parents, codes, count = [rows[:0]], [rows[:0]], 0
        for within in levels(self.nest.depths[rows]):
            level = rows[within]
            keys = (nodes[self.nest.parents[level]] + 1) * words + self.names.codes[level]
            distinct, which = np.unique(keys, return_inverse=True)
            nodes[level] = count + which
            parents.append(distinct // words - 1)
            codes.append(distinct % words)
            count += len(distinct)
        return nodes[:-1], np.concatenate(parents), np.concatenate(codes)


def thread_title(trace: Trace, thread: int) -> str:
    """`thread 399 (python3)`: the thread's number, and its name where the file has one."""
    name, tid = trace.threads.name[thread] or "", int(trace.threads.tid[thread])
    if name.startswith("thread"):
        return name
    number = "" if tid in {NONE, 0} else str(tid)
    return " ".join(filter(None, ("thread", number, f"({name})" if name not in {"", number} else "")))
