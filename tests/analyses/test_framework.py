"""The framework of a program, by the names in its trace."""

from __future__ import annotations

from pathlib import Path

import pytest
from kineto_files import Event, annotation, kernel, launched, op, write

from warpline.analyses.framework import Framework, framework_of
from warpline.trace.open import open_trace

ATEN = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(int)"


@pytest.mark.parametrize(
    ("events", "framework"),
    [
        ([op("aten::mul", 0, 10), *launched("mine(float*)", 2, 20, 5, 1)], "pytorch"),
        ([annotation("Optimizer.step#AdamW.step", 0, 10), *launched("mine(float*)", 2, 20, 5, 1)], "pytorch"),
        (launched(ATEN, 2, 20, 5, 1), "pytorch"),
        (launched("triton_poi_fused_add_0", 2, 20, 5, 1), "pytorch"),
        (launched("loop_multiply_fusion", 2, 20, 5, 1), "other"),
        ([op("PjitFunction(step)", 0, 10), *launched("mine(float*)", 2, 20, 5, 1)], "other"),
        (launched("saxpy(int, float, float*, float*)", 2, 20, 5, 1), "cuda"),
        ([kernel("ampere_sgemm_128x64_nn", 0, 5, 1)], "cuda"),
        (launched("__omp_offloading_fd02_1a2b_main_l30", 2, 20, 5, 1), "wrapped"),
        (launched("nvkernel_main_F1L30_2", 2, 20, 5, 1), "wrapped"),
        (launched("advec_cell_kernel_99_gpu", 2, 20, 5, 1), "wrapped"),  # OpenACC
        (launched("cupy_multiply__float64_float64_float64", 2, 20, 5, 1), "wrapped"),
        (launched("_Z13julia_vadd_123413CuDeviceArrayI7Float32Li1ELi1EE", 2, 20, 5, 1), "wrapped"),
        (launched("cudapy::__main__::add[abi:v1](Array<float, 1, C, mutable, aligned>)", 2, 20, 5, 1), "wrapped"),
        (launched("gpu_kernel(float*)", 2, 20, 5, 1), "cuda"),
    ],
)
def test_names_tell_the_framework(events: list[Event], framework: Framework, tmp_path: Path) -> None:
    assert framework_of(open_trace(write(tmp_path, events), cache=False)) == framework
