# ruff: noqa: N803 (Triton writes constants in capitals)
# mypy: disable-error-code="no-untyped-def, untyped-decorator, import-not-found"
"""x + residual, then RMSNorm: one pass over memory instead of three or more. The sum is kept for the next residual."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from warpline.lab.kernels.model import Tensors, TritonKernel, matrix

EPSILON = 1e-6
FEW_PROGRAMS = 8


@triton.jit
def residual_rms_norm_kernel(
    x,
    residual,
    weight,
    total,
    y,
    rows,
    columns,
    x_row,
    x_column,
    r_row,
    r_column,
    EPS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Whole rows per program, kept in registers between the sum of squares and the scaling."""
    column = tl.arange(0, BLOCK)
    inside = column < columns
    scale = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        at = tl.cast(row, tl.int64)
        a = tl.load(x + at * x_row + column * x_column, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(residual + at * r_row + column * r_column, mask=inside, other=0.0).to(tl.float32)
        value = a + b
        tl.store(total + at * columns + column, value.to(total.dtype.element_ty), mask=inside)
        mean = tl.sum(value * value, axis=0) / columns
        value = value * (1.0 / tl.sqrt(mean + EPS)) * scale
        tl.store(y + at * columns + column, value.to(y.dtype.element_ty), mask=inside)


def reference(x: Any, residual: Any, weight: Any) -> Any:
    """In torch, in float32 as models do."""
    total = x.float() + residual.float()
    y = total * (total.pow(2).mean(-1, keepdim=True) + EPSILON).rsqrt() * weight.float()
    return total.to(x.dtype), y.to(x.dtype)


def _launched(x: Any, residual: Any, weight: Any, programs: int) -> Any:
    total, y = x.new_empty(x.shape), x.new_empty(x.shape)
    left, right = x.reshape(-1, x.shape[-1]), residual.reshape(-1, residual.shape[-1])
    rows, columns = left.shape
    block = triton.next_power_of_2(columns)
    residual_rms_norm_kernel[(min(programs, rows),)](
        left,
        right,
        weight,
        total,
        y,
        rows,
        columns,
        *left.stride(),
        *right.stride(),
        EPS=EPSILON,
        BLOCK=block,
        num_warps=min(max(block // 512, 1), 16),
    )
    return total, y


def run(x: Any, residual: Any, weight: Any) -> Any:
    """The good version: a program for each row."""
    return _launched(x, residual, weight, x.numel())


def bad(x: Any, residual: Any, weight: Any) -> Any:
    """The bad version: eight programs for all rows."""
    return _launched(x, residual, weight, FEW_PROGRAMS)


def inputs(torch: Any, rows: int, columns: int, dtype: Any, device: str, strided: bool = False) -> Tensors:
    """Two matrices and a weight for each column."""
    pair = tuple(matrix(torch, rows, columns, dtype, device, strided) for _ in range(2))
    return (*pair, torch.randn(columns, device=device).to(dtype))


KERNEL = TritonKernel(
    "residual-rms-norm",
    "RMSNorm(x + residual) · weight",
    reference,
    run,
    bad,
    f"{FEW_PROGRAMS} programs do all rows, so that most multiprocessors have nothing to do",
    inputs,
    passes=4,
)
