"""Ops for GPU operations without one: captured into a CUDA graph, named by ranges, or of a second trace.

A CUDA graph records no op when it is replayed, and nsys records none at all. Where the trace shows the capture, the ops
around the captured launches belong to the graph's operations, in the same order. Else a torch.profiler trace of the
same program has the ops of the same kernels.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache

import numpy as np
from msgspec import Struct

from warpline.analyses.op_calls import OpCalls
from warpline.analyses.roofline.nvtx_ops import nvtx_ops
from warpline.api_names import BEGIN_CAPTURE, COPY, END_CAPTURE, GRAPH_LAUNCH, KERNEL_LAUNCH, MEMSET
from warpline.kernels import normalise
from warpline.trace.arrays import NONE, Int64s, combinations, grouped
from warpline.trace.steps.same_kernels import Sequence, same_kernels
from warpline.trace.table import Names
from warpline.trace.trace import Trace

_NODES = (("kernel", re.compile(KERNEL_LAUNCH)), ("memset", re.compile(MEMSET)), ("memcpy", re.compile(COPY)))
"""Calls that become nodes of a graph that is being captured."""
_PARAMETERS = re.compile(r"\([^()]*\)")
_DECORATION = re.compile(r"\bvoid\b|\bconst\b|\s+")
SAME_TIME = 1.5
"""Beyond this ratio of times, the shapes were others. Of 132 kernels in four pairs of our recordings (nsys and
torch.profiler of one program), all but one, a copy, took at most 1.13 times as long in one as in the other."""
SHORT_NS = 5_000
"""The time of shorter kernels says nothing about their shapes."""


class ForeignOps(Struct, frozen=True):
    """Ops of other places for the rows of `gpu`."""

    calls: OpCalls
    """The ops."""
    ops: Int64s
    """For each row of `gpu`, its op there, or NONE."""
    call: Int64s
    """Rows with the same number were launched by one call."""


def foreign_ops(trace: Trace, shapes_from: Trace | None = None) -> tuple[ForeignOps, ...]:
    """All ops from elsewhere for a trace: captured ones, those that ranges name, those of the other trace."""
    found = [captured_ops(trace), named_ops(trace)]
    if shapes_from is not None:
        found.append(ops_of(trace, shapes_from))
    return tuple(one for one in found if one is not None)


def named_ops(trace: Trace) -> ForeignOps | None:
    """The ops that the ranges of emit_nvtx() name; None if the trace has ops, or no such ranges."""
    found = None if len(trace.ops) else nvtx_ops(trace)
    return None if found is None else ForeignOps(*found, found[1])


def captured_ops(trace: Trace) -> ForeignOps | None:
    """The ops captured into the graphs of a trace, for each operation that a replay ran; None without any."""
    launches = trace.api.name.like(GRAPH_LAUNCH)
    if not launches.any() or not len(trace.ops):
        return None
    replayed = np.flatnonzero(np.append(launches, False)[trace.gpu.api_id])
    captures = _captures(trace)
    if not captures or not len(replayed):
        return None
    order = replayed[np.lexsort((trace.gpu.start_ns[replayed], trace.gpu.api_id[replayed]))]
    known = _first_launches(trace, order, captures)
    labelled = np.flatnonzero(known != NONE)
    if not len(labelled):
        return None
    replays = Sequence(_kinds(trace)[0][order], np.zeros(len(order), np.int64))
    # The first launches, one after the other, are the reference.
    reference = _Reference(OpCalls(trace), known[labelled])
    partner = same_kernels(replays, Sequence(replays.kinds[labelled], replays.lanes[labelled]), reference.labels)
    partner[labelled] = np.arange(len(labelled))
    return _by_row(trace, order, replays.lanes, reference, partner)


def ops_of(trace: Trace, other: Trace) -> ForeignOps:
    """The ops of another recording of the same program, for each operation of the trace."""
    kinds, lanes = _kinds(trace, other), [_lanes(trace), _lanes(other)]
    orders = [np.lexsort((one.gpu.start_ns, lane)) for one, lane in zip((trace, other), lanes, strict=True)]
    mine, theirs = (Sequence(kinds[side][orders[side]], lanes[side][orders[side]]) for side in (0, 1))
    known = other.gpu.op_id
    inner = captured_ops(other)
    if inner is not None:
        known = np.where(inner.ops != NONE, inner.ops, known)
    reference = _Reference(OpCalls(other), known[orders[1]])
    partner = same_kernels(mine, theirs, reference.labels)
    times = [(one.gpu.end_ns - one.gpu.start_ns)[order] for one, order in zip((trace, other), orders, strict=True)]
    return _by_row(trace, orders[0], mine.lanes, reference, _same_time(partner, *times))


class _Reference(Struct, frozen=True, dict=True):
    """Operations in order whose ops are known."""

    calls: OpCalls
    ops: Int64s
    """The op of each, or NONE."""

    @cached_property
    def places(self) -> Int64s:
        """Which operation of its op's call each is, from 0."""
        places = np.zeros(len(self.ops), np.int64)
        for _, rows in grouped(np.arange(len(self.ops)), self.ops):
            places[rows] = np.arange(len(rows))
        return places

    @cached_property
    def labels(self) -> Int64s:
        """A number for the op, its arguments and the place; NONE without an op."""
        numbers = self.calls.numbers_of(self.ops)
        return np.where(self.ops == NONE, NONE, combinations(numbers, self.places)[1])


def _by_row(trace: Trace, order: Int64s, lanes: Int64s, reference: _Reference, partner: Int64s) -> ForeignOps:
    """The ops by row of `gpu`, where each operation, in this order, has the op of its partner in the reference.

    A new call begins with another op, or with a place that was had already.
    """
    ops, places = np.append(reference.ops, NONE)[partner], np.append(reference.places, NONE)[partner]
    numbers = reference.calls.numbers_of(ops)
    new = np.ones(len(order), bool)
    new[1:] = (numbers[1:] != numbers[:-1]) | (places[1:] <= places[:-1]) | (lanes[1:] != lanes[:-1])
    new |= numbers == NONE
    found, call = np.full(len(trace.gpu), NONE, np.int64), np.full(len(trace.gpu), NONE, np.int64)
    found[order], call[order] = ops, np.cumsum(new)
    return ForeignOps(reference.calls, found, call)


def _captures(trace: Trace) -> list[tuple[int, list[tuple[str, int]]]]:
    """For each capture, the call that ended it, and the kind and op of each node, in order."""
    api = trace.api
    begins, ends, kinds = api.name.like(BEGIN_CAPTURE), api.name.like(END_CAPTURE), api.name.renamed(_node).texts
    if not begins.any():
        return []
    open_captures: dict[int, list[tuple[str, int]]] = {}
    found = []
    for row in np.flatnonzero(begins | ends | (kinds != "")).tolist():
        thread = int(api.thread[row])
        if begins[row]:
            open_captures[thread] = []
        elif ends[row] and thread in open_captures:
            found.append((row, open_captures.pop(thread)))
        elif kinds[row] and thread in open_captures:
            open_captures[thread].append((kinds[row], int(api.op_id[row])))
    return found


def _node(name: str) -> str:
    """The kind of node that a call becomes in a graph; empty if it becomes none."""
    return next((kind for kind, pattern in _NODES if pattern.search(name)), "")


def _first_launches(trace: Trace, order: Int64s, captures: list[tuple[int, list[tuple[str, int]]]]) -> Int64s:
    """The captured op of each replayed operation, for the first launch of each graph; NONE for all others.

    The first launch after a capture has the same nodes; where several captures wait for theirs, only one may fit.
    """
    gpu = trace.gpu[order]
    kinds, names = gpu.kind.texts.tolist(), gpu.name.texts.tolist()
    result = np.full(len(order), NONE, np.int64)
    bounds = np.flatnonzero(np.diff(gpu.api_id, prepend=-2))
    waiting = list(captures)
    for begin, end in zip(bounds.tolist(), np.append(bounds[1:], len(order)).tolist(), strict=True):
        rows = list(zip(kinds[begin:end], names[begin:end], strict=True))
        fitting = [one for one in waiting if one[0] < gpu.api_id[begin] and _fits(one[1], rows, trace.ops.name)]
        if len(fitting) == 1:
            result[begin:end] = [op for _, op in fitting[0][1]]
            waiting.remove(fitting[0])
        if not waiting:
            break
    return result


def _fits(nodes: list[tuple[str, int]], rows: list[tuple[str, str]], op_names: Names) -> bool:
    """Whether these are the operations of those nodes: by kind, and by name where an op has its kernel's."""
    if [kind for kind, _ in nodes] != [kind for kind, _ in rows]:
        return False
    ops = op_names.at(np.array([op for _, op in nodes], np.int64)).texts
    return all(not op.startswith("triton_") or op == name for op, (_, name) in zip(ops, rows, strict=True))


def _lanes(trace: Trace) -> Int64s:
    """A number for each device and stream."""
    return combinations(trace.gpu.device, trace.gpu.stream)[1]


def _kinds(*traces: Trace) -> list[Int64s]:
    """A number for each operation by kind, name, grid and block; the same in all traces."""
    tables = [trace.gpu for trace in traces]
    kinds = Names.joined([gpu.kind for gpu in tables])
    names = Names.joined([gpu.name.renamed(_spelling) for gpu in tables])
    sizes = [f"{size}_{axis}" for size in ("grid", "block") for axis in "xyz"]
    columns = [names.codes, *(np.concatenate([gpu.column(size) for gpu in tables]) for size in sizes)]
    is_kernel = kinds.equal("kernel")
    _, numbers = combinations(kinds.codes, *(np.where(is_kernel, column, NONE) for column in columns))
    return np.split(numbers, np.cumsum([len(gpu) for gpu in tables])[:-1])


@lru_cache(maxsize=10_000)
def _spelling(name: str) -> str:
    """The name without what demanglers write in different ways: parameters, spaces, return types and `const`."""
    text = normalise(name).text
    while (shorter := _PARAMETERS.sub("", text)) != text:
        text = shorter
    return _DECORATION.sub("", text)


def _same_time(partner: Int64s, mine_ns: Int64s, theirs_ns: Int64s) -> Int64s:
    """The partners without those of groups that take a different time in the two recordings."""
    found = partner.copy()
    known = np.flatnonzero(partner != NONE)
    for other, rows in grouped(known, partner[known]):
        here, there = max(float(np.median(mine_ns[rows])), 1.0), max(float(theirs_ns[other]), 1.0)
        if max(here, there) > max(SHORT_NS, SAME_TIME * min(here, there)):
            found[rows] = NONE
    return found
