"""Copies and fills: data is written to another place, layout or type."""

from __future__ import annotations

from math import prod

from warpline.work.model import OpCall, Unknowable, Work, vector_steps
from warpline.work.registry import model
from warpline.work.shapes import dense_bytes, resized, total_bytes, typed

FAMILY = "copy"
FILL = "fill"


@model("aten::copy", "aten::_copy_from", "aten::_copy_from_and_resize")
def copy(call: OpCall) -> Work:
    """copy_(target, source): types may differ, and the source may broadcast."""
    target, source = call.tensor(0), call.tensor(1)
    return Work(FAMILY, (), source.bytes, target.dense_bytes)


@model(
    "aten::clone",
    "aten::contiguous",
    "aten::_reshape_copy",
    "aten::flip",
    "aten::roll",
    "aten::rot90",
    "aten::permute_copy",
    "aten::transpose_copy",
    "aten::view_copy",
    "aten::expand_copy",
    "aten::pixel_shuffle",
    "aten::pixel_unshuffle",
    "aten::channel_shuffle",
    "aten::reflection_pad1d_backward",
    "aten::split_with_sizes_copy",
    "aten::split_copy",
    "aten::unbind_copy",
)
def same_again(call: OpCall) -> Work:
    """clone(x): as many bytes written as read."""
    x = call.tensor(0)
    return Work(FAMILY, (), x.bytes, x.dense_bytes)


@model("aten::tril", "aten::triu")
def triangle(call: OpCall) -> Work:
    """tril(x): half is read, all is written."""
    x = call.tensor(0)
    return Work(FAMILY, (), x.bytes // 2, x.dense_bytes)


@model("aten::_to_copy", "aten::to")
def to_copy(call: OpCall) -> Work:
    """_to_copy(x, dtype, …)."""
    x = call.tensor(0)
    return Work(FAMILY, (), x.bytes, dense_bytes(x.shape, call.dtype(1, x.dtype)))


@model("aten::cat", "aten::concat", "aten::stack", "aten::_cat", "aten::hstack", "aten::vstack", "aten::_chunk_cat")
def cat(call: OpCall) -> Work:
    """cat([a, b, …], dim): empty tensors are skipped. The items' type comes from the kernel."""
    items = typed(call.tensors(0), call)
    moved = sum(item.dense_bytes for item in items)
    return Work(FAMILY, (), total_bytes(items), moved)


@model("aten::repeat", "aten::tile")
def repeat(call: OpCall) -> Work:
    """repeat(x, times)."""
    x, times = call.tensor(0), call.integers(1)
    if times is None:
        raise Unknowable("the number of repeats was not recorded")
    return Work(FAMILY, (), x.bytes, x.elements * prod(times) * x.item_bytes)


@model(
    "aten::constant_pad_nd",
    "aten::reflection_pad1d",
    "aten::reflection_pad2d",
    "aten::reflection_pad3d",
    "aten::replication_pad1d",
    "aten::replication_pad2d",
    "aten::replication_pad3d",
)
def pad(call: OpCall) -> Work:
    """constant_pad_nd(x, [last before, last after, …], value)."""
    x, padding = call.tensor(0), call.integers(1)
    if padding is None or len(padding) > 2 * len(x.shape):
        raise Unknowable("the padding was not recorded")
    shape = list(x.shape)
    for position in range(len(padding) // 2):
        shape[-1 - position] += padding[2 * position] + padding[2 * position + 1]
    return Work(FAMILY, (), x.bytes, dense_bytes(shape, x.dtype))


@model(
    "aten::fill",
    "aten::zero",
    "aten::eye",
    "aten::fill_diagonal",
    "aten::zeros_like",
    "aten::ones_like",
    "aten::full_like",
)
def fill(call: OpCall) -> Work:
    """fill_(x, value); zeros_like(x): nothing is read."""
    x = call.tensor(0)
    return Work(FILL, (), 0, x.dense_bytes)


@model("aten::arange", "aten::range", "aten::linspace", "aten::logspace")
def arange(call: OpCall) -> Work:
    """arange(start, end, step, out): the output is empty when recorded, so its size comes from the limits."""
    out = next(iter(call.all_tensors()), None)
    numbers = [_number(call.text(position)) for position in range(len(call.arguments))]
    limits = [number for number in numbers if number is not None]
    if "space" in call.name:
        count = limits[2] if len(limits) > 2 else 0
    elif len(limits) >= 2:
        step = limits[2] if len(limits) > 2 and limits[2] else 1
        count = (limits[1] - limits[0]) / step
    elif limits:
        count = limits[0]
    else:
        raise Unknowable("the limits were not recorded")
    size = max(0, round(count))
    return Work(FILL, vector_steps(2 * size, "fp32"), 0, size * (out.item_bytes if out else 8))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


@model(
    "aten::upsample_nearest1d",
    "aten::upsample_nearest2d",
    "aten::upsample_nearest3d",
    "aten::upsample_bilinear2d",
    "aten::upsample_bicubic2d",
    "aten::upsample_trilinear3d",
    "aten::upsample_linear1d",
    "aten::_upsample_nearest_exact2d",
    "aten::_upsample_bilinear2d_aa",
    "aten::_upsample_bicubic2d_aa",
)
def resize(call: OpCall) -> Work:
    """upsample(x, output size, …)."""
    x, out = call.tensor(0), resized(call)
    weights = {"nearest": 1, "linear1d": 3, "bilinear": 8, "bicubic": 32, "trilinear": 16}
    steps = next((count for word, count in weights.items() if word in call.name), 1)
    return Work("resize", vector_steps(steps * prod(out), "fp32"), x.bytes, dense_bytes(out, x.dtype))


@model("aten::im2col", "aten::col2im", "aten::unfold_backward", "aten::unfold_copy")
def unfold(call: OpCall) -> Work:
    """im2col(x, …): at least x is read and written."""
    x = call.tensor(0)
    return Work(FAMILY, (), x.dense_bytes, x.dense_bytes, estimate="the size of the result was not recorded")
