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
from msgspec.structs import replace

from warpline.analyses.op_calls import OpCalls
from warpline.analyses.thread_events import OP, ThreadEvents
from warpline.kernels import identify
from warpline.trace.arrays import NONE, Int64s
from warpline.trace.nesting import nest
from warpline.trace.schema import Gpu, Ops, conform
from warpline.trace.trace import Trace
from warpline.work.parse import json_list

WITH_SIZES = r"^[^,]+(, seq = -?\d+)?(, op_id = \d+)?, sizes = \["
_PARTS = re.compile(r"^(?P<name>[^,]+)(?:, (?:seq = -?\d+|op_id = \d+))*, sizes = (?P<sizes>\[[\d\[\], -]*\])")
_TYPES = {"f16": "c10::Half", "bf16": "c10::BFloat16", "f32": "float", "tf32": "float", "f64": "double"}
"""The type that Kineto records, by the type in a kernel's name."""


def nvtx_ops(trace: Trace) -> tuple[OpCalls, Int64s] | None:
    """The ops that ranges name, and for each row of `gpu` its op there, or NONE; None without such ranges."""
    found = _named_ops(trace)
    return None if found is None else (OpCalls(replace(trace, ops=Ops(found[0]))), found[1])


def with_nvtx_ops(trace: Trace) -> Trace | None:
    """The trace with the ops that its ranges name instead of these ranges; None without any.

    Ids of ranges are not those of the trace.
    """
    found = _named_ops(trace)
    if found is None:
        return None
    ops, around = found
    launched_by = pl.Series(around, dtype=pl.Int64).replace(NONE, None).cast(pl.UInt32)
    return replace(
        trace,
        ops=Ops(ops),
        ranges=trace.ranges[~trace.ranges.name.like(WITH_SIZES)],
        gpu=Gpu(trace.gpu.stored.with_columns(op_id=launched_by)),
    )


def _named_ops(trace: Trace) -> tuple[pl.DataFrame, Int64s] | None:
    """The ops as a table, and for each row of `gpu` the op around its launch."""
    ranges, api = trace.ranges, trace.api
    events = ThreadEvents.of((OP, ranges, ranges.name.like(WITH_SIZES))).in_order()
    if not len(events):
        return None
    tree = nest(events.thread, events.start_ns, events.end_ns)
    calls = trace.gpu.api_id
    around = tree.innermost(np.append(api.thread, NONE)[calls], np.append(api.start_ns, NONE)[calls])
    parsed = [_parsed(text) for text in events.name.texts]
    types = _types(trace, around, len(parsed))
    ops = pl.DataFrame(
        {
            "name": [name for name, _ in parsed],
            "thread": tree.lanes,
            "start_ns": tree.starts,
            "end_ns": tree.ends,
            "parent": pl.Series(tree.parents).replace(NONE, None),
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
    types = trace.gpu.name.renamed(lambda name: _TYPES.get(identify(name).dtype.a or "", "")).texts
    result = [""] * count
    for row in np.flatnonzero((around != NONE) & trace.gpu.kind.equal("kernel")).tolist():
        result[around[row]] = result[around[row]] or types[row]
    return result


def _argument_type(size: Any, kind: str) -> str:
    if not isinstance(size, list) or not size:
        return "Scalar"
    return "TensorList" if isinstance(size[0], list) else kind
