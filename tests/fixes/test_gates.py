"""Nothing is advised that the chip, the type, the library or the framework cannot do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kineto_files import annotation, kernel, op, write
from small_programs import (
    DIRECT_COPY,
    FUSED_ADAM,
    GEMM_BF16,
    GEMM_FP32,
    GEMM_TF32,
    H200,
    MAIN_STREAM,
    MUL,
    STEPS,
    V100,
    Body,
    Program,
    repeated,
)

from warpline.analyses.framework import Framework
from warpline.findings.judge import Judgement, judge
from warpline.fixes.model import Advice
from warpline.fixes.registry import all_fixes, question_about, rules
from warpline.replay import WhatIf
from warpline.trace.open import open_trace

SQUARE = [[4096, 4096], [4096, 4096]]
TITAN_V = {"deviceProperties": [{"id": 0, "name": "NVIDIA TITAN V", "computeMajor": 7, "computeMinor": 0}]}
RTX_2080 = {"deviceProperties": [{"id": 0, "name": "GeForce RTX 2080", "computeMajor": 7, "computeMinor": 5}]}
GTX_1080 = {"deviceProperties": [{"id": 0, "name": "GeForce GTX 1080", "computeMajor": 6, "computeMinor": 1}]}
MI300X = {"deviceProperties": [{"id": 0, "name": "AMD Instinct MI300X", "computeMajor": 9, "computeMinor": 4}]}
UNNAMED: dict[str, Any] = {}
VOLTA_SGEMM = "volta_sgemm_128x64_nn"
VOLTA_HALF = "volta_h884gemm_128x64_nn"
AMPERE_SGEMM = "ampere_sgemm_128x64_nn"
MIOPEN_HALF = "miopenSp3AsmConv_v30_3_1_gfx9_fp16_dot2_edc_f2x3_stride1"
MIOPEN = "miopenSp3AsmConv_v30_3_1_gfx9_edc_f2x3_stride1"


def program_of(body: Body) -> Program:
    def waiting(program: Program) -> None:
        body(program)
        program.wait()

    return repeated(waiting)


def asked(folder: Path, body: Body, header: dict[str, Any]) -> WhatIf:
    return question_about(open_trace(write(folder, program_of(body).events, **header), cache=False))


def told(folder: Path, body: Body, header: dict[str, Any] = H200) -> Judgement:
    return judge(open_trace(write(folder, program_of(body).events, **header), cache=False))


def product(kernel: str, dtype: str = "float", name: str = "aten::mm", length: float = 600) -> Body:
    return lambda program: program.op(name, (kernel, length), shapes=SQUARE, dtype=dtype)


@pytest.mark.parametrize(
    ("kernel", "dtype", "header", "tf32"),
    [
        (GEMM_FP32, "float", H200, True),
        (VOLTA_SGEMM, "float", H200, True),  # kernels of older chips run on newer ones
        (GEMM_FP32, "float", V100, False),
        (VOLTA_SGEMM, "float", V100, False),
        (VOLTA_SGEMM, "float", UNNAMED, False),  # the newest chip that the names prove has no TF32
        (AMPERE_SGEMM, "float", UNNAMED, True),
        (MIOPEN, "float", MI300X, False),  # AMD's chips have none, whatever their number
        (MIOPEN_HALF, "c10::Half", MI300X, False),
        (GEMM_FP32, "c10::Half", H200, False),  # the op contradicts: not known to be FP32
    ],
)
def test_tf32_needs_fp32_and_a_chip_that_has_it(
    kernel: str, dtype: str, header: dict[str, Any], tf32: bool, tmp_path: Path
) -> None:
    changed = asked(tmp_path, product(kernel, dtype), header).trial("tf32").changed
    assert (changed != (0,)) is tf32


@pytest.mark.parametrize(("dtype", "tf32"), [("float", True), ("c10::Half", False), (None, False)])
def test_a_name_without_a_type_is_fp32_only_if_the_op_says_so(dtype: str | None, tf32: bool, tmp_path: Path) -> None:
    kernel = "void cudnn::winograd_nonfused::winogradForwardData4x4"

    def body(program: Program) -> None:
        shapes = SQUARE if dtype else None
        program.op("aten::cudnn_convolution", (kernel, 600), shapes=shapes, dtype=dtype or "")

    assert (asked(tmp_path, body, H200).trial("tf32").changed != (0,)) is tf32


@pytest.mark.parametrize(
    ("kernel", "header", "fp16"),
    [
        (VOLTA_SGEMM, V100, True),
        (VOLTA_SGEMM, TITAN_V, True),  # not listed, and all of Volta have the same
        (VOLTA_SGEMM, RTX_2080, False),  # not listed: relatives have other tensor cores, or none
        (VOLTA_SGEMM, GTX_1080, False),
        (GEMM_FP32, H200, False),  # bf16 needs no scaled loss
        (VOLTA_HALF, V100, False),
    ],
)
def test_fp16_is_advised_where_the_tensor_cores_have_nothing_else(
    kernel: str, header: dict[str, Any], fp16: bool, tmp_path: Path
) -> None:
    dtype = "c10::Half" if kernel == VOLTA_HALF else "float"
    question = asked(tmp_path, product(kernel, dtype, length=12_000), header)
    assert (question.trial("fp16").changed != (0,)) is fp16
    if fp16:  # 137 GFLOP: 8.8 ms at the 15.7 TFLOP/s of the CUDA cores, 1.1 ms at the 125 TFLOP/s of the tensor cores
        node = np.flatnonzero(question.labelled.kernels("gemm"))[-1]
        assert 1.1 < question.trial("fp16").duration[node] / 1e6 < 2.2


@pytest.mark.parametrize(
    ("half_us", "single_us", "header", "bf16"),
    [
        (0, 600, H200, True),
        (300, 600, H200, True),
        (900, 100, H200, False),  # autocast already: the rest is meant
        (0, 600, V100, False),
    ],
)
def test_bf16_is_not_advised_to_a_model_in_half_precision(
    half_us: float, single_us: float, header: dict[str, Any], bf16: bool, tmp_path: Path
) -> None:
    def body(program: Program) -> None:
        product(GEMM_TF32, length=single_us)(program)
        if half_us:
            product(GEMM_BF16, "c10::BFloat16", length=half_us)(program)
        program.op("aten::copy_", (DIRECT_COPY, 50), shapes=SQUARE, types=["c10::BFloat16", "float"])

    assert (asked(tmp_path, body, header).trial("bf16").changed != (0,)) is bf16


def copies(types: list[str]) -> Body:
    def body(program: Program) -> None:
        for _ in range(8):
            program.op("aten::copy_", (DIRECT_COPY, 500), shapes=[[1 << 28]] * 2, types=types)

    return body


def test_copies_are_not_fused_with_each_other(tmp_path: Path) -> None:
    """Each of the eight still has to read and to write its gigabyte."""
    question = asked(tmp_path, copies(["float", "float"]), H200)
    assert not question.trial("torch_compile").gone.any()
    assert "unfused_elementwise" not in {
        finding.rule for finding in told(tmp_path, copies(["float", "float"])).findings
    }


def test_a_copy_is_still_fused_with_what_computes(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        for _ in range(4):
            program.op("aten::mul", (MUL, 500), shapes=[[1 << 28], []], dtype="float")
            program.op("aten::copy_", (DIRECT_COPY, 500), shapes=[[1 << 28]] * 2, types=["float", "float"])

    assert asked(tmp_path, body, H200).trial("torch_compile").gone.sum() > 0


def updated(kernel: str, name: str, count: int = 40) -> Body:
    def body(program: Program) -> None:
        with program.range("Optimizer.step#AdamW.step"):
            for _ in range(count):
                program.op(name, (kernel, 60), shapes=[[1 << 20]] * 2, dtype="float")

    return body


@pytest.mark.parametrize(
    ("kernel", "name", "fused"),
    [
        (FUSED_ADAM, "aten::_fused_adamw_", True),
        (MUL, "aten::_fused_adamw_", True),  # a kernel that the name does not tell
        ("void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float, float, int>, float>", "", True),
        (MUL, "aten::mul_", False),
    ],
)
def test_a_fused_optimizer_is_recognised(kernel: str, name: str, fused: bool, tmp_path: Path) -> None:
    changed = asked(tmp_path, updated(kernel, name or "aten::empty"), H200).trial("fused_optimizer").changed
    assert (changed == (0,)) is fused


CAT = "void at::native::CatArrayBatchedCopy<float, unsigned int, 4, 64, 64>"


def decoding(grows: bool) -> Program:
    """A token a step: forty small kernels, and a cache that grows by one row, or a buffer of one length."""
    program = Program()
    for step in range(STEPS):
        with program.step():
            for _ in range(40):
                program.op("aten::mul", (MUL, 4), cpu=30)
            length = 150 + (step if grows else 0)
            program.op("aten::cat", (CAT, 4))
            program.events[-1]["args"]["Input Dims"] = [[[1, 16, length, 64], [1, 16, 1, 64]], []]
    return program


@pytest.mark.parametrize("grows", [True, False])
def test_a_graph_over_a_growing_cache_needs_a_static_one_first(grows: bool, tmp_path: Path) -> None:
    findings = {found.fix: found for found in decoding(grows).judged(tmp_path).findings}
    assert ("cache_implementation='static'" in findings["torch_compile"].how) is grows
    finding = findings["cuda_graph"]
    assert ("cache_implementation='static'" in finding.how) is grows
    assert ("needs a fixed size first" in finding.claim) is grows
    assert finding.confidence in ({"medium", "low"} if grows else {"high", "medium"})


def test_a_graph_over_changing_shapes_needs_fixed_ones_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpline.fixes.cuda_graph.shapes_change", lambda _: True)
    (finding,) = [found for found in decoding(grows=False).judged(tmp_path).findings if found.fix == "cuda_graph"]
    assert "shapes differ from step to step, and need fixed sizes first" in finding.claim
    assert "pad inputs to fixed lengths" in finding.how
    assert finding.confidence in {"medium", "low"}


def test_an_if_on_a_tensor_stays_in_the_way_of_a_graph(tmp_path: Path) -> None:
    """The same read, once as `item` and once as `if`: only the first can be made after the step."""

    def reading(name: str) -> float:
        program = Program()
        for _ in range(STEPS):
            with program.step():
                for _ in range(10):
                    program.op("aten::mul", (MUL, 4), cpu=30)
                start = program.now
                program.copy("DtoH (Device -> Pinned)", 1.5, 4)
                program.wait()
                program.events.append(op(name, start, program.now - start))
                for _ in range(10):
                    program.op("aten::mul", (MUL, 4), cpu=30)
        return program.asked(tmp_path).ask("cuda_graph").new_step_ns.expected

    assert reading("aten::is_nonzero") > 1.1 * reading("aten::item")


def test_the_profiler_s_own_wait_is_no_advice(tmp_path: Path) -> None:
    program = Program()
    for number in range(STEPS):
        with program.step():
            for _ in range(10):
                program.op("aten::mul", (MUL, 4), cpu=30)
            with program.frame("torch/profiler/profiler.py(879): stop"):
                program.call("cudaDeviceSynchronize", 300 + number)
            for _ in range(10):
                program.op("aten::mul", (MUL, 4), cpu=30)
    assert "remove_sync" not in {finding.fix for finding in program.judged(tmp_path).findings}


def test_a_wait_of_one_step_in_four_is_a_stopwatch_s(tmp_path: Path) -> None:
    """A number is read in every step; one step also waits for an event, which no op of the loop does."""
    program = Program()
    for number in range(STEPS):
        with program.step():
            for _ in range(10):
                program.op("aten::mul", (MUL, 60), cpu=10)
            start = program.now
            program.copy("DtoH (Device -> Pinned)", 1.5, 4)
            program.wait()
            program.events.append(op("aten::item", start, program.now - start))
            for _ in range(10):
                program.op("aten::mul", (MUL, 60), cpu=10)
            if number == 1:
                program.call("cudaEventSynchronize", program.free[MAIN_STREAM] - program.now + 3)
            program.op("aten::mul", (MUL, 60), cpu=10)
    (claim,) = (finding.claim for finding in program.judged(tmp_path).findings if finding.fix == "remove_sync")
    assert "1 .item()" in claim
    assert "event.synchronize" not in claim


TORCH_WORDS = re.compile(r"\btorch\b|DataLoader|autocast|\.item\(\)|\.detach\(|nn\.Module|non_blocking")


@pytest.mark.parametrize("framework", ["cuda", "other", "wrapped"])
def test_no_advice_for_other_programs_speaks_of_pytorch(framework: Framework) -> None:
    for rule in rules():
        assert not TORCH_WORDS.search(f"{rule.advice.to(framework)} {rule.words}"), rule.name
    for fix in all_fixes().values():
        assert not TORCH_WORDS.search(fix.subject(framework)), fix.name


def test_advice_in_neutral_words_serves_all_that_have_no_own() -> None:
    advice = Advice(pytorch="p", cuda="c", neutral="n")
    assert [advice.to(name) for name in ("pytorch", "cuda", "other", "wrapped")] == ["p", "c", "n", "n"]
    assert Advice(pytorch="p", cuda="c", other="o").to("wrapped") is None


def test_waits_of_a_cuda_program_have_cuda_s_names(tmp_path: Path) -> None:
    program = Program()
    program.events.clear()
    for number in range(STEPS):
        start = program.now
        for _ in range(10):
            begin = program._launch("cudaLaunchKernel", 3, 7, 20)
            program.events.append(_kernel(program, begin))
        program.wait()
        for _ in range(10):
            begin = program._launch("cudaLaunchKernel", 3, 7, 20)
            program.events.append(_kernel(program, begin))
        program.events.append(annotation(f"ProfilerRange{number}", start, program.now - start))
    findings = program.judged(tmp_path).findings
    waits = [finding for finding in findings if finding.fix == "remove_sync"]
    assert waits
    assert "cudaStreamSynchronize" in waits[0].claim
    assert "stream.synchronize()" not in waits[0].claim


def _kernel(program: Program, begin: float) -> dict[str, Any]:
    return kernel("saxpy(int, float*)", begin, 20, program.number)
