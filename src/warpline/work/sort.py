"""Sorting and searching. The minimum is keys in, sorted keys and indices out; the passes are extra bytes."""

from __future__ import annotations

from warpline.work.model import OpCall, Unknowable, Work
from warpline.work.registry import model
from warpline.work.shapes import dense_bytes, size_at, total_bytes

FAMILY = "sort"
DIGIT_BITS = 8
"""Bits per pass of a radix sort (CUB's)."""
SORTED_AT_ONCE = 4096
"""Rows up to this length are sorted by one block in one pass (ATen/native/cuda/Sort.cpp)."""
PLACE_BYTES = 8
SEARCHED = "the cached share of the searched data was not recorded"


def radix_bytes(keys: int, key_bytes: int, bits: int) -> int:
    """Bytes that a radix sort of keys with their indices moves: both are read and written in every pass."""
    return -(-bits // DIGIT_BITS) * keys * 2 * (key_bytes + PLACE_BYTES)


@model("aten::sort", "aten::argsort", "aten::msort")
def sort(call: OpCall) -> Work:
    """sort(x, dim, descending) or sort(x, stable, dim, descending): values and indices."""
    x = call.tensor(0)
    values = 0 if call.name == "aten::argsort" else x.dense_bytes
    places = 0 if call.name == "aten::msort" else dense_bytes(x.shape, "int64")
    dim = 0 if call.name == "aten::msort" else call.integer(1, call.integer(2, -1))
    sweeps = size_at(x.shape, dim) > SORTED_AT_ONCE
    passes = radix_bytes(x.elements, x.item_bytes, 8 * x.item_bytes) if sweeps else 0
    return Work(FAMILY, (), x.bytes, values + places, extra_bytes=max(0, passes - x.bytes - values - places))


@model("aten::topk", "aten::kthvalue")
def topk(call: OpCall) -> Work:
    """topk(x, k, dim, …): k values and indices of each row, which is read once per digit of its keys."""
    x, k = call.tensor(0), call.integer(1)
    rows = x.elements // max(1, size_at(x.shape, call.integer(2, -1)))
    results = rows * (k if call.name == "aten::topk" else 1)
    if k < 0:
        raise Unknowable("k was not recorded")
    return Work(FAMILY, (), x.bytes, results * (x.item_bytes + 8), extra_bytes=(x.item_bytes - 1) * x.bytes)


@model("aten::unique", "aten::_unique", "aten::_unique2", "aten::unique_consecutive", "aten::unique_dim")
def unique(call: OpCall) -> Work:
    """unique(x): the number of remaining values was not recorded."""
    return Work(FAMILY, (), call.tensor(0).bytes, 0, estimate="the number of remaining values was not recorded")


@model("aten::searchsorted", "aten::bucketize")
def search(call: OpCall) -> Work:
    """searchsorted(sorted, values); bucketize(values, boundaries): one index per value."""
    first, second = call.tensor(0), call.tensor(1)
    values = first if call.name == "aten::bucketize" else second
    return Work(FAMILY, (), total_bytes((first, second)), dense_bytes(values.shape, "int64"), estimate=SEARCHED)


@model("aten::bincount", "aten::histc", "aten::_histogramdd_bin_edges")
def histogram(call: OpCall) -> Work:
    """histc(x, bins, …): x must at least be read."""
    return Work(FAMILY, (), total_bytes(call.all_tensors()), 8 * max(0, call.integer(1, 0)))
