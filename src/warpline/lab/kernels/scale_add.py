# ruff: noqa: N803 (Triton writes constants in capitals)
# mypy: disable-error-code="no-untyped-def, untyped-decorator, import-not-found"
"""y = 2x + 3: the smallest useful kernel. One read, one write, and nothing to wait for but memory."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from warpline.lab.kernels.model import Tensors, TritonKernel, flat, matrix

BLOCK = 1024
"""Elements of a program: eight for each of 128 threads, which is one load of 16 bytes in bf16."""


@triton.jit
def scale_add_kernel(x, y, columns, x_row, x_column, y_row, BLOCK: tl.constexpr):
    """A piece of a row per program: neighbouring threads read neighbouring elements."""
    pieces = tl.cdiv(columns, BLOCK)
    row = (tl.program_id(0) // pieces).to(tl.int64)
    column = (tl.program_id(0) % pieces).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = column < columns
    value = tl.load(x + row * x_row + column * x_column, mask=inside).to(tl.float32)
    tl.store(y + row * y_row + column, (2 * value + 3).to(y.dtype.element_ty), mask=inside)


@triton.jit
def uncoalesced_scale_add_kernel(x, y, n, programs, BLOCK: tl.constexpr):
    """Neighbouring threads read elements that lie far apart: each of them moves 32 bytes to use four."""
    at = tl.arange(0, BLOCK).to(tl.int64) * programs + tl.program_id(0)
    value = tl.load(x + at, mask=at < n).to(tl.float32)
    tl.store(y + at, (2 * value + 3).to(y.dtype.element_ty), mask=at < n)


def reference(x: Any) -> Any:
    """In torch."""
    return 2 * x + 3


def run(x: Any) -> Any:
    """The good version."""
    y = x.new_empty(x.shape)
    source, target = flat(x), flat(y) if x.is_contiguous() else y.reshape(-1, y.shape[-1])
    rows, columns = source.shape
    grid = (rows * triton.cdiv(columns, BLOCK),)
    strides = (*source.stride(), target.stride(0))
    scale_add_kernel[grid](source, target, columns, *strides, BLOCK=BLOCK, num_warps=4)
    return y


def bad(x: Any) -> Any:
    """The bad version, for contiguous tensors."""
    y, n = x.new_empty(x.shape), x.numel()
    programs = triton.cdiv(n, 1024)
    uncoalesced_scale_add_kernel[(programs,)](x, y, n, programs, BLOCK=1024, num_warps=4)
    return y


def inputs(torch: Any, rows: int, columns: int, dtype: Any, device: str, strided: bool = False) -> Tensors:
    """One matrix."""
    return (matrix(torch, rows, columns, dtype, device, strided),)


KERNEL = TritonKernel(
    "scale-add",
    "2x + 3",
    reference,
    run,
    bad,
    "neighbouring threads read elements that lie far apart, so that each access moves 32 bytes to use a few of them",
    inputs,
    passes=2,
)
