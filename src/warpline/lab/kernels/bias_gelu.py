# ruff: noqa: N803 (Triton writes constants in capitals)
# mypy: disable-error-code="no-untyped-def, untyped-decorator, import-not-found"
"""gelu(x + bias): what follows a matmul in many models, in one pass over its result."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from warpline.lab.kernels.model import Tensors, TritonKernel, matrix

BLOCK = 2048


@triton.jit
def quick_gelu(x):
    """x times the part of the normal distribution below x, within 7e-7.

    The error function itself takes 37 instructions an element, more than an H200 issues in the time of its 4 bytes. The
    logarithm of the distribution's tail is nearly a parabola: this fit of it to the fifth degree (weighted least
    squares over 0 to 7, by the error of the result) needs one exp2 and no division, half as many instructions in all.
    """
    size = tl.abs(x)
    power = -0.05168600 + size * (0.007021860 + size * -0.0004634412)
    power = -1.000044 + size * (-1.150733 + size * (-0.4601299 + size * power))
    tail = tl.exp2(power)
    return x * tl.where(x > 0, 1.0 - tail, tail)


@triton.jit
def bias_gelu_kernel(x, bias, y, columns, x_row, x_column, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    """A piece of a row per program; WIDE computes in float64."""
    pieces = tl.cdiv(columns, BLOCK)
    row = (tl.program_id(0) // pieces).to(tl.int64)
    column = (tl.program_id(0) % pieces) * BLOCK + tl.arange(0, BLOCK)
    inside = column < columns
    value = tl.load(x + row * x_row + column * x_column, mask=inside).to(tl.float32)
    value += tl.load(bias + column, mask=inside).to(tl.float32)
    if WIDE:
        value = value.to(tl.float64)
        value = 0.5 * value * (1.0 + tl.erf(value * 0.7071067811865476))
    else:
        value = quick_gelu(value)
    tl.store(y + row * columns + column, value.to(y.dtype.element_ty), mask=inside)


def reference(x: Any, bias: Any) -> Any:
    """In torch."""
    value = x.float() + bias.float()
    return (0.5 * value * (1.0 + (value * 0.5**0.5).erf())).to(x.dtype)


def _launched(x: Any, bias: Any, wide: bool) -> Any:
    y = x.new_empty(x.shape)
    source = x.reshape(-1, x.shape[-1])
    rows, columns = source.shape
    grid = (rows * triton.cdiv(columns, BLOCK),)
    bias_gelu_kernel[grid](source, bias, y, columns, *source.stride(), WIDE=wide, BLOCK=BLOCK, num_warps=4)
    return y


def run(x: Any, bias: Any) -> Any:
    """The good version, in float32."""
    return _launched(x, bias, wide=False)


def bad(x: Any, bias: Any) -> Any:
    """The bad version, in float64."""
    return _launched(x, bias, wide=True)


def inputs(torch: Any, rows: int, columns: int, dtype: Any, device: str, strided: bool = False) -> Tensors:
    """A matrix and a bias for each column."""
    return matrix(torch, rows, columns, dtype, device, strided), torch.randn(columns, device=device).to(dtype)


KERNEL = TritonKernel(
    "bias-gelu",
    "gelu(x + bias)",
    reference,
    run,
    bad,
    "it computes in float64, which has few units or none, for a result of 16 bits",
    inputs,
    passes=2,
)
