"""What a kernel is, as far as its name proves it: every field has a reason or is None."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field, to_builtins

CLASSES = (
    "gemm",
    "conv",
    "attention",
    "norm",
    "softmax",
    "elementwise",
    "reduction",
    "index",
    "sort_scan",
    "rng",
    "optimizer",
    "memory",
    "comm",
    "layout",
    "quant",
    "pooling",
    "moe",
    "other",
    "unknown",
)
"""What a kernel does. ``unknown`` means that the decoder abstained; its reason says why."""

MATRIX_CLASSES = frozenset({"gemm", "conv", "attention", "moe"})
"""Classes whose kernels may use tensor cores; no other known class does."""


class DataTypes(Struct, frozen=True):
    """Data types by role: ``f16 bf16 f32 tf32 f64 e4m3 e5m2 e2m1 s8 s32 s64 u8 bool cf32 …``.

    ``a`` and ``b`` are the operands as the arithmetic uses them (an fp32 tensor multiplied in TF32 is ``tf32``),
    ``out`` is the output and ``acc`` is the accumulator.
    """

    a: str | None = None
    b: str | None = None
    out: str | None = None
    acc: str | None = None


AMD_LIBRARIES = frozenset(("miopen", "tensile", "ck", "aiter", "rccl", "rocprim", "rocm"))


class Token(Struct, frozen=True):
    """A part of the name and its meaning."""

    text: str = field(name="token")
    meaning: str


class KernelIdentity(Struct, frozen=True):
    """A kernel, decoded from its name. A field that the name does not prove is ``None``.

    >>> warpline.identify("cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align4").tile
    '128x128x32'
    """

    name: str
    library: str | None = None
    """Who wrote the kernel: cublas, cudnn, cutlass, aten, triton, nccl …"""
    family: str | None = None
    """The grammar that decoded the name."""
    op: str | None = None
    kernel_class: str = field(default="unknown", name="class")
    tensor_core: bool | None = None
    arch: str | None = None
    """The architecture the kernel was written for, which may be older than the device."""
    dtype: DataTypes = field(default_factory=DataTypes)
    tile: str | None = None
    """Output tile of a thread block, M x N, and x K if the name prints it; query x key for attention."""
    stages: int | None = None
    layout: str | None = None
    cluster: str | None = None
    instruction: str | None = None
    """Shape of one matrix instruction, m x n x k."""
    split_k: bool | None = None
    vector_width: int | None = None
    """Elements that a thread moves with one access."""
    alignment: int | None = None
    """Elements that the operands must be aligned to."""
    functor: str | None = None
    fused_ops: tuple[str, ...] = ()
    direction: str | None = None
    """``fwd`` or ``bwd``."""
    causal: bool | None = None
    head_dim: int | None = None
    truncated: bool = False
    reasons: Mapping[str, str] = field(default_factory=dict)
    tokens: tuple[Token, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def known(self) -> bool:
        """Whether the class was decoded."""
        return self.kernel_class != "unknown"

    @property
    def is_sparse(self) -> bool:
        """Whether it multiplies with a sparse matrix."""
        return self.op == "spmm"

    @property
    def is_amd(self) -> bool:
        """Whether the name proves a kernel for AMD's devices."""
        return self.library in AMD_LIBRARIES or "gfx" in (self.arch or "")

    def to_dict(self) -> dict[str, Any]:
        """The JSON contract of ``warpline kernel``."""
        return to_builtins(self)
