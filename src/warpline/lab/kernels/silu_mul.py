# ruff: noqa: N803 (Triton writes constants in capitals)
# mypy: disable-error-code="no-untyped-def, untyped-decorator, import-not-found"
"""silu(gate) * up: two kernels of eager torch in one, which saves writing silu(gate) and reading it again."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from warpline.lab.kernels.model import Tensors, TritonKernel, matrix

BLOCK = 2048


@triton.jit
def silu_mul_kernel(gate, up, y, columns, gate_row, gate_column, up_row, up_column, BLOCK: tl.constexpr):
    """A piece of a row per program; gate and up may be halves of one matrix."""
    pieces = tl.cdiv(columns, BLOCK)
    row = (tl.program_id(0) // pieces).to(tl.int64)
    column = (tl.program_id(0) % pieces) * BLOCK + tl.arange(0, BLOCK)
    inside = column < columns
    a = tl.load(gate + row * gate_row + column * gate_column, mask=inside).to(tl.float32)
    b = tl.load(up + row * up_row + column * up_column, mask=inside).to(tl.float32)
    value = a * tl.sigmoid(a) * b
    tl.store(y + row * columns + column, value.to(y.dtype.element_ty), mask=inside)


def reference(gate: Any, up: Any) -> Any:
    """In torch."""
    return gate * gate.sigmoid() * up


def eager(torch: Any, gate: Any, up: Any) -> Any:
    """As a model writes it."""
    return torch.nn.functional.silu(gate) * up


def _launched(gate: Any, up: Any, block: int, warps: int) -> Any:
    y = gate.new_empty(gate.shape)
    left, right = gate.reshape(-1, gate.shape[-1]), up.reshape(-1, up.shape[-1])
    rows, columns = left.shape
    grid = (rows * triton.cdiv(columns, block),)
    silu_mul_kernel[grid](left, right, y, columns, *left.stride(), *right.stride(), BLOCK=block, num_warps=warps)
    return y


def run(gate: Any, up: Any) -> Any:
    """The good version."""
    return _launched(gate, up, BLOCK, 4)


def bad(gate: Any, up: Any) -> Any:
    """The bad version: the same kernel with one warp of 32 elements in a program."""
    return _launched(gate, up, 32, 1)


def inputs(torch: Any, rows: int, columns: int, dtype: Any, device: str, strided: bool = False) -> Tensors:
    """The two factors."""
    return tuple(matrix(torch, rows, columns, dtype, device, strided) for _ in range(2))


KERNEL = TritonKernel(
    "silu-mul",
    "silu(gate) · up",
    reference,
    run,
    bad,
    "each program has one warp and 32 elements: starting programs takes longer than their work",
    inputs,
    passes=3,
)
