"""Ops for GPU operations without one: captured into a CUDA graph, named by ranges, or of a second trace.

A CUDA graph records no op when it is replayed, and nsys records none at all. Where a trace shows the capture, the ops
around the captured launches belong to the graph's operations, in the same order. Else the same kernels, launched one by
one in this trace or in a torch.profiler trace of the same program, have the ops.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
from msgspec import Struct

from warpline.analyses.modules import Modules
from warpline.analyses.op_calls import OpCalls
from warpline.analyses.roofline.captured_graphs import Capture, captures_of
from warpline.analyses.roofline.nvtx_ops import nvtx_ops
from warpline.kernels import identify, normalise
from warpline.trace.arrays import NONE, Bools, Int64s, Texts, combinations, grouped
from warpline.trace.launches import graph_calls
from warpline.trace.steps.same_kernels import Sequence, fill_between, same_kernels
from warpline.trace.table import Names
from warpline.trace.trace import Trace

Evidence = Literal["recorded", "capture", "sequence"]
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
    api: Int64s
    """For each row of `gpu`, the API call there that launched its like, or NONE."""
    has_shapes: Bools
    """For each row of `gpu`, whether the op has the shapes of its like; else only op and module are known."""
    evidence: Evidence
    """How it is known: `recorded` with the launch, by the order of a graph's `capture`, or by the `sequence` of kernels
    around it."""

    @property
    def known(self) -> Bools:
        """Rows of `gpu` whose op or module can be looked up there."""
        return (self.ops != NONE) | (self.api != NONE)


def foreign_ops(trace: Trace, shapes_from: Trace | None = None) -> tuple[ForeignOps, ...]:
    """All ops from elsewhere for a trace, the most certain first: those that ranges name, captured ones here and in the
    other trace, and those of the same kernels launched one by one, in the other trace and here."""
    found = [named_ops(trace), captured_ops(trace)]
    if shapes_from is not None:
        found += [captured_elsewhere(trace, shapes_from), ops_of(trace, shapes_from)]
    if len(_replayed(trace)) and len(trace.ops):
        found.append(ops_of(trace, trace))
    return tuple(one for one in found if one is not None and one.known.any())


def named_ops(trace: Trace) -> ForeignOps | None:
    """The ops that the ranges of emit_nvtx() name; None if the trace has ops, or no such ranges."""
    found = None if len(trace.ops) else nvtx_ops(trace)
    if found is None:
        return None
    calls, ops = found
    return ForeignOps(calls, ops, ops, np.where(ops == NONE, NONE, trace.gpu.api_id), ops != NONE, "recorded")


def captured_ops(trace: Trace) -> ForeignOps | None:
    """The ops captured into the graphs of a trace, for each operation that a replay ran; None without any."""
    order = _replayed(trace)
    captures = captures_of(trace) if len(order) else []
    if not captures:
        return None
    known = _first_launches(trace, order, captures)
    labelled = np.flatnonzero(known != NONE)
    if not len(labelled):
        return None
    replays = Sequence(_kinds(trace)[0][order], np.zeros(len(order), np.int64))
    # The first launches, one after the other, are the reference.
    reference = _Reference(OpCalls(trace), trace.api.op_id[known[labelled]], known[labelled])
    partner = same_kernels(replays, Sequence(replays.kinds[labelled], replays.lanes[labelled]), reference.labels)
    partner[labelled] = np.arange(len(labelled))
    return _by_row(trace, order, replays.lanes, reference, partner, partner != NONE, "capture")


def captured_elsewhere(trace: Trace, other: Trace) -> ForeignOps | None:
    """The ops that another trace shows being captured, for graphs with the same operations; None without any."""
    order = _replayed(trace)
    captures = captures_of(other) if len(order) else []
    if not captures:
        return None
    calls = np.concatenate([capture.calls for capture in captures])
    reference = _Reference(OpCalls(other), other.api.op_id[calls], calls)
    first = np.cumsum([0, *(len(capture.calls) for capture in captures)])
    partner, exact = np.full(len(order), NONE, np.int64), np.zeros(len(order), bool)
    launch = trace.gpu.api_id[order]
    known: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for _, rows in grouped(np.arange(len(order)), launch):
        nodes = _nodes(trace, order[rows])
        if nodes not in known:
            known[nodes] = [number for number, one in enumerate(captures) if _fits(other, one, nodes)]
        fitting = known[nodes]
        if fitting:
            labels = np.stack([reference.labels[first[number] : first[number + 1]] for number in fitting])
            partner[rows] = np.arange(first[fitting[0]], first[fitting[0] + 1])
            exact[rows] = (labels == labels[0]).all(axis=0)
    lanes = combinations(launch)[1]
    return _by_row(trace, order, lanes, reference, partner, exact, "capture")


def ops_of(trace: Trace, other: Trace) -> ForeignOps:
    """The ops of another recording of the same program for all operations; or those of this one's operations that are
    launched one by one, for the same ones in its graphs."""
    here, there = _Operations(trace), _Operations(other)
    lent = np.arange(len(there.order)) if other is not trace else np.flatnonzero(there.known)
    reference = _Reference(OpCalls(other), there.ops[lent], there.api[lent])
    strict, loose = _kinds(trace, other), _kinds(trace, other, with_sizes=False)
    mine = Sequence(strict[0][here.order], here.lanes)
    partner = same_kernels(mine, Sequence(strict[1][there.order[lent]], there.lanes[lent]), reference.labels)
    partner = _same_time(partner, here.time_ns, there.time_ns[lent])
    exact = partner != NONE
    # Other batch sizes have other grids and may have other kernels of the same class, in the same order.
    mine = Sequence(loose[0][here.order], here.lanes)
    theirs = Sequence(loose[1][there.order[lent]], there.lanes[lent])
    origins = reference.origins
    alike = same_kernels(mine, theirs, origins)
    alike = np.where(exact, partner, alike)
    alike = fill_between(mine, theirs, alike, origins, (here.classes, there.classes[lent]))
    if other is trace:
        alike[here.known] = NONE
    return _by_row(trace, here.order, here.lanes, reference, alike, exact, "sequence")


class _Operations(Struct, frozen=True, dict=True):
    """The GPU operations of a trace in order, each graph launch and each stream a lane of its own."""

    trace: Trace

    @cached_property
    def order(self) -> Int64s:
        """Rows of `gpu`."""
        return np.lexsort((self.trace.gpu.start_ns, self._lane_of_row))

    @cached_property
    def lanes(self) -> Int64s:
        """The lane of each."""
        return self._lane_of_row[self.order]

    @cached_property
    def _lane_of_row(self) -> Int64s:
        gpu = self.trace.gpu
        graph = graph_calls(gpu, self.trace.api)
        alone = graph == NONE
        return combinations(graph, np.where(alone, gpu.device, NONE), np.where(alone, gpu.stream, NONE))[1]

    @cached_property
    def _captured(self) -> ForeignOps | None:
        return captured_ops(self.trace)

    @cached_property
    def ops(self) -> Int64s:
        """The op of each, also where a graph captured in the trace replays it."""
        own = self.trace.gpu.op_id
        inner = self._captured
        return (own if inner is None else np.where(inner.ops != NONE, inner.ops, own))[self.order]

    @cached_property
    def api(self) -> Int64s:
        """The call that launched each, or captured it; NONE for other operations of graphs."""
        own = np.where(graph_calls(self.trace.gpu, self.trace.api) == NONE, self.trace.gpu.api_id, NONE)
        inner = self._captured
        return (own if inner is None else np.where(inner.api != NONE, inner.api, own))[self.order]

    @property
    def known(self) -> Bools:
        """Which have an op or a call of their own."""
        return (self.ops != NONE) | (self.api != NONE)

    @property
    def time_ns(self) -> Int64s:
        """How long each takes."""
        return (self.trace.gpu.end_ns - self.trace.gpu.start_ns)[self.order]

    @property
    def classes(self) -> Texts:
        """The class of each kernel, or the kind of another operation."""
        gpu = self.trace.gpu
        names = gpu.name.renamed(lambda name: identify(name).kernel_class).texts
        return np.where(gpu.kind.equal("kernel"), names, gpu.kind.texts)[self.order]


class _Reference(Struct, frozen=True, dict=True):
    """Operations in order whose ops are known."""

    calls: OpCalls
    ops: Int64s
    """The op of each, or NONE."""
    api: Int64s
    """The call that launched or captured each, or NONE."""

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

    @cached_property
    def origins(self) -> Int64s:
        """A number for the name of the op and its module; NONE without either."""
        trace = self.calls.trace
        modules = Modules(trace)
        names = modules.names(modules.frames(self.ops, self.api)).tolist()
        ops = trace.ops.name.at(self.ops).texts.tolist()
        numbers: dict[tuple[str | None, str], int] = {(None, ""): NONE}
        return np.array([numbers.setdefault(pair, len(numbers)) for pair in zip(ops, names, strict=True)], np.int64)


def _by_row(
    trace: Trace,
    order: Int64s,
    lanes: Int64s,
    reference: _Reference,
    partner: Int64s,
    exact: Bools,
    evidence: Evidence,
) -> ForeignOps:
    """The ops by row of `gpu`, where each operation, in this order, has the op of its partner in the reference.

    A new call begins with another op, or with a place that was had already.
    """
    ops, places = np.append(reference.ops, NONE)[partner], np.append(reference.places, NONE)[partner]
    numbers = reference.calls.numbers_of(ops)
    new = np.ones(len(order), bool)
    new[1:] = (numbers[1:] != numbers[:-1]) | (places[1:] <= places[:-1]) | (lanes[1:] != lanes[:-1])
    new |= numbers == NONE
    found, call, api = (np.full(len(trace.gpu), NONE, np.int64) for _ in range(3))
    found[order], call[order], api[order] = ops, np.cumsum(new), np.append(reference.api, NONE)[partner]
    has_shapes = np.zeros(len(trace.gpu), bool)
    has_shapes[order] = exact & (ops != NONE)
    return ForeignOps(reference.calls, found, call, api, has_shapes, evidence)


def _replayed(trace: Trace) -> Int64s:
    """The operations that graphs replayed, launch by launch, in the order of the graph's nodes."""
    calls = graph_calls(trace.gpu, trace.api)
    rows = np.flatnonzero(calls != NONE)
    return rows[np.lexsort((trace.gpu.start_ns[rows], trace.gpu.graph_node_id[rows], calls[rows]))]


def _nodes(trace: Trace, rows: Int64s) -> tuple[tuple[str, str], ...]:
    """Kind and name of each operation of a graph launch."""
    gpu = trace.gpu[rows]
    return tuple(zip(gpu.kind.texts.tolist(), gpu.name.texts.tolist(), strict=True))


def _first_launches(trace: Trace, order: Int64s, captures: list[Capture]) -> Int64s:
    """The captured call of each replayed operation, for the first launch of each graph; NONE for all others.

    The first launch after a capture has the same nodes; where several captures wait for theirs, only one may fit.
    """
    calls = trace.gpu.api_id[order]
    result = np.full(len(order), NONE, np.int64)
    waiting = list(captures)
    for call, rows in grouped(np.arange(len(order)), calls):
        nodes = _nodes(trace, order[rows])
        fitting = [one for one in waiting if one.end < call and _fits(trace, one, nodes)]
        if len(fitting) == 1:
            result[rows] = fitting[0].calls
            waiting.remove(fitting[0])
        if not waiting:
            break
    return result


def _fits(trace: Trace, capture: Capture, nodes: tuple[tuple[str, str], ...]) -> bool:
    """Whether a launch ran these nodes: by kind, and by name where the call, or a compiled op, has its kernel's."""
    if capture.kinds != [kind for kind, _ in nodes]:
        return False
    ops = trace.ops.name.at(trace.api.op_id[capture.calls]).texts.tolist()
    return all(
        (not call or call == name) and (not (op or "").startswith("triton_") or op == name)
        for call, op, (_, name) in zip(capture.names, ops, nodes, strict=True)
    )


def _kinds(*traces: Trace, with_sizes: bool = True) -> list[Int64s]:
    """A number for each operation by kind and name, and by grid and block if asked for; the same in all traces."""
    tables = [trace.gpu for trace in traces]
    kinds = Names.joined([gpu.kind for gpu in tables])
    names = Names.joined([gpu.name.renamed(_spelling) for gpu in tables])
    sizes = [f"{size}_{axis}" for size in ("grid", "block") for axis in "xyz"] if with_sizes else []
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
