"""A larger batch and larger micro-batches: what is paid once, what grows with the samples, and when nothing is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from small_programs import GEMM_BF16, MUL, Body, Program, asked, judged

from warpline.replay.patterns.larger_batches import MOST_TIMES, passes

FEW_BLOCKS, MANY_BLOCKS = 4, 4096
"""A small part of an H200's 132 multiprocessors, and two waves of blocks of 128 threads (16 on each)."""


def operations(program: Program, count: int, *, grid: int = FEW_BLOCKS, length: float = 2.0) -> None:
    for _ in range(count):
        program.op("aten::mul", (MUL, length), shapes=[[64, 64]], dtype="float", grid=grid)


def small(program: Program) -> None:
    operations(program, 40)


def filling(program: Program) -> None:
    operations(program, 40, grid=MANY_BLOCKS)


def large(program: Program) -> None:
    operations(program, 4, grid=MANY_BLOCKS, length=400)


def training(micro_batches: int, *, other: bool = False) -> Body:
    """Forward and backward passes of equal ops (or of others each time), and one update."""

    def step(program: Program) -> None:
        for number in range(micro_batches):
            for _ in range(10):
                name = f"aten::op{number}" if other else "aten::mul"
                program.op(name, (MUL, 2), shapes=[[64, 64]], dtype="float", grid=FEW_BLOCKS)
            for _ in range(10):
                with program.within("autograd::engine::evaluate_function: MulBackward0"):
                    operations(program, 1)
        with program.range("Optimizer.step#SGD.step"):
            operations(program, 5)

    return step


def test_launches_are_paid_once_for_the_larger_batch(tmp_path: Path) -> None:
    # Each op takes 12 µs of the CPU and 2 µs of the GPU: the batch may grow by 6, so by the power of two above it, 8.
    # None of its kernels fills the device: they take as long as now, and the step an eighth for each eighth of samples.
    prediction = asked(tmp_path, small).ask("larger_batch")
    assert prediction.new_step_ns.expected == pytest.approx(prediction.old_step_ns.expected / 8, rel=0.02)


def test_kernels_that_fill_the_device_grow_with_the_samples(tmp_path: Path) -> None:
    # 40 kernels of 2 µs take as long for each sample as now, and nothing else does.
    prediction = asked(tmp_path, filling).ask("larger_batch")
    assert prediction.new_step_ns.expected >= 80_000
    assert prediction.new_step_ns.expected < prediction.old_step_ns.expected / 3


def test_a_busy_device_needs_no_larger_batch(tmp_path: Path) -> None:
    assert not asked(tmp_path, large).ask("larger_batch").applies


def test_loading_takes_as_long_for_each_sample(tmp_path: Path) -> None:
    def loading(program: Program) -> None:
        with program.range("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"):
            program.python(600)
        operations(program, 40)

    prediction = asked(tmp_path, loading).ask("larger_batch")
    assert prediction.new_step_ns.expected >= 600_000


def test_a_larger_batch_is_no_answer_to_a_cold_start(tmp_path: Path) -> None:
    def loading_code(program: Program) -> None:
        program.call("cuModuleLoadData", 5000)
        operations(program, 40)

    prediction = asked(tmp_path, loading_code).ask("larger_batch")
    assert prediction.new_step_ns.expected >= 5_000_000  # the calls of a program that starts are not shared by samples


def test_the_finding_says_for_how_many_samples_and_what_it_changes(tmp_path: Path) -> None:
    found = {finding.fix: finding for finding in judged(tmp_path, small).findings}["larger_batch"]
    assert "a batch 8 times as large" in found.claim
    assert "as many samples as now" in found.claim
    trained = {finding.fix: finding for finding in judged(tmp_path, training(1)).findings}["larger_batch"]
    assert "other gradients" in trained.claim


def test_what_keeps_the_result_comes_first(tmp_path: Path) -> None:
    judgement = judged(tmp_path, small)
    gains = {finding.fix: finding.gain.expected for finding in judgement.findings}
    assert gains["larger_batch"] > 1.5
    assert judgement.plan[0].fix != "larger_batch"


def test_a_plan_that_ends_with_a_larger_batch_never_goes_up(tmp_path: Path) -> None:
    judgement = judged(tmp_path, training(1))
    steps = [judgement.evidence.step_ns, *(step.new_step_ns.expected for step in judgement.plan)]
    assert steps == sorted(steps, reverse=True)


def test_a_loop_over_samples_grows_with_them(tmp_path: Path) -> None:
    def loop(program: Program) -> None:
        for _ in range(16):
            program.op("aten::select", cpu=2)
            program.op("aten::mm", (GEMM_BF16, 3), cpu=15, shapes=[[1, 512], [512, 512]])
            program.op("aten::mul", (MUL, 2), cpu=10, shapes=[[1, 512]])
        program.wait()

    judgement = judged(tmp_path, loop)
    assert judgement.evidence.gains("batch", 1.05), "the loop is found"
    assert "larger_batch" not in {finding.fix for finding in judgement.findings}


def test_backward_passes_are_counted_by_their_launches(tmp_path: Path) -> None:
    # Four steps in view, of four passes and one update each.
    found = passes(asked(tmp_path, training(4)).labelled)
    assert (found.backward, found.updates, found.accumulated) == (16, 4, 4)


def test_the_first_pass_after_an_update_may_fetch_the_data_of_all(tmp_path: Path) -> None:
    # As transformers' Trainer does: 8 copies for each of 4 passes before the first one, which has 10 ops of its own.
    def step(program: Program) -> None:
        for _ in range(4 * 8):
            program.op("aten::copy_", (MUL, 1), shapes=[[64]], dtype="float", grid=1)
        training(4)(program)

    assert passes(asked(tmp_path, step).labelled).accumulated == 4


def test_two_losses_with_a_backward_pass_each_are_no_accumulation(tmp_path: Path) -> None:
    def step(program: Program) -> None:
        for name in ("aten::actor", "aten::critic"):
            for _ in range(10):
                program.op(name, (MUL, 2), shapes=[[64, 64]], dtype="float", grid=FEW_BLOCKS)
            with program.within("autograd::engine::evaluate_function: MulBackward0"):
                operations(program, 1)
        with program.range("Optimizer.step#SGD.step"):
            operations(program, 5)

    assert passes(asked(tmp_path, step).labelled).accumulated == 1


def test_micro_batches_become_one_and_the_update_stays(tmp_path: Path) -> None:
    question = asked(tmp_path, training(4))
    prediction = question.ask("larger_micro_batch")
    # Of 85 ops, 80 belong to the passes and become 20; the five of the update stay.
    assert prediction.gain.expected == pytest.approx(85 / (80 / 4 + 5), rel=0.1)
    assert not question.ask("larger_batch").applies, "the same samples, with the same result, come first"


def test_the_result_is_the_same_and_the_sentence_says_so(tmp_path: Path) -> None:
    judgement = judged(tmp_path, training(4))
    found = {finding.fix: finding for finding in judgement.findings}["larger_micro_batch"]
    assert "Gradients of 4 backward passes" in found.claim
    assert "same result" in found.claim


@pytest.mark.parametrize(("micro_batches", "times"), [(2, 2), (6, 6), (16, MOST_TIMES), (11, 1)])
def test_micro_batches_are_joined_in_equal_groups(tmp_path: Path, micro_batches: int, times: int) -> None:
    prediction = asked(tmp_path, training(micro_batches)).ask("larger_micro_batch")
    if times == 1:
        assert not prediction.applies
    else:
        operations_left = 20 * micro_batches / times + 5
        assert prediction.gain.expected == pytest.approx((20 * micro_batches + 5) / operations_left, rel=0.1)


@pytest.mark.parametrize("body", [training(1), training(4, other=True), small], ids=["one", "others", "inference"])
def test_other_passes_are_no_accumulation(tmp_path: Path, body: Callable[[Program], None]) -> None:
    assert not asked(tmp_path, body).ask("larger_micro_batch").applies
