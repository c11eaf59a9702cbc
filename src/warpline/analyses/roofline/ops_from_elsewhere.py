"""Ops for GPU operations without one: captured into a CUDA graph, named by ranges, or of a second trace.

A CUDA graph records no op when it is replayed, and nsys records none at all. Where the trace shows the capture, the ops
around the captured launches belong to the graph's operations, in the same order. Else a torch.profiler trace of the
same program has the ops of the same kernels.
"""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np
import polars as pl
from msgspec import Struct

from warpline.analyses.op_calls import OpCalls
from warpline.analyses.roofline.nvtx_ops import nvtx_ops
from warpline.api_names import BEGIN_CAPTURE, COPY, END_CAPTURE, GRAPH_LAUNCH, KERNEL_LAUNCH, MEMSET
from warpline.kernels import normalise
from warpline.trace.arrays import NONE, Int64s, Texts, combinations, integers
from warpline.trace.names import texts
from warpline.trace.steps.same_kernels import Sequence, same_kernels
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


class Borrowed(Struct, frozen=True):
    """Ops of other places for the rows of `gpu`."""

    calls: OpCalls
    """The ops."""
    ops: Int64s
    """For each row of `gpu`, its op there, or NONE."""
    call: Int64s
    """Rows with the same number were launched by one call."""


def lent_to(trace: Trace, shapes_from: Trace | None = None) -> tuple[Borrowed, ...]:
    """All ops that can be borrowed for a trace: captured ones, those that ranges name, those of the other trace."""
    found = [captured_ops(trace), named_ops(trace)]
    if shapes_from is not None:
        found.append(ops_of(trace, shapes_from))
    return tuple(one for one in found if one is not None)


def named_ops(trace: Trace) -> Borrowed | None:
    """The ops that the ranges of emit_nvtx() name; None if the trace has ops, or no such ranges."""
    found = None if len(trace.ops) else nvtx_ops(trace)
    return None if found is None else Borrowed(*found, found[1])


def captured_ops(trace: Trace) -> Borrowed | None:
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
    kinds = _kinds([trace])[0][order]
    lanes = np.zeros(len(order), np.int64)
    calls = OpCalls(trace)
    part = _places_in_call(known[labelled])
    labels = _labels(calls, known[labelled], part)
    # The first launches, one after the other, are the reference.
    reference = Sequence(kinds[labelled], lanes[labelled])
    partner = same_kernels(Sequence(kinds, lanes), reference, labels)
    partner[labelled] = np.arange(len(labelled))
    return _borrowed(calls, len(trace.gpu), order, partner, known[labelled], part, lanes)


def ops_of(trace: Trace, other: Trace) -> Borrowed:
    """The ops of another recording of the same program, for each operation of the trace."""
    orders = [_in_lanes(one) for one in (trace, other)]
    kinds = _kinds([trace, other])
    mine = Sequence(kinds[0][orders[0]], _lanes(trace)[orders[0]])
    theirs = Sequence(kinds[1][orders[1]], _lanes(other)[orders[1]])
    known = other.gpu.op_id[orders[1]]
    inner = captured_ops(other)
    if inner is not None:
        known = np.where(inner.ops[orders[1]] != NONE, inner.ops[orders[1]], known)
    calls = OpCalls(other)
    part = _places_in_call(known)
    partner = same_kernels(mine, theirs, _labels(calls, known, part))
    partner = _same_time(trace, other, orders, partner)
    return _borrowed(calls, len(trace.gpu), orders[0], partner, known, part, mine.lanes)


def _captures(trace: Trace) -> list[tuple[int, list[tuple[str, int]]]]:
    """For each capture, the call that ended it, and the kind and op of each node, in order."""
    api = trace.api
    names, threads = api.name.texts.tolist(), api.thread.tolist()
    begins, ends = (api.name.like(pattern) for pattern in (BEGIN_CAPTURE, END_CAPTURE))
    if not begins.any():
        return []
    ops = api.op_id.tolist()
    open_captures: dict[int, list[tuple[str, int]]] = {}
    found = []
    for row, (name, thread) in enumerate(zip(names, threads, strict=True)):
        if begins[row]:
            open_captures[thread] = []
        elif ends[row] and thread in open_captures:
            found.append((row, open_captures.pop(thread)))
        elif thread in open_captures and (kind := _node(name)):
            open_captures[thread].append((kind, ops[row]))
    return found


@lru_cache(maxsize=10_000)
def _node(name: str) -> str:
    return next((kind for kind, pattern in _NODES if pattern.match(name)), "")


def _first_launches(trace: Trace, order: Int64s, captures: list[tuple[int, list[tuple[str, int]]]]) -> Int64s:
    """The captured op of each replayed operation, for the first launch of each graph; NONE for all others.

    The first launch after a capture has the same nodes; where several captures wait for theirs, only one may fit.
    """
    launch = trace.gpu.api_id[order]
    kinds, names = trace.gpu.kind.texts[order].tolist(), trace.gpu.name.texts[order].tolist()
    op_names = np.append(trace.ops.name.texts, "")
    result = np.full(len(order), NONE, np.int64)
    bounds = np.flatnonzero(np.diff(launch, prepend=-2))
    waiting = list(captures)
    for begin, end in zip(bounds.tolist(), np.append(bounds[1:], len(order)).tolist(), strict=True):
        rows = list(zip(kinds[begin:end], names[begin:end], strict=True))
        fitting = [one for one in waiting if one[0] < launch[begin] and _fits(one[1], rows, op_names)]
        if len(fitting) == 1:
            result[begin:end] = [op for _, op in fitting[0][1]]
            waiting.remove(fitting[0])
        if not waiting:
            break
    return result


def _fits(nodes: list[tuple[str, int]], rows: list[tuple[str, str]], op_names: Texts) -> bool:
    """Whether these are the operations of those nodes: by kind, and by name where an op has its kernel's."""
    return [kind for kind, _ in nodes] == [kind for kind, _ in rows] and all(
        not op_names[op].startswith("triton_") or op_names[op] == name
        for (_, op), (_, name) in zip(nodes, rows, strict=True)
    )


def _in_lanes(trace: Trace) -> Int64s:
    """Rows of `gpu` by device, stream and begin."""
    gpu = trace.stored("gpu")
    order: Int64s = np.lexsort((integers(gpu["start_ns"]), _lanes(trace)))
    return order


def _lanes(trace: Trace) -> Int64s:
    """A number for each device and stream."""
    return combinations(trace.gpu.device, trace.gpu.stream)[1]


def _kinds(traces: list[Trace]) -> list[Int64s]:
    """A number for each operation by kind, name, grid and block; the same in all traces."""
    numbers: dict[object, int] = {}
    result = []
    for trace in traces:
        gpu = trace.stored("gpu")
        geometry = [integers(gpu[f"{what}_{axis}"]).tolist() for what in ("grid", "block") for axis in "xyz"]
        kinds, names = texts(gpu["kind"]).tolist(), texts(gpu["name"]).tolist()
        plain = {name: _spelling(name) for name in set(names)}
        keys = [
            (kind, plain[name], *shape) if kind == "kernel" else (kind,)
            for kind, name, *shape in zip(kinds, names, *geometry, strict=True)
        ]
        result.append(np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64))
    return result


@lru_cache(maxsize=10_000)
def _spelling(name: str) -> str:
    """The name without what demanglers write in different ways: parameters, spaces, return types and `const`."""
    text = normalise(name).text
    while (shorter := _PARAMETERS.sub("", text)) != text:
        text = shorter
    return _DECORATION.sub("", text)


def _places_in_call(ops: Int64s) -> Int64s:
    """Which operation of its op's call each is, from 0."""
    table = pl.DataFrame({"op": ops})
    return integers(table.select(pl.int_range(pl.len()).over("op").alias("place"))["place"])


def _labels(calls: OpCalls, ops: Int64s, place: Int64s) -> Int64s:
    """A number for the op, its arguments and the place; NONE without an op."""
    numbers: dict[tuple[int, int], int] = {}
    pairs = zip(ops.tolist(), place.tolist(), strict=True)
    found = [NONE if op == NONE else numbers.setdefault((calls.number(op), at), len(numbers)) for op, at in pairs]
    return np.array(found, np.int64)


def _same_time(trace: Trace, other: Trace, orders: list[Int64s], partner: Int64s) -> Int64s:
    """The partners without those of groups that take a different time in the two recordings."""
    mine, theirs = (
        (one.gpu.end_ns - one.gpu.start_ns)[order] for one, order in zip((trace, other), orders, strict=True)
    )
    table = pl.DataFrame({"partner": partner, "time": mine}).filter(pl.col("partner") != NONE)
    medians = table.group_by("partner").agg(pl.col("time").median())
    at, time = integers(medians["partner"]), medians["time"].to_numpy()
    ratio = np.maximum(time, 1) / np.maximum(theirs[at], 1)
    differ = (np.maximum(ratio, 1 / ratio) > SAME_TIME) & (np.maximum(time, theirs[at]) > SHORT_NS)
    return np.where(np.isin(partner, at[differ]), NONE, partner)


def _borrowed(
    calls: OpCalls, count: int, order: Int64s, partner: Int64s, known: Int64s, part: Int64s, lanes: Int64s
) -> Borrowed:
    """The ops by row of `gpu`; a new call begins with another op, or with a place that was had already."""
    op, place = np.append(known, NONE)[partner], np.append(part, NONE)[partner]
    alike = np.array([NONE if one == NONE else calls.number(one) for one in op.tolist()], np.int64)
    new = np.ones(len(order), bool)
    new[1:] = (alike[1:] != alike[:-1]) | (place[1:] <= place[:-1]) | (lanes[1:] != lanes[:-1]) | (alike[1:] == NONE)
    ops, call = np.full(count, NONE, np.int64), np.full(count, NONE, np.int64)
    ops[order], call[order] = op, np.cumsum(new)
    return Borrowed(calls, ops, call)
