"""Shapes and types of the results of an op, inferred from its inputs: a profile records only inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from warpline.trace.arrays import NONE
from warpline.work.dtypes import promote
from warpline.work.model import OpCall


class Key(NamedTuple):
    """What a profile records of a tensor."""

    shape: tuple[int, ...]
    dtype: str


PRODUCTS = ("mm", "bmm", "matmul", "mv", "linear", "addmm", "baddbmm", "addmv")
COMPARISONS = (
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "isnan",
    "isinf",
    "isfinite",
    "logical_and",
    "logical_or",
    "logical_not",
)
REDUCTIONS = ("sum", "mean", "amax", "amin", "prod", "argmax", "argmin", "any", "all", "logsumexp", "max", "min")
LOSSES = ("loss", "binary_cross_entropy", "kl_div")
"""Parts of the names of ops that reduce whole tensors to a number."""
LIKE_THE_FIRST = ("layer_norm", "rms_norm", "group_norm", "batch_norm", "scatter", "scatter_add", "index_add")
UNKNOWN = ("index", "cat", "stack", "einsum", "repeat", "repeat_interleave", "tile", "pad", "masked_select", "nonzero")
"""Ops whose result shapes do not follow from their inputs."""
UNKNOWN_KINDS = ("conv", "pool", "upsample", "lstm", "gru", "rnn", "unique", "linalg", "fft", "backward")


def results_of(call: OpCall, taken: Sequence[Key]) -> list[Key] | None:
    """The results of an op for its input tensors, without numbers; None if unknown."""
    name, first = call.name.removeprefix("aten::"), taken[0]
    if name.endswith("_") or name in LIKE_THE_FIRST:
        return [first]
    if name == call.name or name in UNKNOWN or any(kind in name for kind in UNKNOWN_KINDS):
        return None
    if is_loss(name):
        return []
    if name in REDUCTIONS:
        return _reduced(call, name, first)
    if name in PRODUCTS:
        return _product(name, taken)
    if name in ("topk", "sort") and first.shape:
        shape = (*first.shape[:-1], call.integer(1, first.shape[-1])) if name == "topk" else first.shape
        return [Key(shape, first.dtype), Key(shape, "int64")]
    if name in ("to", "_to_copy"):
        return [Key(first.shape, call.dtype(1, first.dtype))]
    if len(taken) > 1 and first.shape and name in ("embedding", "gather", "index_select"):
        return [Key(_looked_up(call, name, first.shape, taken[1].shape), first.dtype)]
    if len(taken) > 2 and taken[2].shape and name == "scaled_dot_product_attention":
        return [Key((*first.shape[:-1], taken[2].shape[-1]), first.dtype)]
    shape_of_all = _broadcast([key.shape for key in taken])
    if shape_of_all is None:
        return None
    return [Key(shape_of_all, "bool" if name in COMPARISONS else promote(key.dtype for key in taken))]


def is_loss(name: str) -> bool:
    """Whether an op is a loss."""
    return any(kind in name for kind in LOSSES)


def _product(name: str, taken: Sequence[Key]) -> list[Key] | None:
    factors = taken[1:3] if name.startswith(("add", "badd")) else taken[:2]
    if len(factors) < 2:
        return None
    (left, dtype), (right, _) = factors
    if name == "linear" and right:
        return [Key((*left[:-1], right[0]), dtype)]
    ahead = left[:-2] if len(left) >= len(right) else right[:-2]
    return [Key((*ahead, *left[-2:-1], *right[-1:]) if len(right) > 1 else left[:-1], dtype)]


def _reduced(call: OpCall, name: str, first: Key) -> list[Key]:
    """The shape after a reduction; a maximum along a dimension also gives indices."""
    dims = call.integers(1) or tuple(dim for dim in [call.integer(1, NONE - len(first.shape))] if call.text(1))
    gone = {dim % len(first.shape) for dim in dims if -len(first.shape) <= dim < len(first.shape)}
    if not gone:
        return []
    shape = tuple(
        1 if axis in gone else size for axis, size in enumerate(first.shape) if axis not in gone or call.flag(2)
    )
    dtype = {"argmax": "int64", "argmin": "int64", "any": "bool", "all": "bool"}.get(name, first.dtype)
    found = [Key(shape, dtype), Key(shape, "int64")] if name in ("max", "min") else [Key(shape, dtype)]
    return found if shape else []


def _looked_up(call: OpCall, name: str, table: tuple[int, ...], index: tuple[int, ...]) -> tuple[int, ...]:
    if name == "embedding":
        return (*index, table[-1])
    if name == "gather":
        return index
    axis = call.integer(1, 0) % len(table)
    return (*table[:axis], *index, *table[axis + 1 :])


def _broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    """The broadcast shape; None if the shapes cannot be broadcast."""
    result: list[int] = []
    for position in range(1, max(map(len, shapes)) + 1):
        sizes = {shape[-position] for shape in shapes if len(shape) >= position} - {1}
        if len(sizes) > 1:
            return None
        result.append(sizes.pop() if sizes else 1)
    return tuple(reversed(result))
