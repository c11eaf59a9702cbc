"""What a claim counts is what its fix changes, and where it points is the program's own code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kineto_files import kernel, op
from paths import SHARED
from small_programs import (
    ALL_REDUCE,
    CAT,
    DIRECT_COPY,
    GEMM_BF16,
    GEMM_DOUBLE,
    GEMM_FP32,
    GEMM_ODD,
    GEMM_TF32,
    MUL,
    MUL_DOUBLE,
    SIDE_STREAM,
    SOFTMAX,
    STEPS,
    Body,
    Program,
    judged,
)

from warpline.findings.judge import judge
from warpline.findings.model import Finding
from warpline.fixes.words import listed
from warpline.trace.open import open_trace
from warpline.units import count, several


def claims(folder: Path, body: Body) -> dict[str, str]:
    return {finding.rule: finding.claim for finding in judged(folder, body).findings}


def test_numbers_in_claims_are_whole_where_they_can_be() -> None:
    assert [count(value) for value in (6.0, 0.25, 1234.4, 2.04)] == ["6", "0.2", "1,234", "2"]
    assert [several(1, "copy", "copies"), several(2, "copy", "copies")] == ["1 copy", "2 copies"]
    assert [listed([]), listed(["a"]), listed(["a", "b", "c"])] == ["", "a", "a, b and c"]


def test_the_softmax_of_a_loss_is_no_attention(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        program.op("aten::bmm", (GEMM_BF16, 160))
        program.op("aten::_softmax", (SOFTMAX, 580))
        program.op("aten::bmm", (GEMM_BF16, 150))
        for _ in range(20):
            program.large_product(10)
        program.op("aten::_log_softmax", (SOFTMAX, 300))

    assert (
        "unfused 1 time a step (about 3 kernels each, 890 µs in total)" in claims(tmp_path, body)["unfused_attention"]
    )


def test_products_outside_the_loop_are_not_counted(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        for _ in range(16):
            program.op("aten::select", cpu=2)
            program.op("aten::mm", (GEMM_BF16, 3), cpu=15, shapes=[[1, 512], [512, 512]])
        program.large_product(10)
        program.op("aten::mul", (MUL, 2))
        program.wait()

    claim = claims(tmp_path, body)["many_small_gemms"]
    assert "16 small kernels a step, 16 of them GEMMs, where a batch needs 1 kernel" in claim


def test_aligned_products_are_not_counted_and_the_odd_size_is_named(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        program.op("aten::mm", (GEMM_ODD, 450), shapes=[[4096, 2047], [2047, 4093]])
        program.large_product(800)

    claim = claims(tmp_path, body)["misaligned_gemm"]
    assert "such as 4096x2047 by 2047x4093" in claim
    assert claim.endswith(": 1 a step, 450 µs.")


def test_only_clones_are_redundant_copies(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        program.op("aten::clone", (DIRECT_COPY, 100))
        program.op("aten::copy_", (DIRECT_COPY, 700))

    assert claims(tmp_path, body)["redundant_copies"].endswith(": 1 copy a step, 100 µs.")


def test_products_in_16_bits_are_not_full_precision(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        program.op("aten::mm", (GEMM_TF32, 350), dtype="float")
        program.large_product(500)

    assert "take 350 µs a step (GEMMs in TF32 350 µs)" in claims(tmp_path, body)["full_precision"]


@pytest.mark.parametrize(
    ("double_us", "rule", "counted"),
    [
        (5000, "double_precision", "1 GEMM (5.00 ms) and 3 other kernels (60.0 µs) a step run in FP64"),
        (500, "fp32_gemm", ": 2 a step, 1.36 ms."),
    ],
)
def test_doubles_and_fp32_products_are_counted_apart(tmp_path: Path, double_us: float, rule: str, counted: str) -> None:
    def body(program: Program) -> None:
        for _ in range(2):
            program.op("aten::mm", (GEMM_FP32, 680), dtype="float")
        program.op("aten::mm", (GEMM_DOUBLE, double_us), dtype="double")
        for _ in range(3):
            program.op("aten::mul", (MUL_DOUBLE, 20), dtype="double")

    assert counted in claims(tmp_path, body)[rule]


def test_a_stray_double_does_not_take_the_credit_of_fp32_products(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        program.op("aten::mm", (GEMM_FP32, 680), dtype="float")
        program.op("aten::mul", (MUL_DOUBLE, 5), dtype="double")

    assert {"fp32_gemm", "double_precision"} & set(claims(tmp_path, body)) == {"fp32_gemm"}


def test_without_fp32_products_only_doubles_are_spoken_of(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        program.op("aten::mm", (GEMM_DOUBLE, 500), dtype="double")

    assert {"fp32_gemm", "double_precision", "full_precision"} & set(claims(tmp_path, body)) == {"double_precision"}


@pytest.mark.parametrize(
    ("gemm", "dtype", "words"), [(GEMM_DOUBLE, "double", "FP32 and TF32 instead of FP64"), (GEMM_FP32, "float", "TF32")]
)
def test_a_fix_is_called_what_it_does_about_the_fault(tmp_path: Path, gemm: str, dtype: str, words: str) -> None:
    judgement = judged(tmp_path, lambda program: program.op("aten::mm", (gemm, 1500), dtype=dtype))
    assert f"First, {words} would bring it to" in judgement.verdict.sentence
    assert [step.words for step in judgement.plan if step.fix == "tf32"] == [words]
    assert {finding.words for finding in judgement.findings if finding.fix == "tf32"} == {words}


def test_work_in_32_bits_leaves_doubles_out(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        program.op("aten::mm", (GEMM_TF32, 350), dtype="float")
        program.op("aten::mul", (MUL_DOUBLE, 10), dtype="double")
        program.large_product(500)

    assert "take 350 µs a step (GEMMs in TF32 350 µs)" in claims(tmp_path, body)["full_precision"]


def test_of_a_collective_only_what_nothing_hides_is_exposed(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        program.op("aten::mm", (GEMM_BF16, 300), stream=SIDE_STREAM)
        program.op("c10d::allreduce_", (ALL_REDUCE, 800))
        program.large_product(500)
        program.wait()

    claim = claims(tmp_path, body)["exposed_collective"]
    total, exposed = (
        float(part.split(" µs")[0].split()[-1]) for part in claim.split(" with no")[0].split(", of which")
    )
    assert total == 800
    assert 500 <= exposed < 540


def test_a_compiled_program_is_not_told_to_compile(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        start = program.now
        for _ in range(9):
            program.op("triton_poi_fused_mul_0", ("triton_poi_fused_mul_0", 80))
        program.events.append(op("Torch-Compiled Region: 0/0", start, program.now - start))

    assert not {"unfused_elementwise", "uncompiled"} & set(claims(tmp_path, body))


def test_what_xla_generated_is_not_told_to_compile(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        for number in range(9):
            program.op("PjitFunction(step)", (f"loop_multiply_fusion_{number}", 80))

    assert not {"unfused_elementwise", "uncompiled"} & set(claims(tmp_path, body))


def item(program: Program) -> None:
    """A number is read: a small copy, and the wait for it, in one op."""
    start = program.now
    program.copy("DtoH (Device -> Pinned)", 1, 4)
    program.wait()
    program.events.append(op("aten::item", start, program.now - start))


def test_waits_are_counted_once_and_named_as_they_are_written(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        for _ in range(3):
            program.op("aten::mm", (GEMM_BF16, 40), cpu=30)
            item(program)

    assert "in 3 calls a step (3 .item())" in claims(tmp_path, body)["hidden_sync"]


def test_loading_is_pointed_at_the_sleep_and_its_line(tmp_path: Path) -> None:
    program = Program()
    for _ in range(STEPS):
        with program.step(), program.frame("train.py(12): fit") as fit:
            with program.frame("<built-in function sleep>", fit):
                program.python(800)
            program.copy("HtoD (Pinned -> Device)", 10, 1 << 16)
            program.large_product(500)
            program.wait()
    (finding,) = [one for one in program.judged(tmp_path).findings if one.rule == "slow_input"]
    assert "(sleep)" in finding.claim
    assert [(place.op, place.file, place.line) for place in finding.where] == [("sleep", "train.py", 12)]


def test_a_backward_op_is_pointed_at_the_line_of_its_forward_op(tmp_path: Path) -> None:
    program = Program()
    for step in range(STEPS):
        number = {"Sequence number": step + 1}
        with program.step():
            with program.frame("train.py(12): fit"):
                program.events.append(op("aten::mm", program.now, 9, **number, **{"Fwd thread id": 0}))
                program.python(10)
            start = program.now
            for _ in range(4):
                program.op("aten::clone", (DIRECT_COPY, 100))
            length = program.now - start
            program.events.append(op("MmBackward0", start, length, **number, **{"Fwd thread id": 1}))
            program.wait()
    (finding,) = [one for one in program.judged(tmp_path).findings if one.rule == "redundant_copies"]
    assert [(place.op, place.file, place.line) for place in finding.where] == [("aten::clone", "train.py", 12)]


def test_a_change_knows_what_went_what_moved_and_what_is_launched_otherwise(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        for _ in range(10):
            program.op("aten::mm", (GEMM_BF16, 2), cpu=20)
        program.op("aten::clone", (DIRECT_COPY, 100))
        program.copy("DtoH (Device -> Pinned)", 600, 32 << 20)

    evidence = judged(tmp_path, body).evidence
    labelled = evidence.labelled
    dropped, moved, graph = (evidence.changed(fix) for fix in ("drop_copies", "streams", "cuda_graph"))
    assert labelled.name[dropped.work].present() == [DIRECT_COPY]
    assert np.array_equal(dropped.work, dropped.gone & labelled.in_steps)
    assert labelled.kind[moved.moved].present() == ["memcpy"]
    assert evidence.per_step(graph.relaunched) == 12
    assert not graph.gone.any()


BAD_TRAINING = SHARED / "h200" / "kineto" / "bad_training.json.gz"


@pytest.mark.shared
def test_every_planted_mistake_of_bad_training_is_found_at_its_line() -> None:
    found: dict[str, Finding] = {finding.rule: finding for finding in judge(open_trace(BAD_TRAINING)).findings}
    planted = {
        "pageable_copy": {"aten::copy_"},
        "slow_input": {"sleep"},
        "hidden_sync": {"aten::item", "aten::is_nonzero", "aten::index"},
        "per_parameter_optimizer": {"aten::addcmul_"},
        "tiny_kernels": {"aten::mul_"},
    }
    for rule, ops in planted.items():
        places = {place.op: (place.file, place.line) for place in found[rule].where}
        assert ops <= set(places), rule
        assert {places[op] for op in ops} == {("workloads.py", 57)}, rule
    for words in ("2 .item()", "boolean mask", "clip_grad_norm_ in bad_training, defined at workloads.py:57"):
        assert words in found["hidden_sync"].claim


def test_what_attention_or_a_buffer_does_away_with_is_not_to_be_fused(tmp_path: Path) -> None:
    def joined(new: int) -> Body:
        def body(program: Program) -> None:
            for _ in range(4):
                shapes: Any = [[[16, 4096, 64], [16, new, 64]], []]
                program.op("aten::cat", (CAT, 300), shapes=shapes, types=["TensorList", "Scalar"])
                program.op("aten::mul", (MUL, 30), shapes=[[16, 4096 + new, 64]], dtype="float")
                program.op("aten::mm", (GEMM_BF16, 50))

        return body

    def attention(program: Program) -> None:
        program.op("aten::bmm", (GEMM_BF16, 160))
        program.op("aten::mul", (MUL, 250))
        program.op("aten::_softmax", (SOFTMAX, 580))
        program.op("aten::bmm", (GEMM_BF16, 150))

    def found(name: str, body: Body) -> set[str]:
        (folder := tmp_path / name).mkdir()
        return {"unfused_elementwise", "unfused_attention", "cat_growth"} & set(claims(folder, body))

    # A token more for what was there is growth; two halves are none.
    assert found("grown", joined(1)) == {"cat_growth"}
    assert found("halves", joined(4096)) == {"unfused_elementwise"}
    assert found("attention", attention) == {"unfused_attention"}


@pytest.mark.shared
def test_owlv2_waits_for_its_data_and_has_unfused_attention() -> None:
    """Half of each step passes in `scipy.ndimage.zoom` under the DataLoader; attention is the best fix of kernels."""
    judgement = judge(open_trace(SHARED / "public" / "kineto" / "tracelens_h100_owlv2.json.gz"))
    assert judgement.verdict.cause == "input"
    kernels = [finding.rule for finding in judgement.findings if finding.cause == "kernel"]
    assert kernels[0] == "unfused_attention"


def test_a_kernel_for_odd_sizes_says_so_without_shapes(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        program.op("aten::mm", (GEMM_ODD, 450))
        program.large_product(800)

    claim = claims(tmp_path, body)["misaligned_gemm"]
    assert "or 4 (fp32), run on slower kernels: 1 a step, 450 µs" in claim


def test_the_products_are_named_by_what_they_are(tmp_path: Path) -> None:
    conv = GEMM_TF32.replace("gemm", "fprop_implicit_gemm", 1)

    def body(program: Program) -> None:
        program.op("aten::mm", (GEMM_TF32, 350), dtype="float")
        program.op("aten::cudnn_convolution", (conv, 150), dtype="float")
        program.large_product(500)

    claim = claims(tmp_path, body)["full_precision"]
    assert claim == "Kernels on FP32 data take 500 µs a step (GEMMs and convolutions in TF32 500 µs)."


def test_copies_that_are_left_out_are_told(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        program.copy("HtoD (Pageable -> Device)", 1_000, 1 << 20)
        program.copy("HtoD (Pageable -> Device)", 2, 8)
        program.large_product(500)

    assert (
        "1 copy a step (1.05 MB, 1.00 ms, beside 1 small one) from pageable" in claims(tmp_path, body)["pageable_copy"]
    )


def test_an_optimizer_over_lists_of_parameters_is_not_one_per_parameter(tmp_path: Path) -> None:
    lists = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<2>, at::native::(anonymous namespace)::BinaryOpFunctor<float, 2, 1, 1>>"

    def body(kernel: str, prefix: str) -> Body:
        def step(program: Program) -> None:
            program.large_product(20)
            with program.range("Optimizer.step#AdamW.step"):
                for name in ("mul_", "lerp_", "addcmul_", "sqrt", "div_", "add_", "addcdiv_", "mul_") * 10:
                    program.op(f"aten::{prefix}{name}", (kernel, 2), dtype="float")

        return step

    found = {finding.rule: finding for finding in judged(tmp_path, body(lists, "_foreach_")).findings}
    told = found["per_parameter_optimizer"]
    assert (
        told.claim
        == "The optimizer launches 80 kernels a step, 2.00 µs each, several for each list of parameters (foreach)."
    )
    assert told.how.endswith("fused=True)")
    found = {finding.rule: finding for finding in judged(tmp_path, body(MUL, "")).findings}
    assert found["per_parameter_optimizer"].claim.endswith("2.00 µs each, several per parameter.")
    assert found["per_parameter_optimizer"].how.endswith("without foreach=False")


def test_an_allocation_that_nothing_repeats_is_not_made_again(tmp_path: Path) -> None:
    program = Program()
    for number in range(6):
        program.op(f"aten::op{number}", (f"kernel{number}", 50.0 + 20 * number))
        program.call("cudaMalloc", 400)
    assert "cat_growth" not in {finding.rule for finding in program.judged(tmp_path).findings}


def test_gradients_that_are_set_to_zero_are_no_part_of_a_compiled_model(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        for _ in range(20):
            program.op("aten::mul", (MUL, 2), dtype="float")
        with program.range("Optimizer.zero_grad#SGD.zero_grad"):
            for _ in range(30):
                program.op("aten::fill_", (MUL, 2), dtype="float")

    assert claims(tmp_path, body)["uncompiled"].startswith("20 operations a step are dispatched one by one")


def test_kernels_of_a_graph_are_not_dispatched(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        program.call("cudaGraphLaunch", 5)
        begin = max(program.now, program.free.get(7, 0.0)) + 5
        for at in range(24):
            program.events.append(kernel(MUL, begin + 10 * at, 9, program.number))
        program.free[7] = begin + 240
        program.wait()
        program.python(200)

    assert not {"uncompiled", "unfused_elementwise"} & set(claims(tmp_path, body))
