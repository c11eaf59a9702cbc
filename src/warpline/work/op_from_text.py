"""An op written by hand, such as `mm 8192x8192x8192`: its minimum work, from the models that a trace's ops use."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod

from msgspec import Struct

from warpline.errors import UsageError
from warpline.work.dtypes import SIZES
from warpline.work.model import Argument, OpCall, Tensor, Work
from warpline.work.registry import work_of

_SUFFIXES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_MAX_ELEMENTS = 1 << 48

Sizes = tuple[int, ...]


class Form(Struct, frozen=True):
    """How the sizes of an op are written, and the tensors that they mean."""

    dimensions: str
    """What the sizes are, for messages."""
    count: int | None
    """How many there are; None for any number."""
    op: str
    tensors: Callable[[Sizes], tuple[Sizes, ...]]
    repeats_one: bool = False
    """Whether a single size stands for all of them."""


def _by_element(op: str, operands: int) -> Form:
    return Form("elements, or the sizes of the tensor", None, op, lambda sizes: (sizes,) * operands)


def _rows(op: str, weights: int) -> Form:
    return Form("rows x columns, or the sizes of the tensor", None, op, lambda sizes: (sizes, *[sizes[-1:]] * weights))


FORMS = {
    "mm": Form("M x N x K", 3, "aten::mm", lambda s: ((s[0], s[2]), (s[2], s[1])), repeats_one=True),
    "bmm": Form("batch x M x N x K", 4, "aten::bmm", lambda s: ((s[0], s[1], s[3]), (s[0], s[3], s[2]))),
    "attention": Form(
        "batch x heads x length x head dimension", 4, "aten::scaled_dot_product_attention", lambda s: (s, s, s)
    ),
    "softmax": _rows("aten::_softmax", 0),
    "layer_norm": _rows("aten::native_layer_norm", 0),
    "rms_norm": _rows("aten::_fused_rms_norm", 0),
    **{name: _by_element(f"aten::{name}", 1) for name in ("relu", "gelu", "silu", "sigmoid", "tanh", "exp", "neg")},
    **{name: _by_element(f"aten::{name}", 2) for name in ("add", "sub", "mul", "div")},
    "copy": _by_element("aten::abs", 1),
}
"""Ops that can be written, by name. A copy moves what any op of one operand moves."""
NO_ARITHMETIC = {"copy"}


def work_of_text(text: str, dtype: str) -> Work:
    """The minimum work of an op such as `mm 8192x8192x8192` on tensors of this type.

    >>> work_of_text("mm 4096", "bf16").matrix_flops
    137438953472
    """
    name, _, sizes = text.strip().partition(" ")
    form = FORMS.get(name)
    if form is None:
        if _size(re.split(r"[x×,]", name)[0]):
            raise UsageError("no-op", f"{text!r} has sizes and no op", f'write an op before them: "mm {name}"')
        raise UsageError("unknown-op", f"there is no op {name!r} to write", f"one of {', '.join(FORMS)}")
    shapes = form.tensors(_sizes(text, name, sizes, form))
    stored = "fp32" if dtype == "tf32" else dtype
    if stored not in SIZES:
        raise UsageError("bad-dtype", f"no data type is called {dtype!r}", "bf16, fp16, tf32, fp32, fp64, fp8 or int8")
    call = OpCall(form.op, tuple(Argument(stored, Tensor(shape, stored)) for shape in shapes))
    work = work_of(call)
    if work is None:
        raise UsageError("bad-shape", f"{text!r} has no work that can be counted", f"write {name} {form.dimensions}")
    if name in NO_ARITHMETIC:
        return Work("copy", (), work.read_bytes, work.written_bytes)
    return work


def _sizes(text: str, name: str, sizes: str, form: Form) -> Sizes:
    parts = [_size(part) for part in re.split(r"[x×,]", sizes.strip(), flags=re.IGNORECASE)]
    if form.repeats_one and len(parts) == 1:
        parts *= form.count or 1
    known = [part for part in parts if part]
    if len(known) != len(parts) or len(parts) != (form.count or len(parts)) or prod(known) > _MAX_ELEMENTS:
        raise UsageError("bad-shape", f"{text!r} is not a valid shape", f"write {name} {form.dimensions}")
    return tuple(known)


def _size(text: str) -> int | None:
    match = re.fullmatch(r"(\d{1,15})([KMG]?)", text.strip().upper())
    return int(match[1]) * _SUFFIXES[match[2]] if match else None
