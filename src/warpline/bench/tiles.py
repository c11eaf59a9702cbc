# ruff: noqa: N803 (Triton writes constants in capitals)
# mypy: disable-error-code="no-untyped-def, untyped-decorator, import-not-found"
"""A matmul by the library, and by a plain Triton kernel in several tiles. Imported only where Triton is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import triton
import triton.language as tl

TILES = (
    (64, 64, 64, 4, 4),
    (64, 128, 64, 4, 4),
    (128, 64, 64, 4, 4),
    (128, 128, 32, 4, 4),
    (128, 128, 64, 8, 3),
    (64, 256, 64, 8, 3),
    (128, 256, 64, 8, 3),
    (256, 128, 64, 8, 3),
)
"""Rows, columns and depth of a tile, warps, and stages of the pipeline."""
GROUP = 8
"""Rows of tiles that run together, so that they share columns in the L2."""
DISAGREEMENT = 0.02
"""Largest difference from the library's result, of its largest value: the order of the sums differs."""


@triton.jit
def tiled_matmul(
    a, b, c, M, N, K, am, ak, bk, bn, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, G: tl.constexpr
):
    """One tile of a product per program."""
    number = tl.program_id(0)
    down, across = tl.cdiv(M, ROWS), tl.cdiv(N, COLUMNS)
    first = number // (G * across) * G
    size = min(down - first, G)
    row = (first + number % (G * across) % size) * ROWS + tl.arange(0, ROWS)
    column = number % (G * across) // size * COLUMNS + tl.arange(0, COLUMNS)
    at = tl.arange(0, DEPTH)
    left = a + (row % M)[:, None] * am + at[None, :] * ak
    right = b + at[:, None] * bk + (column % N)[None, :] * bn
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, DEPTH)):
        x = tl.load(left, mask=at[None, :] < K - k * DEPTH, other=0.0)
        y = tl.load(right, mask=at[:, None] < K - k * DEPTH, other=0.0)
        total = tl.dot(x, y, total)
        left += DEPTH * ak
        right += DEPTH * bk
    where = c + row[:, None] * N + column[None, :]
    tl.store(where, total.to(c.dtype.element_ty), mask=(row[:, None] < M) & (column[None, :] < N))


def multiply(torch: Any, tile: tuple[int, int, int, int, int], a: Any, b: Any) -> Any:
    """The product of two matrices, tile by tile."""
    (rows, depth), columns = a.shape, b.shape[1]
    height, width, deep, warps, stages = tile
    c = torch.empty((rows, columns), device=a.device, dtype=a.dtype)
    grid = (triton.cdiv(rows, height) * triton.cdiv(columns, width),)
    strides = (a.stride(0), a.stride(1), b.stride(0), b.stride(1))
    tiled_matmul[grid](
        a, b, c, rows, columns, depth, *strides, height, width, deep, GROUP, num_warps=warps, num_stages=stages
    )
    return c


def tile_calls(torch: Any, a: Any, b: Any) -> list[tuple[str, Callable[..., object]]]:
    """The tiles that this chip can run and whose product is that of the library, by name."""
    expected = torch.mm(a, b)
    scale = float(expected.abs().max())
    calls: list[tuple[str, Callable[..., object]]] = []
    for tile in TILES:
        call = partial(multiply, torch, tile)
        try:
            off = float((call(a, b) - expected).abs().max())
        except triton.runtime.errors.OutOfResources:
            continue
        if off <= DISAGREEMENT * scale:
            height, width, deep, warps, stages = tile
            calls.append((f"tile {height}x{width}x{deep}, {warps} warps, {stages} stages", call))
    return calls
