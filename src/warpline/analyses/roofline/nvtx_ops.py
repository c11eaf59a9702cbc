"""Ops from the ranges that `torch.autograd.profiler.emit_nvtx(record_shapes=True)` writes, for profiles of nsys.

A range is `aten::mm, seq = 3, op_id = 12, sizes = [[8, 4], [4, 2]]`. Types are not written: they are taken from the
name of the kernel that the op launched.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import polars as pl

from warpline.analyses.op_calls import OpCalls
from warpline.kernels import identify
from warpline.trace.arrays import NONE, Int64s, ids, integers
from warpline.trace.names import matches, rows_like, texts
from warpline.trace.nesting import nest, order_for_nesting
from warpline.trace.schema import conform
from warpline.trace.trace import Trace
from warpline.work.parse import json_list

WITH_SIZES = r"^[^,]+(, seq = -?\d+)?(, op_id = \d+)?, sizes = \["
_PARTS = re.compile(r"^(?P<name>[^,]+)(?:, (?:seq = -?\d+|op_id = \d+))*, sizes = (?P<sizes>\[[\d\[\], -]*\])")
_TYPES = {"f16": "c10::Half", "bf16": "c10::BFloat16", "f32": "float", "tf32": "float", "f64": "double"}
"""The type that Kineto records, by the type in a kernel's name."""


def nvtx_ops(trace: Trace) -> tuple[OpCalls, Int64s] | None:
    """The ops that ranges name, and for each row of `gpu` its op there, or NONE; None without such ranges."""
    found = _named_ops(trace)
    return None if found is None else (OpCalls(trace.replaced({"ops": found[0]}, None)), found[1])


def with_nvtx_ops(trace: Trace) -> Trace | None:
    """The trace with the ops that its ranges name instead of these ranges; None without any.

    Ids of ranges are not those of the trace.
    """
    found = _named_ops(trace)
    if found is None:
        return None
    ops, around = found
    others = trace.stored("ranges").filter(~matches(trace.stored("ranges")["name"], WITH_SIZES))
    tables = {"ops": ops, "ranges": others, "gpu": trace.stored("gpu").with_columns(op_id=ids(around))}
    return trace.replaced(tables, trace.chosen_steps)


def _named_ops(trace: Trace) -> tuple[pl.DataFrame, Int64s] | None:
    ranges = trace.stored("ranges")
    wanted = rows_like(ranges, WITH_SIZES) & ranges["end_ns"].is_not_null().to_numpy()
    rows = np.flatnonzero(wanted & ranges["thread"].is_not_null().to_numpy())
    if not len(rows):
        return None
    lanes, starts, ends = (integers(ranges[name])[rows] for name in ("thread", "start_ns", "end_ns"))
    order = order_for_nesting(lanes, starts, ends)
    tree = nest(lanes[order], starts[order], ends[order])
    calls, api = trace.gpu.api_id, trace.stored("api")
    threads, moments = (np.append(integers(api[name]), NONE)[calls] for name in ("thread", "start_ns"))
    around = tree.innermost(threads, moments)
    parsed = [_parsed(text) for text in texts(ranges["name"])[rows[order]].tolist()]
    types = _types(trace, around, len(parsed))
    ops = pl.DataFrame(
        {
            "name": [name for name, _ in parsed],
            "thread": tree.lanes,
            "start_ns": tree.starts,
            "end_ns": tree.ends,
            "parent": pl.Series(
                [None if parent == NONE else parent for parent in tree.parents.tolist()], dtype=pl.UInt32
            ),
            "shapes": [json.dumps(sizes) for _, sizes in parsed],
            "dtypes": [
                json.dumps([_argument_type(size, kind) for size in sizes])
                for (_, sizes), kind in zip(parsed, types, strict=True)
            ],
        }
    )
    return conform("ops", ops), around


def _parsed(text: str) -> tuple[str, list[Any]]:
    found = _PARTS.match(text)
    return (found["name"], json_list(found["sizes"])) if found else (text, [])


def _types(trace: Trace, around: Int64s, count: int) -> list[str]:
    """The type of each op's first kernel whose name shows one."""
    names, kinds = trace.gpu.name.texts, trace.gpu.kind.texts
    result = [""] * count
    for row in np.flatnonzero((around != NONE) & (kinds == "kernel")).tolist():
        op = int(around[row])
        result[op] = result[op] or _TYPES.get(identify(names[row]).dtype.a or "", "")
    return result


def _argument_type(size: Any, kind: str) -> str:
    if not isinstance(size, list) or not size:
        return "Scalar"
    return "TensorList" if isinstance(size[0], list) else kind
