# ruff: noqa: N803 (Triton writes constants in capitals)
# mypy: disable-error-code="no-untyped-def, untyped-decorator, import-not-found"
"""The Triton kernels of the cases. Imported only where Triton is."""

from typing import Any

import triton
import triton.language as tl

from faults.kernels.case import Buffers


@triton.jit
def scale_strided_flawed(x, y, ROWS: tl.constexpr, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = (place % ROWS) * COLUMNS + place // ROWS
    tl.store(y + at, tl.load(x + at) * 2.0)


@triton.jit
def scale_strided_fixed(x, y, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at) * 2.0)


def scale_strided(which: str) -> Any:
    """y = 2 x over a matrix: down the columns, or along the rows."""

    def run(torch: Any, buffers: Buffers) -> None:
        x, y = buffers["x"], buffers["y"]
        rows, columns = x.shape
        if which == "flawed":
            scale_strided_flawed[(x.numel() // 1024,)](x, y, rows, columns, 1024)
        else:
            scale_strided_fixed[(x.numel() // 1024,)](x, y, 1024)

    return run


@triton.jit
def row_norm_flawed(x, y, COLUMNS: tl.constexpr):
    row = tl.program_id(0)
    at = row * COLUMNS + tl.arange(0, COLUMNS)
    value = tl.load(x + at)
    mean = tl.sum(value, 0) / COLUMNS
    centred = value - mean
    spread = tl.sum(centred * centred, 0) / COLUMNS
    scaled = centred / tl.sqrt(spread + 1e-5)
    largest = tl.max(scaled, 0)
    weight = tl.exp(scaled - largest)
    total = tl.sum(weight, 0)
    tl.store(y + at, scaled + weight / total)


def row_norm(which: str) -> Any:
    """A normalised row of 16384 values plus its softmax, by one warp (its registers overflow) or by sixteen."""

    def run(torch: Any, buffers: Buffers) -> None:
        x, y = buffers["x"], buffers["y"]
        rows, columns = x.shape
        row_norm_flawed[(rows,)](x, y, columns, num_warps=1 if which == "flawed" else 16)

    return run


@triton.jit
def matmul_fixed(a, b, c, N: tl.constexpr, M: tl.constexpr, K: tl.constexpr, PRECISION: tl.constexpr):
    row = tl.program_id(1) * M + tl.arange(0, M)
    column = tl.program_id(0) * M + tl.arange(0, M)
    total = tl.zeros((M, M), dtype=tl.float32)
    for first in range(0, N, K):
        depth = first + tl.arange(0, K)
        left = tl.load(a + row[:, None] * N + depth[None, :])
        right = tl.load(b + depth[:, None] * N + column[None, :])
        total = tl.dot(left, right, total, input_precision=PRECISION)
    tl.store(c + row[:, None] * N + column[None, :], total.to(c.dtype.element_ty))


def half_matmul(torch: Any, buffers: Buffers) -> None:
    """C = A B in half precision on the tensor cores."""
    n = buffers["a"].shape[0]
    matmul_fixed[(n // 128, n // 128)](
        buffers["a"], buffers["b"], buffers["c"], n, 128, 64, "tf32", num_warps=8, num_stages=3
    )


def single_matmul(precision: str) -> Any:
    """C = A B in single precision: on the FP32 units ("ieee") or the tensor cores ("tf32")."""

    def run(torch: Any, buffers: Buffers) -> None:
        n = buffers["a"].shape[0]
        matmul_fixed[(n // 64, n // 64)](
            buffers["a"], buffers["b"], buffers["c"], n, 64, 32, precision, num_warps=4, num_stages=3
        )

    return run


@triton.jit
def transposed_matmul_fixed(a, b, c, N: tl.constexpr, M: tl.constexpr, K: tl.constexpr):
    row = tl.program_id(1) * M + tl.arange(0, M)
    column = tl.program_id(0) * M + tl.arange(0, M)
    total = tl.zeros((M, M), dtype=tl.float32)
    for first in range(0, N, K):
        depth = first + tl.arange(0, K)
        left = tl.load(a + row[:, None] * N + depth[None, :])
        right = tl.load(b + column[:, None] * N + depth[None, :])
        total = tl.dot(left, tl.trans(right), total, input_precision="tf32")
    tl.store(c + row[:, None] * N + column[None, :], total)


def transposed_matmul(torch: Any, buffers: Buffers) -> None:
    """C = A B on the tensor cores, with B stored by columns: they read TF32 operands along the summed dimension."""
    n = buffers["a"].shape[0]
    transposed_matmul_fixed[(n // 64, n // 64)](
        buffers["a"], buffers["transposed"], buffers["c"], n, 64, 32, num_warps=4, num_stages=3
    )


@triton.jit
def count_flawed(key, bins, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(bins + tl.load(key + at), 1.0)


@triton.jit
def count_fixed(key, bins, BLOCK: tl.constexpr, PER: tl.constexpr):
    column = tl.arange(0, BLOCK)
    found = tl.zeros((BLOCK,), dtype=tl.int32)
    first = tl.program_id(0) * BLOCK * PER
    for part in range(PER):
        found += tl.load(key + first + part * BLOCK + column) == 1
    ones = tl.sum(found, 0)
    tl.atomic_add(bins + 1, ones.to(tl.float32))
    tl.atomic_add(bins, (BLOCK * PER - ones).to(tl.float32))


def count_keys(which: str) -> Any:
    """Counts the keys 0 and 1: an atomic for each element, or two for each program."""

    def run(torch: Any, buffers: Buffers) -> None:
        key, bins = buffers["key"], buffers["bins"]
        if which == "flawed":
            count_flawed[(key.numel() // 1024,)](key, bins, 1024)
        else:
            count_fixed[(key.numel() // 16384,)](key, bins, 1024, 16)

    return run


@triton.jit
def long_rows_flawed(x, y, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for first in range(0, COLUMNS, BLOCK):
        total += tl.load(x + row.to(tl.int64) * COLUMNS + first + tl.arange(0, BLOCK))
    tl.atomic_add(y + row, tl.sum(total, 0))


@triton.jit
def long_rows_fixed(x, y, COLUMNS: tl.constexpr, BLOCK: tl.constexpr, PER: tl.constexpr):
    row = tl.program_id(0)
    begin = tl.program_id(1) * BLOCK * PER
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for part in range(PER):
        total += tl.load(x + row.to(tl.int64) * COLUMNS + begin + part * BLOCK + tl.arange(0, BLOCK))
    tl.atomic_add(y + row, tl.sum(total, 0))


def long_rows(which: str) -> Any:
    """Sums of sixteen long rows: one program a row, or many."""

    def run(torch: Any, buffers: Buffers) -> None:
        x, y = buffers["x"], buffers["y"]
        rows, columns = x.shape
        if which == "flawed":
            long_rows_flawed[(rows,)](x, y, columns, 1024)
        else:
            long_rows_fixed[(rows, columns // 16384)](x, y, columns, 1024, 16)

    return run


@triton.jit
def wide_index_flawed(x, y, d0, d1, d2, d3, BLOCK: tl.constexpr):
    at = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    i0 = at % d0
    r0 = at // d0
    i1 = r0 % d1
    r1 = r0 // d1
    i2 = r1 % d2
    r2 = r1 // d2
    i3 = r2 % d3
    target = ((i3 * d2 + i2) * d1 + i1) * d0 + i0
    tl.store(y + target, tl.load(x + at) + 1.0)


@triton.jit
def wide_index_fixed(x, y, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at) + 1.0)


def wide_index(which: str) -> Any:
    """y = x + 1 through a four-dimensional 64-bit index, or through a flat one."""

    def run(torch: Any, buffers: Buffers) -> None:
        x, y = buffers["x"], buffers["y"]
        if which == "flawed":
            wide_index_flawed[(x.numel() // 1024,)](x, y, 96, 100, 120, x.numel() // (96 * 100 * 120) + 1, 1024)
        else:
            wide_index_fixed[(x.numel() // 1024,)](x, y, 1024)

    return run


@triton.jit
def weight_gradient_kernel(
    x, upstream, gradient, COLUMNS: tl.constexpr, PER: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr
):
    column = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    row = tl.program_id(1) * PER + tl.arange(0, HEIGHT)
    at = row[:, None] * COLUMNS + column[None, :]
    total = tl.zeros((HEIGHT, WIDTH), dtype=tl.float32)
    for part in range(0, PER, HEIGHT):
        total += tl.load(x + at + part * COLUMNS) * tl.load(upstream + at + part * COLUMNS)
    tl.atomic_add(gradient + column, tl.sum(total, 0), sem="relaxed")


def weight_gradient(which: str) -> Any:
    """The gradient of a norm's weight: a program for 64 columns and all rows, or for 64 columns and 64 rows."""

    def run(torch: Any, buffers: Buffers) -> None:
        x, upstream, gradient = buffers["x"], buffers["upstream"], buffers["gradient"]
        rows, columns = x.shape
        per = rows if which == "flawed" else 64
        weight_gradient_kernel[(columns // 64, rows // per)](x, upstream, gradient, columns, per, 16, 64)

    return run


@triton.jit
def fused_gate_kernel(gate, up, residual, y, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(gate + at)
    tl.store(y + at, value * tl.sigmoid(value) * tl.load(up + at) + tl.load(residual + at))


def fused_gate(torch: Any, buffers: Buffers) -> None:
    """y = silu(gate) * up + residual: three streams in, one out."""
    gate, y = buffers["gate"], buffers["y"]
    fused_gate_kernel[(y.numel() // 1024,)](gate, buffers["up"], buffers["residual"], y, 1024)
