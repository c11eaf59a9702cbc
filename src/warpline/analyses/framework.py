"""Which framework a program is written with: advice for another one is of no use."""

from __future__ import annotations

import re
from typing import Literal

import numpy as np

from warpline.trace.arrays import NONE
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
JULIA = re.compile(r"(^|/)julia(-\d|$)")
"""The name of a process that runs Julia."""


def framework_of(trace: Trace) -> Framework:
    """The framework by the names of ops, ranges and kernels; CUDA C++ where nothing tells of one.

    >>> framework_of(trace)
    'pytorch'
    """
    gpu = trace.gpu.name
    if any(names.like(PYTORCH_OPS).any() for names in (trace.ops.name, trace.ranges.name)):
        return "pytorch"
    if gpu.like(PYTORCH_KERNELS).any():
        return "pytorch"
    if gpu.like(WRAPPED_KERNELS).any() or _runs_julia(trace):
        return "wrapped"
    if len(trace.ops) or gpu.like(OTHER_KERNELS).any():
        return "other"
    return "cuda"


def _runs_julia(trace: Trace) -> bool:
    launching = np.unique(trace.api.thread[trace.api.thread != NONE])
    return any(JULIA.search(name or "") for name in trace.threads.process_name[launching])
