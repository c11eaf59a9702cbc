# ruff: noqa: N803 (Triton writes constants in capitals)
# mypy: disable-error-code="no-untyped-def, untyped-decorator, import-not-found"
"""Softmax over rows: the row is read once and stays in registers while its maximum and its sum are found."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from warpline.lab.kernels.model import Tensors, TritonKernel, matrix

TOO_WIDE = 4


@triton.jit
def row_softmax_kernel(x, y, columns, x_row, x_column, BLOCK: tl.constexpr):
    """A row per program."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    value = tl.load(x + row * x_row + column * x_column, mask=inside, other=float("-inf")).to(tl.float32)
    value = tl.exp(value - tl.max(value, axis=0))
    value = value / tl.sum(value, axis=0)
    tl.store(y + row * columns + column, value.to(y.dtype.element_ty), mask=inside)


def reference(x: Any) -> Any:
    """In torch."""
    return x.softmax(-1)


def _launched(x: Any, block: int, warps: int) -> Any:
    y = x.new_empty(x.shape)
    source = x.reshape(-1, x.shape[-1])
    row_softmax_kernel[(source.shape[0],)](source, y, source.shape[1], *source.stride(), BLOCK=block, num_warps=warps)
    return y


def run(x: Any) -> Any:
    """The good version: the block is the next power of two, with 16 elements a thread."""
    block = triton.next_power_of_2(x.shape[-1])
    return _launched(x, block, min(max(block // 512, 1), 16))


def bad(x: Any) -> Any:
    """The bad version: a block of four times the row, in four warps."""
    return _launched(x, TOO_WIDE * triton.next_power_of_2(x.shape[-1]), 4)


def inputs(torch: Any, rows: int, columns: int, dtype: Any, device: str, strided: bool = False) -> Tensors:
    """One matrix."""
    return (matrix(torch, rows, columns, dtype, device, strided),)


KERNEL = TritonKernel(
    "softmax",
    "softmax(x) over rows",
    reference,
    run,
    bad,
    f"its block is {TOO_WIDE} times as wide as the row, in four warps: each thread takes so many registers that few "
    "warps fit",
    inputs,
    passes=2,
)
