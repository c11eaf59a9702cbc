"""Fixes of arithmetic on hand-made traces, with answers worked out on paper."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kineto_files import op
from small_programs import DIRECT_COPY, GEMM_FP32, GEMM_ODD, STEPS, Body, Program, repeated

from warpline.replay import WhatIf

GEMM_EVEN_TO_FOUR = (
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_32x3_nn_align4>"
    "(cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_32x3_nn_align4::Params)"
)


def asked(folder: Path, body: Body) -> WhatIf:
    """What fixes are worth to a program whose steps end with a wait."""

    def waiting(program: Program) -> None:
        body(program)
        program.wait()

    return repeated(waiting).asked(folder)


def product(
    shapes: list[list[int]], strides: list[list[int]], kernel: str = GEMM_ODD, length: float = 1000, dtype: str = "bf16"
) -> Body:
    def body(program: Program) -> None:
        recorded = "float" if dtype == "fp32" else "c10::BFloat16"
        program.op("aten::mm", (kernel, length), shapes=shapes, dtype=recorded)
        program.events[-1]["args"]["Input Strides"] = strides

    return body


@pytest.mark.parametrize(
    ("shapes", "strides", "changed"),
    [
        ([[8191, 4096], [4096, 4096]], [[4096, 1], [4096, 1]], 0),  # an odd number of rows is nobody's business
        ([[8191, 4096], [4096, 4096]], [[4096, 1], [1, 4096]], 0),
        ([[4096, 8191], [8191, 4096]], [[1, 4096], [4096, 1]], 0),  # the gradient of a weight
        ([[4096, 8191], [8191, 4096]], [[8191, 1], [4096, 1]], STEPS),
        ([[8192, 4096], [4096, 4095]], [[4096, 1], [4095, 1]], STEPS),
        ([[8192, 4096], [4096, 4095]], [[4096, 1], [1, 4096]], STEPS),  # the rows of the result are odd
        ([[8192, 4096], [4096, 4096]], [[4097, 1], [4096, 1]], STEPS),  # part of a wider tensor
        ([[8192, 4096], [4096, 1]], [[4096, 1], [1, 1]], 0),
    ],
)
def test_padding_helps_where_rows_in_memory_are_not_aligned(
    tmp_path: Path, shapes: list[list[int]], strides: list[list[int]], changed: int
) -> None:
    assert asked(tmp_path, product(shapes, strides)).trial("pad").changed == (changed,)


def test_padding_does_nothing_for_products_on_cuda_cores(tmp_path: Path) -> None:
    odd = [[4095, 4095], [4095, 4095]], [[4095, 1], [4095, 1]]
    question = asked(tmp_path, product(*odd, kernel=GEMM_FP32, dtype="fp32"))
    assert question.trial("pad").changed == (0,)
    assert question.trial("tf32").changed == (STEPS,)


def test_a_product_runs_in_one_type_however_many_fixes_convert_it(tmp_path: Path) -> None:
    """It is far from its roofline, which therefore does not hide that one fix is counted on top of the other."""
    even = [[1024, 1024], [1024, 1024]], [[1024, 1], [1024, 1]]
    question = asked(tmp_path, product(*even, kernel=GEMM_FP32, length=4000, dtype="fp32"))
    both, half, tf32 = (question.trial(*fixes).duration for fixes in (("tf32", "bf16"), ("bf16",), ("tf32",)))
    assert both.tolist() == half.tolist() != tf32.tolist()


def test_a_product_that_is_aligned_to_four_gains_what_it_lacks(tmp_path: Path) -> None:
    """It takes twice what a square one with its floor takes, and gets no faster than that."""
    shapes = [[8192, 8192], [8192, 8196]]
    question = asked(tmp_path, product(shapes, [[8192, 1], [8196, 1]], GEMM_EVEN_TO_FOUR, 2800))
    node = np.flatnonzero(question.labelled.kernels("gemm"))[-1]
    assert question.trial("pad").duration[node] / 1e6 == pytest.approx(1.42, rel=0.1)


@pytest.mark.parametrize(
    ("to", "source", "fix"),
    [
        ("c10::BFloat16", "float", "drop_casts"),
        ("c10::BFloat16", "c10::BFloat16", "drop_copies"),  # another layout
        ("float", "unsigned char", None),  # a picture
    ],
)
def test_a_copy_within_to_is_a_cast_or_a_copy_or_meant(tmp_path: Path, to: str, source: str, fix: str | None) -> None:
    def body(program: Program) -> None:
        start = program.now
        program.python(1)
        program.op("aten::copy_", (DIRECT_COPY, 300), shapes=[[64, 256, 56, 56]] * 2, types=[to, source])
        program.events.append(op("aten::_to_copy", start, program.now - start))
        program.large_product()

    question = asked(tmp_path, body)
    changed = {name for name in ("drop_casts", "drop_copies", "bf16") if question.trial(name).changed != (0,)}
    assert changed == {fix} - {None}  # the product is in half precision already: bf16 has nothing to change


CONV_FP32 = "_5x_cudnn_ampere_scudnn_128x32_relu_small_nn_v1"
CONV_TF32 = "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x32_stage3_warpsize2x2x1_g1_tensor16x8x8_execute_kernel__5x_cudnn"


@pytest.mark.parametrize(("other", "changed"), [(CONV_FP32, 2 * STEPS), (CONV_TF32, 0)])
def test_a_convolution_in_fp32_beside_others_in_tf32_is_the_choice_of_cudnn(
    tmp_path: Path, other: str, changed: int
) -> None:
    """One setting allows TF32 for all convolutions."""

    def body(program: Program) -> None:
        for kernel in (CONV_FP32, other):
            program.op("aten::cudnn_convolution", (kernel, 1_000), dtype="float")

    assert asked(tmp_path, body).trial("tf32").changed == (changed,)
