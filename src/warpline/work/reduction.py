"""Reductions and scans: everything is read once; the result has the size of the remaining dimensions."""

from __future__ import annotations

from warpline.work.dtypes import as_fraction, category
from warpline.work.model import OpCall, Tensor, Work, vector_steps
from warpline.work.registry import model
from warpline.work.shapes import dense_bytes, reduced, total_bytes

FAMILY = "reduction"


def _dims(call: OpCall, position: int) -> tuple[int, ...] | None:
    """The dimensions given as a list or a number; None for all of them."""
    listed = call.integers(position)
    if listed is not None:
        return listed
    text = call.text(position)
    return (int(text),) if text.lstrip("-").isdigit() else None


def reduction(x: Tensor, dims: tuple[int, ...] | None, out_dtype: str, steps: int = 1, outputs: int = 1) -> Work:
    """The work of reducing over some dimensions."""
    written = outputs * dense_bytes(reduced(x.shape, dims), out_dtype)
    return Work(FAMILY, vector_steps(steps * x.elements, x.dtype), x.bytes, written)


@model("aten::sum", "aten::nansum", "aten::prod", "aten::mean", "aten::nanmean")
def summed(call: OpCall) -> Work:
    """sum(x, dims, keep, dtype), or sum(x, dtype): sums of integers are int64."""
    x = call.tensor(0)
    default = x.dtype if category(x.dtype) >= 2 else "int64"
    dims = _dims(call, 1) if len(call.arguments) > 2 else None
    return reduction(x, dims, call.dtype(3 if len(call.arguments) > 2 else 1, default))


@model("aten::amax", "aten::amin", "aten::logsumexp")
def extreme(call: OpCall) -> Work:
    """amax(x, dims, keep)."""
    x = call.tensor(0)
    return reduction(x, _dims(call, 1), x.dtype, steps=3 if "logsumexp" in call.name else 1)


@model("aten::max", "aten::min", "aten::median", "aten::nanmedian", "aten::mode", "aten::aminmax", "aten::_aminmax")
def extreme_with_place(call: OpCall) -> Work:
    """max(x); max(x, dim): values and their indices; max(x, y): elementwise."""
    x, other = call.tensor(0), call.maybe_tensor(1)
    if other is not None and other.shape == x.shape:
        steps = vector_steps(x.elements, x.dtype)
        return Work("elementwise", steps, total_bytes((x, other)), x.dense_bytes)
    dims = _dims(call, 1) if len(call.arguments) > 1 else None
    work = reduction(x, dims, x.dtype)
    places = dense_bytes(reduced(x.shape, dims), "int64") if dims is not None else 0
    return Work(work.model, work.flops, work.read_bytes, work.written_bytes + places)


@model("aten::argmax", "aten::argmin", "aten::count_nonzero")
def place(call: OpCall) -> Work:
    """argmax(x, dim, keep)."""
    return reduction(call.tensor(0), _dims(call, 1), "int64")


@model("aten::any", "aten::all")
def truth(call: OpCall) -> Work:
    """any(x, dim, keep)."""
    return reduction(call.tensor(0), _dims(call, 1), "bool")


@model("aten::norm", "aten::linalg_vector_norm", "aten::linalg_norm")
def norm(call: OpCall) -> Work:
    """linalg_vector_norm(x, order, dims, keep, dtype)."""
    x = call.tensor(0)
    return reduction(x, _dims(call, 2), as_fraction(x.dtype), steps=2)


@model("aten::var", "aten::std", "aten::var_mean", "aten::std_mean")
def spread(call: OpCall) -> Work:
    """var(x, dims, correction, keep), with the mean if requested."""
    x = call.tensor(0)
    return reduction(x, _dims(call, 1), x.dtype, steps=3, outputs=1 + call.name.endswith("_mean"))


@model("aten::cumsum", "aten::cumprod", "aten::logcumsumexp", "aten::_cumsum", "aten::_cumprod")
def scan(call: OpCall) -> Work:
    """cumsum(x, dim, dtype): as many elements as the input."""
    x = call.tensor(0)
    dtype = call.dtype(2, x.dtype if category(x.dtype) >= 2 else "int64")
    return Work("scan", vector_steps(x.elements, x.dtype), x.bytes, dense_bytes(x.shape, dtype))


@model("aten::cummax", "aten::cummin", "aten::_cummax_helper", "aten::_cummin_helper")
def scan_with_place(call: OpCall) -> Work:
    """cummax(x, dim): values and their indices."""
    x = call.tensor(0)
    written = x.dense_bytes + dense_bytes(x.shape, "int64")
    return Work("scan", vector_steps(x.elements, x.dtype), x.bytes, written)


@model("aten::_local_scalar_dense", "aten::item", "aten::equal", "aten::is_nonzero")
def to_host(call: OpCall) -> Work:
    """Read a value on the host; its cost is the wait, not the bytes."""
    return Work("host read", (), total_bytes(call.all_tensors()), 0)


@model("aten::_cdist_forward", "aten::cdist", "aten::_pdist_forward")
def distances(call: OpCall) -> Work:
    """cdist(a, b, p): one distance for every pair of rows."""
    left, right = call.tensor(0), call.tensor(1)
    pairs = left.elements // max(1, left.shape[-1]) * right.shape[-2]
    steps = vector_steps(3 * pairs * left.shape[-1], left.dtype)
    return Work(FAMILY, steps, total_bytes((left, right)), pairs * left.item_bytes)
