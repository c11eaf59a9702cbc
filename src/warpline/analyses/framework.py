"""Which framework a program is written with: advice for another one is of no use."""

from __future__ import annotations

from typing import Literal

import polars as pl

from warpline.trace.names import rows_like
from warpline.trace.trace import Trace

Framework = Literal["pytorch", "cuda", "other", "wrapped"]
"""PyTorch; CUDA C++; JAX, TensorFlow or a serving engine; and programs that reach CUDA through a language or library of
their own (Julia, OpenMP, OpenACC, CuPy, Numba), where CUDA's API is not in the programmer's hands."""
PYTORCH_OPS = r"^(aten|autograd|torch|c10d)::|^Optimizer\.|^ProfilerStep"
PYTORCH_KERNELS = r"\bat::(native|cuda)|\bc10::|^triton_(poi|red|per|tem)_|fmha_cutlassF|pytorch_flash"
"""Kernels of ATen and of Inductor: traces of nsys have no ops."""
OTHER_KERNELS = r"^(loop|input|wrapped)_\w*fusion|^fusion_\d|tensorflow::|^xla|EigenMetaKernel"
"""Kernels of XLA (JAX, TensorFlow)."""
WRAPPED_KERNELS = (
    r"^__omp_offloading|^nvkernel_\w+_F\d+L\d+|^\w+_\d+_gpu(__red)?$|^cupy_|^_?(ZN6)?cudapy|^__main__::"
    r"|^_?(Z\d+)?(julia|ptxcall)_|CuDeviceArray|CompilerMetadata|^gpu_\w+_kernel"
)
"""Kernels of OpenMP and OpenACC compilers (clang, nvc), CuPy, Numba and CUDA.jl."""


def framework_of(trace: Trace) -> Framework:
    """The framework by the names of ops, ranges and kernels; CUDA C++ where nothing tells of one.

    >>> framework_of(trace)
    'pytorch'
    """
    if (
        _any(trace.stored("ops"), PYTORCH_OPS)
        or _any(trace.stored("ranges"), PYTORCH_OPS)
        or _any(trace.stored("gpu"), PYTORCH_KERNELS)
    ):
        return "pytorch"
    if _any(trace.stored("gpu"), WRAPPED_KERNELS) or _runs_julia(trace):
        return "wrapped"
    if len(trace.stored("ops")) or _any(trace.stored("gpu"), OTHER_KERNELS):
        return "other"
    return "cuda"


def _runs_julia(trace: Trace) -> bool:
    launching = trace.stored("api")["thread"].drop_nulls().unique()
    names = trace.stored("threads")["process_name"].gather(launching).drop_nulls()
    return bool(names.str.contains(r"(^|/)julia(-\d|$)").any())


def _any(table: pl.DataFrame, pattern: str) -> bool:
    return bool(rows_like(table, pattern).any()) if len(table) else False
