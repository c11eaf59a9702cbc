"""Inductor's fused kernels and other Triton kernels, from the arguments recorded with their launch.

Inductor names a kernel after the ops it fuses (`triton_poi_fused_mul_silu_2`); its arguments are the input and output
tensors, then the numbers of elements. Which tensors are written is not recorded, so each is counted once: a lower bound
if one is updated in place. A tensor larger than the kernel's elements is read only in part.
"""

from __future__ import annotations

import re
from math import prod

from warpline.work.model import MATRIX, Flops, OpCall, Tensor, Unknowable, Work, vector_steps
from warpline.work.registry import TRITON_PREFIX, model

FAMILY = "fusion"
ONCE = "each argument counted once: which of them are written was not recorded"
_NAME = re.compile(r"^triton_(poi|red|per|tem|for|mm|bmm|spl)_fused_(.*?)_?((?<!\d)\d*+)$")
_FREE = {
    "view",
    "reshape",
    "permute",
    "transpose",
    "t",
    "unsqueeze",
    "squeeze",
    "expand",
    "slice",
    "select",
    "split",
    "clone",
    "to",
    "copy",
    "cat",
    "stack",
    "detach",
    "alias",
    "as",
    "strided",
    "unsafe",
    "empty",
    "full",
    "zeros",
    "ones",
    "arange",
    "embedding",
    "index",
    "gather",
    "scatter",
    "lift",
    "fresh",
    "constant",
    "pad",
    "nd",
    "native",
    "backward",
    "with",
    "sizes",
    "like",
    "new",
    "convert",
    "element",
    "type",
    "prims",
    "scalar",
    "tensor",
    "sum",
}
"""Words of op names that move or rename data; the others count as one arithmetic step each."""


def fused_ops(name: str) -> list[str]:
    """The arithmetic ops in an Inductor kernel's name; empty for any other name."""
    match = _NAME.match(name)
    return [word for word in match.group(2).split("_") if word and word not in _FREE] if match else []


@model(TRITON_PREFIX)
def triton(call: OpCall) -> Work:
    """A Triton kernel recorded as an op."""
    tensors = call.all_tensors()
    if not tensors:
        raise Unknowable("the kernel's arguments were not recorded")
    match = _NAME.match(call.name)
    if match and match.group(1) == "tem":
        return _template(call, tensors)
    numels = [number for position in range(len(call.arguments)) if (number := _numel(call, position))]
    # The last numbers are xnumel, ynumel, rnumel: their product is the kernel's iteration space.
    iterated = prod(numels) if match and numels else max(tensor.elements for tensor in tensors)
    moved = sum(min(tensor.elements, iterated) * tensor.item_bytes for tensor in tensors)
    steps = len(fused_ops(call.name)) or 1
    return Work(FAMILY, vector_steps(steps * iterated, "fp32"), moved, 0, estimate=ONCE)


def _numel(call: OpCall, position: int) -> int:
    argument = call.arguments[position]
    return call.integer(position, 0) if argument.tensor is None and argument.text.isdigit() else 0


def _template(call: OpCall, tensors: list[Tensor]) -> Work:
    """A Triton matmul template: two operands and a result whose sizes match."""
    matrices = [tensor for tensor in tensors if len(tensor.shape) >= 2]
    for left in matrices:
        for right in matrices:
            if left is right or left.shape[-1] != right.shape[-2]:
                continue
            wanted = (left.shape[-2], right.shape[-1])
            if any(out.shape[-2:] == wanted for out in matrices if out is not left and out is not right):
                steps = 2 * prod(left.shape) * right.shape[-1]
                flops = (Flops(steps, left.dtype, MATRIX),)
                return Work("matmul", flops, sum(tensor.bytes for tensor in tensors), 0, estimate=ONCE)
    raise Unknowable("the operands of the template were not recognised")
