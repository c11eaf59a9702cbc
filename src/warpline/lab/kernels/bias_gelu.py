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
def quick_erf(x):
    """The error function within 1.5e-7 (Abramowitz and Stegun, 7.1.26): half of the instructions of the exact one."""
    t = 1.0 / (1.0 + 0.3275911 * tl.abs(x))
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    positive = 1.0 - series * tl.exp(-x * x)
    return tl.where(x < 0, -positive, positive)


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
        value = 0.5 * value * (1.0 + quick_erf(value * 0.7071067811865476))
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
