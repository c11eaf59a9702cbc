"""Whether a Triton kernel computes what its reference does: over shapes, strides, data types and odd sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from warpline.lab.kernels import bias_gelu, residual_rms_norm, scale_add, silu_mul, softmax
from warpline.lab.kernels.model import TritonKernel

KERNELS: tuple[TritonKernel, ...] = (
    scale_add.KERNEL,
    silu_mul.KERNEL,
    residual_rms_norm.KERNEL,
    softmax.KERNEL,
    bias_gelu.KERNEL,
)
SHAPES = ((1, 1), (1, 5000), (3, 127), (16, 1024), (33, 4097), (7, 8192))
DTYPES = ("float32", "float16", "bfloat16")
TOLERANCES = {"float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}
"""Largest difference, of the largest value: a few units in the last place, since the order of sums differs."""


@dataclass(frozen=True, slots=True)
class KernelCase:
    """One check."""

    rows: int
    columns: int
    dtype: str
    strided: bool

    def __str__(self) -> str:
        return f"{self.rows}x{self.columns} {self.dtype}{' strided' if self.strided else ''}"


def cases() -> Iterator[KernelCase]:
    """Every shape in every data type, contiguous and strided."""
    for rows, columns in SHAPES:
        for dtype in DTYPES:
            for strided in (False, True):
                yield KernelCase(rows, columns, dtype, strided)


def difference(torch: Any, kernel: TritonKernel, case: KernelCase, device: str, bad: bool = False) -> float:
    """Largest difference from the reference, as a share of the largest value; over 1 means wrong altogether."""
    torch.manual_seed(0)
    args = kernel.inputs(torch, case.rows, case.columns, getattr(torch, case.dtype), device, case.strided)
    found, expected = (kernel.bad if bad else kernel.run)(*args), kernel.reference(*args)
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    return max(
        float((one.float() - other.float()).abs().max() / other.float().abs().max().clamp(min=1e-6))
        for one, other in pairs
    )


def wrong_cases(torch: Any, kernel: TritonKernel, device: str) -> list[str]:
    """The cases in which the kernel is wrong; the bad version is slow, not wrong, so it is checked too."""
    wrong = [
        f"{case}: off by {off:.2g}"
        for case in cases()
        if not (off := difference(torch, kernel, case, device)) <= TOLERANCES[case.dtype]
    ]
    case = KernelCase(5, 256, "float32", strided=False)
    off = difference(torch, kernel, case, device, bad=True)
    return wrong if off <= TOLERANCES["float32"] else [*wrong, f"bad version, {case}: off by {off:.2g}"]
