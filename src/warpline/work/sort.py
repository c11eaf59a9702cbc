"""Sorting and searching. Only the unavoidable traffic is counted: keys in, sorted keys and places out."""

from __future__ import annotations

from warpline.work.model import OpCall, Unknowable, Work
from warpline.work.registry import model
from warpline.work.shapes import dense_bytes, size_at, total_bytes

FAMILY = "sort"


@model("aten::sort", "aten::argsort", "aten::msort")
def sort(call: OpCall) -> Work:
    """sort(x, …): values and places."""
    x = call.tensor(0)
    values = 0 if call.name == "aten::argsort" else dense_bytes(x.shape, x.dtype)
    places = 0 if call.name == "aten::msort" else dense_bytes(x.shape, "int64")
    return Work(FAMILY, (), x.bytes, values + places)


@model("aten::topk", "aten::kthvalue")
def topk(call: OpCall) -> Work:
    """topk(x, k, dim, …): k values and places of each row."""
    x, k = call.tensor(0), call.integer(1)
    rows = x.elements // max(1, size_at(x.shape, call.integer(2, -1)))
    kept = rows * (k if call.name == "aten::topk" else 1)
    if k < 0:
        raise Unknowable("k was not recorded")
    return Work(FAMILY, (), x.bytes, kept * (x.item_bytes + 8))


@model("aten::unique", "aten::_unique", "aten::_unique2", "aten::unique_consecutive", "aten::unique_dim")
def unique(call: OpCall) -> Work:
    """unique(x): how many remain was not recorded."""
    return Work(FAMILY, (), call.tensor(0).bytes, 0, estimate="how many values remain was not recorded")


@model("aten::searchsorted", "aten::bucketize")
def search(call: OpCall) -> Work:
    """searchsorted(sorted, values); bucketize(values, boundaries): a place for each value."""
    first, second = call.tensor(0), call.tensor(1)
    values = first if call.name == "aten::bucketize" else second
    return Work(FAMILY, (), total_bytes((first, second)), dense_bytes(values.shape, "int64"))


@model("aten::bincount", "aten::histc", "aten::_histogramdd_bin_edges")
def histogram(call: OpCall) -> Work:
    """histc(x, bins, …): reading x is what must be done."""
    return Work(FAMILY, (), total_bytes(call.all_tensors()), 8 * max(0, call.integer(1, 0)))
