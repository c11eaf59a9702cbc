"""Matmuls in every data type that torch supports, on random operands."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

NAMES = {"fp64": "float64", "fp32": "float32", "tf32": "float32", "bf16": "bfloat16", "fp16": "float16"}
ONE_LAYOUT = ("int8", "fp8")
"""Types whose library calls take only a transposed second operand."""


def operands(torch: Any, dtype: str, shape: tuple[int, int, int], device: str, *, transposed: bool) -> tuple[Any, Any]:
    """Random matrices of M x K and K x N; linear layers store the second one transposed. Zeros would run faster."""
    rows, columns, depth = shape
    make = partial(_matrix, torch, dtype, device)
    right = make(columns, depth).t() if transposed or dtype in ONE_LAYOUT else make(depth, columns)
    return make(rows, depth), right


def multiplication(torch: Any, dtype: str, device: str) -> Callable[[Any, Any], object]:
    """The call that multiplies matrices of that type."""
    if dtype == "int8":
        return torch._int_mm
    if dtype == "fp8":
        one = torch.ones((), device=device)

        def scaled(left: Any, right: Any) -> object:
            return torch._scaled_mm(
                left, right, scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True
            )

        return scaled
    return torch.mm


def _matrix(torch: Any, dtype: str, device: str, rows: int, columns: int) -> Any:
    if dtype == "int8":
        return torch.randint(-128, 127, (rows, columns), dtype=torch.int8, device=device)
    if dtype == "fp8":
        return torch.randn(rows, columns, device=device).to(torch.float8_e4m3fn)
    return torch.randn(rows, columns, device=device, dtype=getattr(torch, NAMES[dtype]))
