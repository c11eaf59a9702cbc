"""Links the tables of a trace: range -> op -> API call -> GPU operation, and forward -> backward.

Joins are by (process, correlation). A GPU row without a launch keeps its place with a null `api_id`.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import polars as pl

from warpline.intervals import union
from warpline.library_names import MODULE_FRAME, OWN_FRAME, WRAPPER_FRAME
from warpline.trace.arrays import (
    LONG_AGO,
    NEVER,
    NONE,
    Bools,
    Int64s,
    combinations,
    greatest_of,
    grouped,
    last_match,
    least_of,
)
from warpline.trace.nesting import (
    ROUNDED_TWICE,
    Nest,
    clock_tick_ns,
    nearest_marked,
    nest,
    order_for_nesting,
    spread_to_parents,
)
from warpline.trace.schema import TABLES, Api, Events, Gpu, Ops, Python, Ranges, Syncs
from warpline.trace.table import TraceTable, filled

CLOCK_SLACK_NS = 100_000
"""CUPTI's clock and the framework's are converted into each other only approximately: an API call may seem to
begin this long before the op that makes it, or end after it. Observed up to tens of microseconds."""

NESTED_STYLES = ("pushpop", "annotation")
THREAD_START = r"^threading\.py\("
"""Frames between the start of a thread and its function."""
Timed = TypeVar("Timed", Gpu, Api)
Launched = TypeVar("Launched", Gpu, Syncs, Events)
Nested = TypeVar("Nested", Ops, Python)


def link(frames: dict[str, pl.DataFrame]) -> dict[str, TraceTable]:
    """The tables, sorted and linked. Removes the frames that are sorted, so that none is in memory twice."""
    # Python frames are most of a trace with stacks; they are nested on a second core while the rest is linked.
    with ThreadPoolExecutor(1) as second_core:
        nested_frames = second_core.submit(_nested_frames, frames.pop("python"))
        api = _by_time(Api(frames.pop("api")), longest_first=True)
        gpu = _with_launches(_by_time(Gpu(frames.pop("gpu")), longest_first=False), api)
        ops, op_tree = _nested(Ops(frames.pop("ops")))
        ranges, range_tree = _nested_ranges(Ranges(frames.pop("ranges")))
        api = api.with_columns({"op_id": _ops_of_calls(api, ops, op_tree)})
        gpu = gpu.with_columns({"op_id": _ops_of_work(gpu, api, ops)})
        ops = ops.with_columns({"forward_op": _forward_ops(ops)})
        python, frame_tree = nested_frames.result()
    return {name: table(frames[name]) for name, table in TABLES.items() if name in frames} | {
        "gpu": gpu,
        "api": api,
        "ops": _with_frames(ops, python, frame_tree),
        "ranges": _with_gpu_span(ranges, range_tree, gpu, api),
        "python": python,
        "syncs": _with_launches(Syncs(frames["syncs"]), api),
        "events": _with_launches(Events(frames["events"]), api),
    }


def _by_time(table: Timed, longest_first: bool) -> Timed:
    """Sorted by start; of rows that begin together, the longest or the shortest first."""
    return type(table)(table.stored[np.lexsort((-table.end_ns if longest_first else table.end_ns, table.start_ns))])


def _nested(table: Nested) -> tuple[Nested, Nest]:
    table = type(table)(table.stored[order_for_nesting(table.thread, table.start_ns, table.end_ns)])
    tree = _tree(table.thread, table.start_ns, table.end_ns)
    return table.with_columns({"parent": tree.parents, "depth": tree.depths}), tree


def _tree(lanes: Int64s, starts: Int64s, ends: Int64s) -> Nest:
    return nest(lanes, starts, ends, ROUNDED_TWICE * clock_tick_ns(starts, ends))


def _nested_ranges(ranges: Ranges) -> tuple[Ranges, Nest]:
    """Ranges that nest come first, so that their positions are those of the tree; the others follow."""
    nests = ranges.style.equal(*NESTED_STYLES)
    inner, others = np.flatnonzero(nests), np.flatnonzero(~nests)
    inner = inner[order_for_nesting(ranges.thread[inner], ranges.start_ns[inner], filled(ranges.end_ns, NEVER)[inner])]
    others = others[np.argsort(ranges.start_ns[others], kind="stable")]
    ranges = Ranges(ranges.stored[np.append(inner, others)])
    nested = ranges[: len(inner)]
    tree = _tree(nested.thread, nested.start_ns, filled(nested.end_ns, NEVER))
    rest = np.full(len(others), NONE)
    return ranges.with_columns({"parent": np.append(tree.parents, rest), "depth": np.append(tree.depths, rest)}), tree


def _with_launches(work: Launched, api: Api) -> Launched:
    """With the API call of each row. Of several calls under one correlation id, the innermost (last begun) counts."""
    process = _launching_process(work, api)
    calls = np.flatnonzero(api.correlation > 0)
    found = last_match((api.process[calls], api.correlation[calls]), (process, work.correlation))
    return work.with_columns({"process": process, "api_id": np.append(calls, NONE)[found]})


def _launching_process(work: Launched, api: Api) -> Int64s:
    """Kineto does not record the launching process: it is the only one, or the only one with that correlation."""
    processes = np.unique(api.process[api.process != NONE])
    if len(processes) == 1:
        return filled(work.process, int(processes[0]))
    pairs = combinations(api.correlation, api.process)[0]
    correlations, count = np.unique(api.correlation[pairs], return_counts=True)
    owned = pairs[np.isin(api.correlation[pairs], correlations[(count == 1) & (correlations != NONE)])]
    owner = np.append(api.process[owned], NONE)[last_match((api.correlation[owned],), (work.correlation,))]
    return np.where(work.process == NONE, owner, work.process)


def _by_external_id(asked: Int64s, ops: Ops) -> Int64s:
    """Row of the first op with the same External id, or NONE."""
    known = np.flatnonzero(ops.external_id > 0)[::-1]
    return np.append(known, NONE)[last_match((ops.external_id[known],), (asked,))]


def _ops_of_calls(api: Api, ops: Ops, tree: Nest) -> Int64s:
    """The op with the call's External id if it was running then on that thread, else the innermost one around it."""
    around = tree.innermost(api.thread, api.start_ns)
    named = _by_external_id(api.external_id, ops)
    rows = np.flatnonzero(named != NONE)
    calls, of = api[rows], ops[named[rows]]
    plausible = (
        (of.thread == calls.thread)
        & (of.start_ns - CLOCK_SLACK_NS <= calls.start_ns)
        & (calls.start_ns <= of.end_ns + CLOCK_SLACK_NS)
    )
    around[rows[plausible]] = named[rows[plausible]]
    return around


def _ops_of_work(gpu: Gpu, api: Api, ops: Ops) -> Int64s:
    """Through the launching call; without one, the op of the External id if it began before the work."""
    named = _by_external_id(gpu.external_id, ops)
    usable = (gpu.api_id == NONE) & (named != NONE) & (np.append(ops.start_ns, NEVER)[named] <= gpu.start_ns)
    return np.where(usable, named, np.append(api.op_id, NONE)[gpu.api_id])


def _forward_ops(ops: Ops) -> Int64s:
    """The forward op of each backward op: the last one begun with the same autograd sequence number.

    Several nested forward ops carry one number; the node was made by the last of them.
    """
    is_backward = ops.forward_thread > 0
    backward, forward = (np.flatnonzero((ops.sequence >= 0) & which) for which in (is_backward, ~is_backward))
    forward = forward[np.argsort(ops.start_ns[forward], kind="stable")]
    result = np.full(len(ops), NONE, np.int64)
    result[backward] = np.append(forward, NONE)[last_match((ops.sequence[forward],), (ops.sequence[backward],))]
    return result


def _with_gpu_span(ranges: Ranges, tree: Nest, gpu: Gpu, api: Api) -> Ranges:
    """With the first and last GPU operation launched within each nested range."""
    launched = gpu[gpu.api_id != NONE]
    calls = api[launched.api_id]
    around = tree.innermost(calls.thread, calls.start_ns)
    first = least_of(len(ranges) + 1, around, launched.start_ns)
    last = greatest_of(len(ranges) + 1, around, launched.end_ns)
    count = len(tree.starts)
    spread_to_parents(tree.parents, tree.depths, first[:count], last[:count])
    first[first == NEVER] = last[last == LONG_AGO] = NONE
    return ranges.with_columns(
        {
            "gpu_start_ns": np.where(ranges.gpu_start_ns != NONE, ranges.gpu_start_ns, first[:-1]),
            "gpu_end_ns": np.where(ranges.gpu_end_ns != NONE, ranges.gpu_end_ns, last[:-1]),
        }
    )


def _nested_frames(frame: pl.DataFrame) -> tuple[Python, Nest]:
    """The program's frames: what warpline does inside the program is never evidence about the program."""
    python = Python(frame)
    own = python.name.like(OWN_FRAME)
    if own.any():
        python = Python(frame.filter(~_of_warpline(python, own)))
    python, tree = _nested(python)
    return python.with_columns({"module": python.name.renamed(_module)}), tree


def _module(frame: str) -> str | None:
    """The name of the module that a frame runs."""
    return frame.removeprefix(MODULE_FRAME) if frame.startswith(MODULE_FRAME) else None


def _of_warpline(python: Python, own: Bools) -> Bools:
    """The frames of `warpline.capture`, given as `own`, and what they call for themselves; its watching thread."""
    gone, starting = own.copy(), python.name.like(THREAD_START)
    working = own & ~python.name.like(WRAPPER_FRAME)
    for _, rows in grouped(np.arange(len(python)), python.thread):
        spans = union(python.start_ns[rows[working[rows]]], python.end_ns[rows[working[rows]]])
        slot = np.searchsorted(spans.starts, python.start_ns[rows], side="right") - 1
        gone[rows] |= (slot >= 0) & (python.end_ns[rows] <= np.append(spans.ends, 0)[slot])
        if own[rows].any() and (gone[rows] | starting[rows]).all():
            gone[rows] = True
    return gone


def _with_frames(ops: Ops, python: Python, tree: Nest) -> Ops:
    """With the innermost Python frame and the innermost nn.Module around each op."""
    innermost = tree.innermost(ops.thread, ops.start_ns)
    module = np.append(nearest_marked(tree.parents, python.module.codes != NONE), NONE)[innermost]
    return ops.with_columns({"frame": innermost, "module": python.module.at(module)})
