"""Written-out attention on hand-made traces, with answers worked out on paper."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_programs import DIRECT_COPY, GEMM_FP32, MUL, SOFTMAX, Program, judged

from warpline.replay.costs import shares

SCORES, SMALL = [128, 2048, 2048], [128, 2048, 64]
SOFTMAX_FP32 = SOFTMAX.replace("c10::BFloat16", "float")
SOFTMAX_BACKWARD = (
    "void at::native::(anonymous namespace)::cunn_SoftMaxBackward<8, float, float, float, softmax_backward>"
)
TOP_K = "void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>(at::cuda::detail::TensorInfo<float const>)"
IN_HALF_US = 1140 / 4.13
"""A product in bf16 writes 1,074 MB of scores and reads 67, at the bandwidth of the roof."""


def cast(program: Program, to: str, source: str) -> None:
    with program.within("aten::_to_copy"):
        program.op("aten::copy_", (DIRECT_COPY, 20), shapes=[SMALL, SMALL], types=[to, source])


def product(program: Program) -> None:
    program.op("aten::bmm", (GEMM_FP32, 1400), shapes=[SMALL, [128, 64, 2048]], dtype="float")


def forward(program: Program) -> None:
    """What the math backend does with tensors in bf16: all of it in fp32."""
    with (
        program.within("aten::scaled_dot_product_attention"),
        program.within("aten::_scaled_dot_product_attention_math"),
    ):
        for _ in range(3):
            cast(program, "float", "c10::BFloat16")
        for _ in range(2):
            program.op("aten::mul", (MUL, 20), shapes=[SMALL], dtype="float")
        product(program)
        program.op("aten::_softmax", (SOFTMAX_FP32, 1000), shapes=[SCORES], dtype="float")
        product(program)
        cast(program, "c10::BFloat16", "float")


def backward(program: Program) -> None:
    cast(program, "float", "c10::BFloat16")
    product(program)
    product(program)
    program.op("aten::_softmax_backward_data", (SOFTMAX_BACKWARD, 1500), shapes=[SCORES, SCORES], dtype="float")
    product(program)
    product(program)
    for _ in range(3):
        cast(program, "c10::BFloat16", "float")


@pytest.mark.parametrize("training", [False, True])
def test_an_attention_that_the_math_backend_raises_is_fused_in_half_precision(tmp_path: Path, training: bool) -> None:
    def body(program: Program) -> None:
        program.large_product(300)
        forward(program)
        if training:
            backward(program)
        program.large_product(300)
        program.wait()

    (found,) = [finding for finding in judged(tmp_path, body).findings if finding.fix == "sdpa"]
    assert found.cause == "kernel"
    products = 6 if training else 2
    expected = 600_000 + products * IN_HALF_US * 1000 * shares.SDPA_HALF.expected
    assert found.new_step_ns.expected == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize(("query", "said"), [(SMALL, "here they have 3: add"), ([2, 64, 2048, 64], "size); in fp16")])
def test_attention_whose_call_runs_the_math_backend_is_told_why(tmp_path: Path, query: list[int], said: str) -> None:
    def body(program: Program) -> None:
        program.large_product(300)
        with program.within("aten::_scaled_dot_product_attention_math", shapes=[query] * 3):
            product(program)
            program.op("aten::_softmax", (SOFTMAX_FP32, 1000), shapes=[SCORES], dtype="float")
            product(program)
        program.wait()

    (found,) = [finding for finding in judged(tmp_path, body).findings if finding.fix == "sdpa"]
    assert "math backend" in found.how and said in found.how


def test_a_router_of_experts_is_no_attention(tmp_path: Path) -> None:
    """Its weights are a softmax between two GEMMs too, but the largest of them choose the experts."""

    def step(program: Program, top: bool) -> None:
        program.large_product(300)
        product(program)
        program.op("aten::_softmax", (SOFTMAX_FP32, 1000), shapes=[SCORES], dtype="float")
        if top:
            program.op("aten::topk", (TOP_K, 20), shapes=[SCORES], dtype="float")
        product(program)
        program.large_product(300)
        program.wait()

    for top in (False, True):
        found = judged(tmp_path, lambda program, top=top: step(program, top)).findings
        assert ("sdpa" in {finding.fix for finding in found}) is not top
