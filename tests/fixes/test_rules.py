"""Every rule finds its fault in a tiny program, and leaves the program alone that only looks like it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
from small_programs import (
    ALL_REDUCE,
    CAT,
    CONV_LAST,
    DIRECT_COPY,
    FUSED_ADAM,
    GEMM_BF16,
    GEMM_DOUBLE,
    GEMM_FP32,
    GEMM_ODD,
    GEMM_OLD,
    GEMM_TF32,
    MUL,
    MUL_DOUBLE,
    SCAN,
    SIDE_STREAM,
    SOFTMAX,
    TO_FIRST,
    TO_LAST,
    V100,
    Body,
    Program,
    judged,
)

from warpline.findings.judge import Judgement
from warpline.findings.model import Finding
from warpline.fixes.registry import all_fixes, fix_of, rules


def cold_start(program: Program) -> None:
    if program.steps == 0:
        program.call("cuModuleLoadData", 5000)
        program.op("aten::mul", (MUL, 50), cpu=20_000, launch=5000)
    loaded_before_the_steps(program)


def loaded_before_the_steps(program: Program) -> None:
    for _ in range(9):
        program.op("aten::mul", (MUL, 50))
    program.wait()


def slow_input(program: Program) -> None:
    with program.range("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"):
        program.python(3000)
    program.copy("HtoD (Pageable -> Device)", 10, 1 << 16)
    program.large_product(500)
    program.wait()


def loads_behind_the_device(program: Program) -> None:
    with program.range("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"):
        program.python(600)
    program.copy("HtoD (Pinned -> Device)", 1, 1 << 10)
    program.large_product(2000)


def hidden_sync(program: Program) -> None:
    for _ in range(8):
        program.op("aten::mm", (GEMM_BF16, 40), cpu=30)
        program.wait()


def one_wait_in_a_long_step(program: Program) -> None:
    for _ in range(8):
        program.large_product(5000)
    program.wait()


def pageable_copy(program: Program) -> None:
    program.copy("HtoD (Pageable -> Device)", 3000, 32 << 20)
    program.large_product(500)


def pinned_copy(program: Program) -> None:
    program.copy("HtoD (Pinned -> Device)", 600, 32 << 20)
    program.large_product(500)


def large_copy_to_host(program: Program) -> None:
    program.large_product(100)
    program.copy("DtoH (Device -> Pageable)", 1500, 8 << 20)
    program.op("aten::argmax", cpu=300)


def results_behind_compute(program: Program) -> None:
    program.large_product(2000)
    program.copy("DtoH (Device -> Pinned)", 200, 8 << 20, stream=SIDE_STREAM)


def many_small_copies(program: Program) -> None:
    for _ in range(48):
        program.copy("HtoD (Pageable -> Device)", 1, 4096)
    program.op("aten::mm", (GEMM_BF16, 10))


def small_copies_behind_compute(program: Program) -> None:
    program.large_product(5000)
    for _ in range(48):
        program.copy("HtoD (Pinned -> Device)", 1, 4096, stream=SIDE_STREAM)


def copy_not_overlapped(program: Program) -> None:
    program.copy("HtoD (Pinned -> Device)", 600, 32 << 20)
    program.large_product(1000)
    program.copy("DtoH (Device -> Pinned)", 600, 32 << 20)


def results_not_overlapped(program: Program) -> None:
    program.large_product(1000)
    program.copy("DtoH (Device -> Pinned)", 600, 32 << 20)


def copies_on_their_own_stream(program: Program) -> None:
    program.large_product(1000)
    program.copy("HtoD (Pinned -> Device)", 400, 16 << 20, stream=SIDE_STREAM)
    program.copy("DtoH (Device -> Pinned)", 400, 16 << 20, stream=SIDE_STREAM)


def allocator_churn(program: Program) -> None:
    program.call("cudaMalloc", 150)
    program.op("aten::mm", (GEMM_BF16, 50))
    program.wait()
    program.call("cudaFree", 150)


def allocates_and_keeps(program: Program) -> None:
    program.op("aten::mm", (GEMM_BF16, 50))
    program.wait()


def cat_growth(program: Program) -> None:
    program.op("aten::cat", (CAT, 300))
    program.op("aten::mm", (GEMM_BF16, 50))


def small_cat(program: Program) -> None:
    program.op("aten::cat", (CAT, 2))
    program.large_product(2000)


def redundant_copies(program: Program) -> None:
    for _ in range(4):
        program.op("aten::clone", (DIRECT_COPY, 100))
        program.op("aten::mm", (GEMM_BF16, 50))


def copies_into_a_cache(program: Program) -> None:
    for _ in range(4):
        program.op("aten::copy_", (DIRECT_COPY, 100))
        program.op("aten::mm", (GEMM_BF16, 50))


def unfused_attention(program: Program) -> None:
    program.op("aten::bmm", (GEMM_BF16, 160))
    program.op("aten::mul", (MUL, 250))
    program.op("aten::_softmax", (SOFTMAX, 580))
    program.op("aten::bmm", (GEMM_BF16, 150))


def softmax_of_a_classifier(program: Program) -> None:
    program.op("aten::mm", (GEMM_BF16, 160))
    program.op("aten::_softmax", (SOFTMAX, 580))
    program.op("aten::mm", (GEMM_BF16, 150))


def double_precision(program: Program) -> None:
    for _ in range(2):
        program.op("aten::mul", (MUL_DOUBLE, 100), shapes=[[4096, 4096], [4096]], types=["float", "double"])
        program.op("aten::mm", (GEMM_DOUBLE, 1100), dtype="double")


def numbers_in_double(program: Program) -> None:
    for _ in range(2):
        program.op("aten::mul", (MUL, 100), shapes=[[4096, 4096], []], types=["float", "double"])
        program.op("aten::mm", (GEMM_TF32, 1100), dtype="float")


def fp32_gemm(program: Program) -> None:
    for _ in range(2):
        program.op("aten::mm", (GEMM_FP32, 680), dtype="float")


def tf32_gemm(program: Program) -> None:
    for _ in range(2):
        program.op("aten::mm", (GEMM_TF32, 680), dtype="float")


def misaligned_gemm(program: Program) -> None:
    for _ in range(2):
        program.op("aten::mm", (GEMM_ODD, 450), shapes=[[4096, 2047], [2047, 4093]])


def aligned_gemm(program: Program) -> None:
    for _ in range(2):
        program.op("aten::mm", (GEMM_ODD, 450), shapes=[[4096, 2048], [2048, 4096]])


def channels_first(program: Program) -> None:
    for _ in range(4):
        program.op("aten::cudnn_convolution", (TO_LAST, 23), (TO_LAST, 23), (CONV_LAST, 86), (TO_FIRST, 51))


def channels_last(program: Program) -> None:
    for _ in range(4):
        program.op("aten::cudnn_convolution", (CONV_LAST, 86))


def per_parameter_optimizer(program: Program) -> None:
    with program.range("Optimizer.step#Adam.step"):
        for _ in range(56):
            program.op("aten::mul_", (MUL, 1), cpu=12)
    program.wait()


def small_fused_optimizer(program: Program) -> None:
    program.python(200)
    with program.range("Optimizer.step#Adam.step"):
        for _ in range(2):
            program.op("aten::_fused_adam_", (FUSED_ADAM, 20), cpu=12)
    program.wait()


def unfused_optimizer(program: Program) -> None:
    with program.range("Optimizer.step#Adam.step"):
        for _ in range(5):
            for name in ("mul_", "lerp_", "addcmul_", "sqrt", "div_", "addcdiv_"):
                program.op(f"aten::{name}", (MUL, 40))


def large_fused_optimizer(program: Program) -> None:
    with program.range("Optimizer.step#Adam.step"):
        for _ in range(2):
            program.op("aten::_fused_adam_", (FUSED_ADAM, 500))


def many_small_gemms(program: Program) -> None:
    for _ in range(16):
        program.op("aten::select", cpu=2)
        program.op("aten::mm", (GEMM_BF16, 3), cpu=15, shapes=[[1, 512], [512, 512]])
        program.op("aten::mul", (MUL, 2), cpu=10, shapes=[[1, 512]])
    program.wait()


def layers_in_a_row(program: Program) -> None:
    for _ in range(16):
        program.op("aten::mm", (GEMM_BF16, 3), cpu=15, shapes=[[64, 512], [512, 512]])
        program.op("aten::mul", (MUL, 2), cpu=10, shapes=[[64, 512]])
    program.wait()


def exposed_collective(program: Program) -> None:
    program.large_product(500)
    program.op("autograd::engine::evaluate_function: MmBackward0", (GEMM_BF16, 100))
    program.op("c10d::allreduce_", (ALL_REDUCE, 800))
    program.large_product(500)


def collective_behind_compute(program: Program) -> None:
    program.op("c10d::allreduce_", (ALL_REDUCE, 400), stream=SIDE_STREAM)
    program.large_product(1000)


def full_precision(program: Program) -> None:
    for _ in range(4):
        program.op("aten::mm", (GEMM_TF32, 350), dtype="float")


def half_precision(program: Program) -> None:
    for _ in range(4):
        program.op("aten::mm", (GEMM_BF16, 350))


def fp32_on_volta(program: Program) -> None:
    program.device = V100
    for _ in range(4):
        program.op("aten::mm", ("volta_sgemm_128x64_nn", 350), dtype="float")


def fp16_on_volta(program: Program) -> None:
    program.device = V100
    for _ in range(4):
        program.op("aten::mm", ("volta_h884gemm_128x64_nn", 350), dtype="c10::Half")


def unfused_elementwise(program: Program) -> None:
    for _ in range(9):
        program.op("aten::mul", (MUL, 80))


def one_pass_between_products(program: Program) -> None:
    for _ in range(5):
        program.op("aten::mul", (MUL, 80))
        program.large_product(200)


def launch_bound(program: Program) -> None:
    for _ in range(30):
        program.op("aten::mm", (GEMM_BF16, 2), cpu=20)
    program.wait()


def small_kernels_behind_a_large_one(program: Program) -> None:
    program.large_product(5000)
    for _ in range(30):
        program.op("aten::mm", (GEMM_BF16, 2), cpu=20, stream=SIDE_STREAM)


def uncompiled(program: Program) -> None:
    for _ in range(40):
        program.op("aten::mul", (MUL, 2), cpu=12)
    program.wait()


def pointwise_behind_a_large_one(program: Program) -> None:
    program.large_product(5000)
    for _ in range(40):
        program.op("aten::mul", (MUL, 2), cpu=12, stream=SIDE_STREAM)


SMALL, HUGE = [[1024, 1024]], [[16384, 16384]]


def below_roofline(program: Program) -> None:
    for _ in range(2):
        program.op("aten::mul", (MUL, 500), shapes=SMALL, dtype="float")
        program.large_product(200)


def at_the_roof(program: Program) -> None:
    for _ in range(2):
        program.op("aten::mul", (MUL, 500), shapes=HUGE, dtype="float")
        program.large_product(200)


def old_architecture(program: Program) -> None:
    for _ in range(2):
        program.op("aten::mm", (GEMM_OLD, 900), shapes=[[4096, 4096], [4096, 4096]])


def old_kernels_as_fast_as_new_ones(program: Program) -> None:
    for _ in range(2):
        program.op("aten::mm", (GEMM_OLD, 190), shapes=[[4096, 4096], [4096, 4096]])


def small_grid(program: Program) -> None:
    program.op("aten::cumsum", (SCAN, 1400), shapes=[[4, 1 << 20]], dtype="float", grid=4)


def large_grid(program: Program) -> None:
    program.op("aten::cumsum", (SCAN, 1400), shapes=[[4096, 1 << 10]], dtype="float", grid=4096)


def serialised_streams(program: Program) -> None:
    for _ in range(6):
        program.op("aten::cumsum", (SCAN, 400), grid=8)


def large_kernels_in_a_row(program: Program) -> None:
    for _ in range(6):
        program.op("aten::cumsum", (SCAN, 400), grid=264)


def dtype_casts(program: Program) -> None:
    for types in (["float", "c10::BFloat16"], ["c10::BFloat16", "float"]):
        program.op("aten::copy_", (DIRECT_COPY, 200), shapes=[[4096, 4096], [4096, 4096]], types=types)
        program.large_product(200)


def copies_of_one_type(program: Program) -> None:
    for _ in range(2):
        program.op("aten::copy_", (DIRECT_COPY, 200), shapes=[[4096, 4096], [4096, 4096]])
        program.large_product(200)


def straggling_kernel(program: Program) -> None:
    for iteration in range(12):
        program.op("aten::mul", (MUL, 500 if iteration == 5 else 20))


def equally_long_kernels(program: Program) -> None:
    for _ in range(12):
        program.op("aten::mul", (MUL, 60))


def tiny_kernels(program: Program) -> None:
    for _ in range(5):
        with program.range("Optimizer.step#Adam.step"):
            for _ in range(16):
                program.op("aten::mul_", (MUL, 1), cpu=20)
        program.wait()


def tiny_kernels_behind_a_large_one(program: Program) -> None:
    program.large_product(8000)
    for _ in range(80):
        program.op("aten::mul_", (MUL, 1), cpu=20, stream=SIDE_STREAM)
    for _ in range(5):
        program.wait(SIDE_STREAM)


def small_batch(program: Program) -> None:
    for _ in range(40):
        program.op("aten::mul", (MUL, 2), shapes=[[64, 64]], dtype="float", grid=4)
    program.wait()


def large_batch(program: Program) -> None:
    for _ in range(40):
        program.op("aten::mul", (MUL, 60), shapes=[[4096, 4096]], dtype="float", grid=65536)
    program.wait()


def small_micro_batches(program: Program) -> None:
    for _ in range(4):
        for _ in range(10):
            program.op("aten::mul", (MUL, 2), shapes=[[64, 64]], dtype="float", grid=4)
        for _ in range(10):
            with program.within("autograd::engine::evaluate_function: MulBackward0"):
                program.op("aten::mul", (MUL, 2), shapes=[[64, 64]], dtype="float", grid=4)
    with program.range("Optimizer.step#SGD.step"):
        program.op("aten::_foreach_add_", (MUL, 2), shapes=[[64, 64]], dtype="float", grid=4)
    program.wait()


def one_pass_for_each_update(program: Program) -> None:
    for _ in range(40):
        program.op("aten::mul", (MUL, 2), shapes=[[64, 64]], dtype="float", grid=4)
    for _ in range(40):
        with program.within("autograd::engine::evaluate_function: MulBackward0"):
            program.op("aten::mul", (MUL, 2), shapes=[[64, 64]], dtype="float", grid=4)
    with program.range("Optimizer.step#SGD.step"):
        program.op("aten::_foreach_add_", (MUL, 2), shapes=[[64, 64]], dtype="float", grid=4)
    program.wait()


def host_code(program: Program) -> None:
    program.large_product(500)
    program.wait()
    program.python(20_000)
    program.op("aten::mul", (MUL, 50))
    program.wait()


def host_code_behind_the_device(program: Program) -> None:
    program.large_product(30_000)
    program.python(20_000)
    program.wait()


CASES: dict[str, tuple[Body, Body]] = {
    "old_architecture": (old_architecture, old_kernels_as_fast_as_new_ones),
    "small_grid": (small_grid, large_grid),
    "serialised_streams": (serialised_streams, large_kernels_in_a_row),
    "dtype_casts": (dtype_casts, copies_of_one_type),
    "straggling_kernel": (straggling_kernel, equally_long_kernels),
    "tiny_kernels": (tiny_kernels, tiny_kernels_behind_a_large_one),
    "cold_start": (cold_start, loaded_before_the_steps),
    "slow_input": (slow_input, loads_behind_the_device),
    "hidden_sync": (hidden_sync, one_wait_in_a_long_step),
    "pageable_copy": (pageable_copy, pinned_copy),
    "large_copy_to_host": (large_copy_to_host, results_behind_compute),
    "many_small_copies": (many_small_copies, small_copies_behind_compute),
    "copy_not_overlapped": (copy_not_overlapped, copies_on_their_own_stream),
    "results_not_overlapped": (results_not_overlapped, copies_on_their_own_stream),
    "allocator_churn": (allocator_churn, allocates_and_keeps),
    "cat_growth": (cat_growth, small_cat),
    "redundant_copies": (redundant_copies, copies_into_a_cache),
    "unfused_attention": (unfused_attention, softmax_of_a_classifier),
    "double_precision": (double_precision, numbers_in_double),
    "fp32_gemm": (fp32_gemm, tf32_gemm),
    "misaligned_gemm": (misaligned_gemm, aligned_gemm),
    "channels_first": (channels_first, channels_last),
    "per_parameter_optimizer": (per_parameter_optimizer, small_fused_optimizer),
    "unfused_optimizer": (unfused_optimizer, large_fused_optimizer),
    "many_small_gemms": (many_small_gemms, layers_in_a_row),
    "small_batch": (small_batch, large_batch),
    "small_micro_batches": (small_micro_batches, one_pass_for_each_update),
    "host_code": (host_code, host_code_behind_the_device),
    "exposed_collective": (exposed_collective, collective_behind_compute),
    "full_precision": (full_precision, half_precision),
    "fp32_without_tf32": (fp32_on_volta, fp16_on_volta),
    "unfused_elementwise": (unfused_elementwise, one_pass_between_products),
    "launch_bound": (launch_bound, small_kernels_behind_a_large_one),
    "uncompiled": (uncompiled, pointwise_behind_a_large_one),
    "below_roofline": (below_roofline, at_the_roof),
}
"""For each rule a step that has its fault, and one without it that looks like it."""


SPEAKS_TO_THE_PROGRAM = {
    "hidden_sync",
    "large_copy_to_host",
    "pageable_copy",
    "per_parameter_optimizer",
    "unfused_optimizer",
    "slow_input",
    "launch_bound",
}
"""Rules that say what this very program should write; test_advice.py looks at what they say."""


LOST_ONCE = {"cold_start"}
"""Rules of time that is lost once: gains count from the steps without it."""


def found(judgement: Judgement) -> dict[str, Finding]:
    return {finding.rule: finding for finding in judgement.findings}


@pytest.fixture(scope="module")
def judgement_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Body], Judgement]:
    """Each program judged once; every finding about it must keep the contract."""

    @cache
    def judge(body: Body) -> Judgement:
        judgement = judged(tmp_path_factory.mktemp("program"), body)
        assert_contract(judgement)
        return judgement

    return judge


Judge = Callable[[Body], Judgement]


def test_every_rule_is_tested_and_has_a_fix_that_can_be_replayed() -> None:
    assert {rule.name for rule in rules()} - set(CASES) == set(), (
        "add a program with the fault, and a look-alike, to CASES"
    )
    assert set(CASES) - {rule.name for rule in rules()} == set()
    assert {fix_of(rule.name).name for rule in rules()} <= set(all_fixes())


@pytest.mark.parametrize("rule", CASES)
def test_the_fault_is_found(rule: str, judgement_of: Judge) -> None:
    finding = found(judgement_of(CASES[rule][0]))[rule]
    (made_by,) = [one for one in rules() if one.name == rule]
    assert (finding.cause, finding.fix) == (made_by.cause, fix_of(made_by.name).name)
    assert finding.how == made_by.advice.pytorch or rule in SPEAKS_TO_THE_PROGRAM
    assert finding.gain.expected >= 1.2 or rule in LOST_ONCE


@pytest.mark.parametrize("rule", CASES)
def test_the_look_alike_is_left_alone(rule: str, judgement_of: Judge) -> None:
    listed = found(judgement_of(CASES[rule][1])).get(rule)
    # Some are listed all the same, so that nobody has to wonder about them: without a gain, and without conviction.
    assert listed is None or (listed.gain.expected < 1.05 and listed.confidence == "low")


KEYS = {
    "rule",
    "cause",
    "fix",
    "words",
    "claim",
    "lost_ns",
    "evidence_ns",
    "device_share",
    "once_ns",
    "effort",
    "gain",
    "new_step_ns",
    "confidence",
    "where",
    "how",
    "verify",
}


def assert_contract(judgement: Judgement) -> None:
    gains = [finding.gain.expected for finding in judgement.findings]
    assert gains == sorted(gains, reverse=True)
    for finding in judgement.findings:
        answer = finding.to_dict()
        assert set(answer) == KEYS
        assert 0 < answer["gain"]["low"] <= answer["gain"]["expected"] <= answer["gain"]["high"]
        after = answer["new_step_ns"]
        assert 0 < after["low"] <= after["expected"] <= after["high"]
        assert all(isinstance(after[key], int) for key in ("low", "expected", "high"))
        assert isinstance(answer["lost_ns"], int)
        assert 0 <= answer["lost_ns"] <= judgement.evidence.step_ns + 1
        assert answer["confidence"] in {"high", "medium", "low"}
        assert answer["claim"]
        assert answer["how"]
        assert answer["verify"]
        assert all(
            set(place) == {"op", "file", "line", "count", "function", "line_is"} and place["count"] > 0
            for place in answer["where"]
        )
