"""Bounds from a kernel's name and grid alone, if no shapes were recorded (nsys, CUDA graphs).

Only kernels whose name contains the number of elements per block can be bounded: PyTorch's elementwise kernels and
multi_tensor_apply. The tile and grid of a matmul give the size of its result but not its inner dimension, so it has no
bound. Every figure is marked as an estimate.
"""

from __future__ import annotations

import re

from warpline.work.dtypes import SIZES
from warpline.work.model import KernelLaunch, Work, vector_steps
from warpline.work.optimizer import work_of_launch as list_work
from warpline.work.shapes import item_type

FROM_GRID = "from the grid: assumes full blocks, and operands as large as the result"
_UNROLLED = re.compile(r"(?<!vectorized_)(?<!unrolled_)elementwise_kernel<(\d+), (\d+),")
"""elementwise_kernel<threads, elements per thread, …> (ATen/native/cuda/CUDALoops.cuh)."""
_VECTORIZED = re.compile(r"vectorized_elementwise_kernel<(\d+),")
"""vectorized_elementwise_kernel<elements per access, …>; a thread computes at least four elements."""
_OPERANDS = re.compile(r"(?:std::array|at::detail::Array)<char ?\*, (\d+)")
"""The number of tensors that the kernel accesses, including its result."""
_MIN_PER_THREAD = 4


_CAST = re.compile(r"\((?:unsigned )?(?:int|long|bool)\)(?=[\d-])")
"""nsys prints a template's numbers with their types: `vectorized_elementwise_kernel<(int)8, …`."""


def work_of_launch(launch: KernelLaunch) -> Work | None:
    """The bound on a launch's work; None if its name does not show it."""
    plain = KernelLaunch(_CAST.sub("", launch.name), launch.blocks, launch.threads)
    return list_work(plain) or _elementwise(plain)


def _elementwise(launch: KernelLaunch) -> Work | None:
    if launch.blocks is None or launch.threads is None:
        return None
    unrolled, vectorized = _UNROLLED.search(launch.name), _VECTORIZED.search(launch.name)
    if vectorized:
        count = launch.blocks * launch.threads * max(_MIN_PER_THREAD, int(vectorized.group(1)))
    elif unrolled:
        count = launch.blocks * int(unrolled.group(1)) * int(unrolled.group(2))
    else:
        return None
    dtype = item_type((launch,))
    operands = _OPERANDS.search(launch.name)
    if not operands or dtype not in SIZES:
        return None
    size = count * SIZES[dtype]
    steps = vector_steps(count, dtype)
    return Work("elementwise", steps, (int(operands.group(1)) - 1) * size, size, estimate=FROM_GRID)
