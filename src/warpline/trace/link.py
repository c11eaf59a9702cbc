"""Links the tables of a trace: range -> op -> API call -> GPU operation, and forward -> backward.

Joins are by (process, correlation). A GPU row without a launch keeps its place with a null `api_id`.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import polars as pl

from warpline.library_names import OWN_FRAME
from warpline.trace.arrays import NONE, Int64s, ids, integers
from warpline.trace.lookup import Lookup, pair_keys
from warpline.trace.names import Names
from warpline.trace.nesting import (
    ROUNDED_TWICE,
    Nest,
    clock_tick_ns,
    nearest_marked,
    nest,
    sort_for_nesting,
    spread_to_parents,
)
from warpline.trace.own_frames import without_own_frames

Tables = dict[str, pl.DataFrame]

CLOCK_SLACK_NS = 100_000
"""CUPTI's clock and the framework's are converted into each other only approximately: an API call may seem to
begin this long before the op that makes it, or end after it. Observed up to tens of microseconds."""

NESTED_STYLES = ("pushpop", "annotation")
FAR = np.iinfo(np.int64).max // 4
UNKNOWN_PROCESS = int(np.iinfo(np.int64).min)
"""Stands for null among process ids, which may be negative in a Kineto file."""
MODULE_PREFIX = "nn.Module: "


def link(tables: Tables) -> None:
    """Sort and link the tables in place. All columns of the schema must exist."""
    # Frames are most of a trace with stacks; they are nested on a second core while the rest is linked.
    with ThreadPoolExecutor(1) as second_core:
        nested_frames = second_core.submit(_nested_frames, tables.pop("python"))
        _link_calls(tables)
        python, frames = nested_frames.result()
        del nested_frames
    tables["python"] = python
    tables["ops"] = _with_frames(tables["ops"], python, frames)


def _nested_frames(table: pl.DataFrame) -> tuple[pl.DataFrame, Nest]:
    names = Names(table["name"])
    own = names.like(OWN_FRAME)
    if own.any():
        return _nested_frames(without_own_frames(table, own))
    return _nested(table.with_columns(module=_module_names(names)) if len(table) else table)


def _link_calls(tables: Tables) -> None:
    """Everything but the Python frames."""
    api = _by_time(tables.pop("api"), longest_first=True)
    tables["gpu"] = _with_process(_by_time(tables.pop("gpu"), longest_first=False), api)
    tables["ops"], ops = _nested(tables.pop("ops"))
    tables["ranges"], ranges = _nested_ranges(tables["ranges"])
    for name in ("syncs", "events"):
        tables[name] = _with_process(tables[name], api)
    for name in ("gpu", "syncs", "events"):
        tables[name] = tables[name].with_columns(api_id=_launches(tables[name], api))
    by_id = _external_ids(tables["ops"])
    tables["api"] = api.with_columns(op_id=_ops_of_calls(api, by_id, ops))
    tables["gpu"] = tables["gpu"].with_columns(op_id=_ops_of_work(tables["gpu"], tables["api"], by_id, ops))
    tables["ops"] = tables["ops"].with_columns(forward_op=_forward_ops(tables["ops"]))
    tables["ranges"] = _with_gpu_span(tables, ranges)


def _by_time(table: pl.DataFrame, longest_first: bool) -> pl.DataFrame:
    """Sorted by start; of rows that begin together, the longest or the shortest first."""
    starts, ends = integers(table["start_ns"]), integers(table["end_ns"])
    order = sort_for_nesting(np.zeros_like(starts), starts, ends if longest_first else -ends)
    return table if order is None else table[order]


def _nested(table: pl.DataFrame) -> tuple[pl.DataFrame, Nest]:
    if not len(table):
        return table, Nest(*(np.empty(0, np.int64) for _ in range(5)))
    lanes, starts, ends = (integers(table[name]) for name in ("thread", "start_ns", "end_ns"))
    order = sort_for_nesting(lanes, starts, ends)
    if order is not None:
        table = table[order]
        lanes, starts, ends = (integers(table[name]) for name in ("thread", "start_ns", "end_ns"))
    tree = nest(lanes, starts, ends, ROUNDED_TWICE * clock_tick_ns(starts, ends))
    return table.with_columns(parent=ids(tree.parents), depth=pl.Series(tree.depths).cast(pl.UInt16)), tree


def _nested_ranges(table: pl.DataFrame) -> tuple[pl.DataFrame, Nest]:
    """Ranges that nest come first, so that their positions are those of the tree; the others follow."""
    if not len(table):
        return _nested(table)
    nests = pl.col("style").cast(pl.String).is_in(NESTED_STYLES).fill_null(False)
    inner, tree = _nested(table.filter(nests).with_columns(pl.col("end_ns").fill_null(FAR)))
    inner = inner.with_columns(pl.when(pl.col("end_ns") == FAR).then(None).otherwise(pl.col("end_ns")).alias("end_ns"))
    others = table.filter(~nests).sort("start_ns", maintain_order=True)
    return pl.concat([inner, others]), tree


def _with_process(work: pl.DataFrame, api: pl.DataFrame) -> pl.DataFrame:
    """Kineto does not record the launching process: it is the only one, or the only one with that correlation."""
    if work["process"].null_count() == 0:
        return work
    processes = api["process"].drop_nulls().unique()
    if len(processes) == 1:
        return work.with_columns(pl.col("process").fill_null(processes[0]))
    owners = api.group_by("correlation").agg(owner=pl.col("process").unique()).filter(pl.col("owner").list.len() == 1)
    owned = work.join(
        owners.with_columns(pl.col("owner").list.first()), on="correlation", how="left", maintain_order="left"
    )
    return owned.with_columns(pl.coalesce("process", "owner").alias("process")).drop("owner")


def _launches(work: pl.DataFrame, api: pl.DataFrame) -> pl.Series:
    """The API call of each row. Of several calls under one correlation id, the innermost (last begun) counts."""
    if not len(work):
        return ids(np.empty(0, np.int64))
    correlations = integers(api["correlation"])
    calls = np.flatnonzero(correlations > 0)
    keys, asked = pair_keys(
        integers(api["process"], UNKNOWN_PROCESS)[calls],
        correlations[calls],
        integers(work["process"], UNKNOWN_PROCESS),
        integers(work["correlation"]),
    )
    return ids(Lookup.last(keys, calls).find(asked))


def _by_external_id(table: pl.DataFrame, ops: Lookup) -> Int64s:
    """Row of the op with the same External id, or NONE."""
    return ops.find(integers(table["external_id"]))


def _external_ids(ops: pl.DataFrame) -> Lookup:
    numbers = integers(ops["external_id"])
    known = np.flatnonzero(numbers > 0)
    return Lookup.first(numbers[known], known)


def _ops_of_calls(api: pl.DataFrame, by_id: Lookup, tree: Nest) -> pl.Series:
    """The op with the call's External id if it was running then on that thread, else the innermost one around it."""
    threads, starts = integers(api["thread"]), integers(api["start_ns"])
    around = tree.innermost(threads, starts)
    named = _by_external_id(api, by_id)
    candidates = np.flatnonzero(named != NONE)
    of = named[candidates]
    plausible = (
        (tree.lanes[of] == threads[candidates])
        & (tree.starts[of] - CLOCK_SLACK_NS <= starts[candidates])
        & (starts[candidates] <= tree.ends[of] + CLOCK_SLACK_NS)
    )
    around[candidates[plausible]] = of[plausible]
    return ids(around)


def _ops_of_work(gpu: pl.DataFrame, api: pl.DataFrame, by_id: Lookup, tree: Nest) -> pl.Series:
    """Through the launching call; without one, the op of the External id if it began before the work."""
    calls = integers(gpu["api_id"])
    by_call = np.append(integers(api["op_id"]), NONE)[calls]
    named = _by_external_id(gpu, by_id)
    op_starts = np.append(tree.starts, FAR)
    usable = (calls == NONE) & (named != NONE) & (op_starts[named] <= integers(gpu["start_ns"]))
    return ids(np.where(usable, named, by_call))


def _module_names(names: Names) -> pl.Series:
    """The name of the module that each frame runs; null for other frames."""
    stripped = names.names.str.strip_prefix(MODULE_PREFIX)
    modules = stripped.set(~names.names.str.starts_with(MODULE_PREFIX), None).cast(pl.Categorical)
    return modules.extend_constant(None, 1).gather(names.which)


def _with_frames(ops: pl.DataFrame, python: pl.DataFrame, frames: Nest) -> pl.DataFrame:
    """Innermost Python frame and innermost nn.Module around each op."""
    if not len(python):
        return ops
    innermost = frames.innermost(integers(ops["thread"]), integers(ops["start_ns"]))
    is_module = python["module"].is_not_null().to_numpy()
    module = np.append(nearest_marked(frames.parents, is_module), NONE)[innermost]
    return ops.with_columns(frame=ids(innermost), module=python["module"].gather(ids(module)))


def _forward_ops(ops: pl.DataFrame) -> pl.Series:
    """The forward op of each backward op: the last one begun with the same autograd sequence number.

    Several nested forward ops carry one number; the node was made by the last of them.
    """
    sequences, starts = integers(ops["sequence"]), integers(ops["start_ns"])
    is_backward = integers(ops["forward_thread"]) > 0
    backward, forward = (np.flatnonzero((sequences >= 0) & which) for which in (is_backward, ~is_backward))
    forward = forward[np.argsort(starts[forward], kind="stable")]
    result = np.full(len(ops), NONE, np.int64)
    result[backward] = Lookup.last(sequences[forward], forward).find(sequences[backward])
    return ids(result)


def _with_gpu_span(tables: Tables, tree: Nest) -> pl.DataFrame:
    """First and last GPU operation launched within each nested range."""
    gpu, api, ranges = tables["gpu"], tables["api"], tables["ranges"]
    count = len(tree.starts)
    if not count or not len(gpu):
        return ranges
    calls = integers(gpu["api_id"])
    launched = np.flatnonzero(calls != NONE)
    around = tree.innermost(integers(api["thread"])[calls[launched]], integers(api["start_ns"])[calls[launched]])
    inside = launched[around != NONE]
    around = around[around != NONE]
    first, last = np.full(count, FAR), np.full(count, -FAR)
    np.minimum.at(first, around, integers(gpu["start_ns"])[inside])
    np.maximum.at(last, around, integers(gpu["end_ns"])[inside])
    spread_to_parents(tree.parents, tree.depths, first, last)
    rest = len(ranges) - count
    begin = pl.concat([_unless(first, FAR), pl.Series([None] * rest, dtype=pl.Int64)])
    end = pl.concat([_unless(last, -FAR), pl.Series([None] * rest, dtype=pl.Int64)])
    return ranges.with_columns(
        gpu_start_ns=pl.coalesce("gpu_start_ns", begin), gpu_end_ns=pl.coalesce("gpu_end_ns", end)
    )


def _unless(values: Int64s, missing: int) -> pl.Series:
    series = pl.Series(values)
    return series.set(series == missing, None)
