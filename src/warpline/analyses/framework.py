"""Which framework a program is written with: advice for another one is of no use."""

from __future__ import annotations

from typing import Literal

import polars as pl

from warpline.trace.names import distinct
from warpline.trace.trace import Trace

Framework = Literal["pytorch", "cuda", "other"]
PYTORCH_OPS = r"^(aten|autograd|torch|c10d)::|^Optimizer\.|^ProfilerStep"
PYTORCH_KERNELS = r"\bat::(native|cuda)|\bc10::|^triton_(poi|red|per|tem)_|fmha_cutlassF|pytorch_flash"
"""Kernels of ATen and of Inductor: traces of nsys have no ops."""
OTHER_KERNELS = r"^(loop|input|wrapped)_\w*fusion|^fusion_\d|tensorflow::|^xla|EigenMetaKernel"
"""Kernels of XLA (JAX, TensorFlow)."""


def framework_of(trace: Trace) -> Framework:
    """The framework by the names of ops, ranges and kernels; CUDA C++ where nothing tells of one.

    >>> framework_of(trace)
    'pytorch'
    """
    if _any(trace.ops, PYTORCH_OPS) or _any(trace.ranges, PYTORCH_OPS) or _any(trace.gpu, PYTORCH_KERNELS):
        return "pytorch"
    if len(trace.ops) or _any(trace.gpu, OTHER_KERNELS):
        return "other"
    return "cuda"


def _any(table: pl.DataFrame, pattern: str) -> bool:
    return bool(distinct(table["name"])[0].str.contains(pattern).any()) if len(table) else False
