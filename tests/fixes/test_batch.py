"""Loops that could be one batch: which iterations are independent, and what the batch takes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from kineto_files import op, write
from small_programs import GEMM_BF16, H200, MUL, STEPS, Body, Program, repeated

from warpline.fixes.registry import question_about
from warpline.replay import WhatIf
from warpline.replay.patterns.iterations import Iteration
from warpline.replay.patterns.loops import RootOps
from warpline.replay.patterns.op_results import Key
from warpline.replay.representative_steps import steps_to_judge
from warpline.trace.open import open_trace
from warpline.work import call_from_kineto

GATHER = "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int, long, long, long, long, bool)"
Op = tuple[str, list[list[int]]]


def iteration_of(parts: list[list[int]], *ops: Op) -> Iteration:
    """An iteration for which these parts are cut, and that calls these ops, all in fp32."""
    iteration = Iteration()
    for part in parts:
        iteration.give(Key(tuple(part), "fp32"))
    for name, shapes in ops:
        types = ["float"] * len(shapes)
        iteration.see(call_from_kineto(f"aten::{name}", json.dumps(shapes), json.dumps(types)))
    return iteration


@pytest.mark.parametrize(
    ("parts", "ops"),
    [
        # tanh(x[t] + state @ W), and the same with a product of the input: one part cannot feed both.
        ([[32, 256]], [("mm", [[32, 256], [256, 256]]), ("add", [[32, 256], [32, 256]]), ("tanh", [[32, 256]])]),
        (
            [[32, 256]],
            [
                ("mm", [[32, 256], [256, 256]]),
                ("mm", [[32, 256], [256, 256]]),
                ("add", [[32, 256], [32, 256]]),
                ("tanh", [[32, 256]]),
            ],
        ),
        # state = decay[t] * state + x[t]
        ([[8, 64], [8, 64]], [("mul", [[8, 64], [8, 64]]), ("add", [[8, 64], [8, 64]])]),
        # x = relu(x @ weights[layer]): x is no part, and comes out as it went in.
        ([[256, 128]], [("mm", [[64, 256], [256, 128]]), ("mm", [[64, 128], [128, 256]]), ("relu", [[64, 256]])]),
        # A cell whose results a profile does not say.
        (
            [[32, 100]],
            [
                ("linear", [[32, 100], [1024, 100]]),
                ("linear", [[32, 256], [1024, 256]]),
                ("_thnn_fused_lstm_cell", [[32, 1024], [32, 1024], [32, 256]]),
            ],
        ),
        # total.add_(part)
        ([[64, 64]], [("add_", [[64, 64], [64, 64]])]),
    ],
)
def test_a_turn_that_takes_what_it_makes_may_carry_a_state(parts: list[list[int]], ops: list[Op]) -> None:
    assert iteration_of(parts, *ops).may_carry_a_state


@pytest.mark.parametrize(
    ("parts", "ops"),
    [
        # A head: scores of the query and the key, and their product with the value.
        (
            [[128, 64], [64, 128], [128, 64]],
            [("mm", [[128, 64], [64, 128]]), ("softmax", [[128, 128]]), ("mm", [[128, 128], [128, 64]])],
        ),
        # A request's own row, and its own noise, meet: both are parts.
        ([[32000], [32000]], [("softmax", [[32000]]), ("div", [[32000], [32000]]), ("argmax", [[32000]])]),
        # A member of an ensemble: the same input for all, and other shapes inside.
        (
            [],
            [
                ("linear", [[64, 128], [256, 128], [256]]),
                ("tanh", [[64, 256]]),
                ("linear", [[64, 256], [10, 256], [10]]),
            ],
        ),
        # What was looked up (the profile does not say with what) is cut apart and compared with itself.
        ([], [("index", [[2048, 4]]), ("exp", [[100, 4]]), ("sub", [[100, 1, 4], [1, 100, 4]])]),
        # A span is overwritten.
        ([[64, 80]], [("fill_", [[64, 80]])]),
    ],
)
def test_a_turn_on_parts_of_its_own_carries_none(parts: list[list[int]], ops: list[Op]) -> None:
    assert not iteration_of(parts, *ops).may_carry_a_state


MEMBER: list[Op] = [
    ("linear", [[64, 128], [256, 128], [256]]),
    ("tanh", [[64, 256]]),
    ("linear", [[64, 256], [1, 256], [1]]),
]


@pytest.mark.parametrize(
    ("parts", "ops", "added"),
    [
        # total = total + member(x)
        ([], [*MEMBER, ("add", [[64, 1], [64, 1]])], True),
        # loss = loss + criterion(member(x))
        ([], [*MEMBER, ("mse_loss", [[64, 1], [64, 1]]), ("add", [[], []])], True),
        # x = x + layer(x)
        (
            [],
            [("linear", [[64, 256], [512, 256]]), ("linear", [[64, 512], [256, 512]]), ("add", [[64, 256], [64, 256]])],
            False,
        ),
        # state = decay[t] * state + x[t]
        ([[8, 64], [8, 64]], [("mul", [[8, 64], [8, 64]]), ("add", [[8, 64], [8, 64]])], False),
        # The sum is used again.
        ([], [*MEMBER, ("add", [[64, 1], [64, 1]]), ("tanh", [[64, 1]])], False),
    ],
)
def test_turns_whose_results_are_only_added_up_are_independent(
    parts: list[list[int]], ops: list[Op], added: bool
) -> None:
    assert iteration_of(parts, *ops).is_added_up is added


@pytest.mark.parametrize(
    ("parts", "ops", "kept", "updates"),
    [
        # (x - row).pow(2).sum(1) for each row, and x @ w for each w.
        ([[64]], [("sub", [[512, 64], [64]]), ("pow", [[512, 64]])], (512,), False),
        ([[64, 64]], [("mm", [[8, 64], [64, 64]])], (8, 64), False),
        # state = tanh(addmm(x[t], state, w)), and of gates: the state meets what updates it.
        ([[8, 64]], [("addmm", [[8, 64], [8, 64], [64, 64]]), ("tanh", [[8, 64]])], (8, 64), True),
        (
            [[8, 16]],
            [("linear", [[8, 16], [64, 16]]), ("linear", [[8, 64], [64, 64]]), ("add", [[8, 64], [8, 64]])],
            (8, 64),
            True,
        ),
        # Without parts: the same network on the same input gives scores, a chain keeps its states.
        ([], [("linear", [[8, 64], [64, 64]]), ("linear", [[8, 64], [10, 64]])], (8, 10), False),
        ([], [("linear", [[8, 64], [64, 64]]), ("relu", [[8, 64]])], (8, 64), True),
    ],
)
def test_of_turns_that_are_all_kept_a_state_meets_its_update(
    parts: list[list[int]], ops: list[Op], kept: tuple[int, ...], updates: bool
) -> None:
    assert iteration_of(parts, *ops).may_update_a_state(bool(parts), [kept]) is updates


@pytest.mark.parametrize(("gathered", "carries"), [(None, True), ((32, 256), True), ((32, 10), False)])
def test_what_is_put_together_says_what_an_unknown_op_made(gathered: tuple[int, ...] | None, carries: bool) -> None:
    iteration = iteration_of([[32, 64]], ("linear", [[32, 64], [100, 64]]))
    iteration.see(call_from_kineto("custom::cell", "[[32, 100], [32, 256]]", '["float", "float"]'))
    if gathered:
        iteration.gather(gathered)
    assert iteration.may_carry_a_state is carries


def asked(folder: Path, program: Program) -> WhatIf:
    return question_about(steps_to_judge(open_trace(write(folder, program.events, **H200), cache=False)))


def test_layers_that_are_alike_are_one_turn_where_so_many_parts_were_cut(tmp_path: Path) -> None:
    program = Program()
    for _ in range(STEPS):
        with program.step():
            for _ in range(8):
                program.op("aten::select", cpu=2, shapes=[[8, 4, 512]])
                for _layer in range(2):
                    program.op("aten::mm", (GEMM_BF16, 4), cpu=15, shapes=[[4, 512], [512, 512]])
                    program.op("aten::mul", (MUL, 2), cpu=10, shapes=[[4, 512]])
            program.wait()
    trial = asked(tmp_path, program).trial("batch")
    # Of 8 iterations with 4 kernels each one remains, not a single layer of it.
    assert trial.changed[0] / STEPS == 7 * 4


def test_the_first_turn_of_a_sum_goes_with_the_others(tmp_path: Path) -> None:
    program = Program()
    for _ in range(STEPS):
        with program.step():
            for iteration in range(8):
                program.op("aten::select", cpu=2, shapes=[[8, 4, 512]])
                program.op("aten::mm", (GEMM_BF16, 4), cpu=15, shapes=[[4, 512], [512, 16]])
                program.op("aten::mul", (MUL, 2), cpu=10, shapes=[[4, 16]])
                program.op("aten::add", (MUL, 2), cpu=10, shapes=[[4, 16], [4, 16] if iteration else []])
            program.wait()
    question = asked(tmp_path, program)
    left = question.labelled.is_work & ~question.trial("batch").gone & question.labelled.in_steps
    assert left.sum() == 3 * STEPS


@pytest.mark.parametrize(("last", "expected"), [(7, 2 + 1), (-1, 2 + 8)])
def test_a_backward_pass_is_batched_with_its_forward_pass(tmp_path: Path, last: int, expected: int) -> None:
    program = Program()
    for number in range(STEPS):
        with program.step():
            for iteration in range(8):
                program.op("aten::select", cpu=2, shapes=[[8, 4, 512]])
                program.op("aten::mm", (GEMM_BF16, 4), cpu=15, shapes=[[4, 512], [512, 16]])
                program.events[-1]["args"]["Sequence number"] = 100 * number + iteration
                program.op("aten::mul", (MUL, 2), cpu=10, shapes=[[4, 16]])
            for iteration in range(last, last - 8, -1):
                program.op("autograd::engine::evaluate_function: MmBackward0", (GEMM_BF16, 4), cpu=25)
                program.events[-1]["args"] |= {"Sequence number": 100 * number + iteration, "Fwd thread id": 1}
            program.wait()
    question = asked(tmp_path, program)
    left = question.labelled.is_work & ~question.trial("batch").gone & question.labelled.in_steps
    assert left.sum() == expected * STEPS


def test_gradients_that_the_engine_adds_up_are_part_of_the_batch(tmp_path: Path) -> None:
    program = Program()
    for number in range(STEPS):
        with program.step():
            for iteration in range(8):
                program.op("aten::select", cpu=2, shapes=[[8, 4, 512]])
                program.op("aten::mm", (GEMM_BF16, 4), cpu=15, shapes=[[4, 512], [512, 16]])
                program.events[-1]["args"]["Sequence number"] = 100 * number + iteration
            for iteration in range(7, -1, -1):
                begin, order = program.now, {"Sequence number": 100 * number + iteration, "Fwd thread id": 1}
                program.op("MmBackward0", (GEMM_BF16, 4), cpu=25)
                program.op("aten::add_", (MUL, 2), cpu=5, shapes=[[512, 16], [512, 16]])
                name = "autograd::engine::evaluate_function: MmBackward0"
                program.events.append(op(name, begin, program.now - begin, **order))
            program.wait()
    question = asked(tmp_path, program)
    left = question.labelled.is_work & ~question.trial("batch").gone & question.labelled.in_steps
    assert set(question.labelled.op_name[left].present()) == {"aten::mm", "MmBackward0"}
    assert left.sum() == 2 * STEPS


@pytest.mark.parametrize(("weights", "read"), [("shared", 1), ("cut", 8)])
def test_a_batch_reads_weights_once_that_all_turns_share(tmp_path: Path, weights: str, read: int) -> None:
    program = Program()
    for _ in range(STEPS):
        with program.step():
            for _ in range(8):
                program.op("aten::select", cpu=2, shapes=[[8, 4, 4096]])
                if weights == "cut":
                    program.op("aten::select", cpu=2, shapes=[[8, 4096, 4096]])
                program.op("aten::mm", (GEMM_BF16, 10), cpu=15, shapes=[[4, 4096], [4096, 4096]])
                program.op("aten::relu", (MUL, 2), cpu=8, shapes=[[4, 4096]])
            program.wait()
    question = asked(tmp_path, program)
    trial = question.trial("batch")
    left = question.labelled.is_work & ~trial.gone & question.labelled.in_steps & question.labelled.kernels("gemm")
    floor = question.labelled.floor_ns()[left]
    assert trial.duration[left] == pytest.approx(np.maximum(read * floor, 1.25 * 10_000), rel=0.05)


@pytest.mark.parametrize(("shapes", "batched"), [([[256, 256], [256]], True), ([[256, 256]], False)])
def test_updates_of_tensors_of_different_shapes_take_a_list(
    tmp_path: Path, shapes: list[list[int]], batched: bool
) -> None:
    program = Program()
    for _ in range(STEPS):
        with program.step():
            for iteration in range(16):
                shape = shapes[iteration % len(shapes)]
                program.op("aten::mul_", (MUL, 2), cpu=6, shapes=[shape, []], grid=4)
                program.op("aten::add_", (MUL, 2), cpu=6, shapes=[shape, shape], grid=4)
            program.wait()
    question = asked(tmp_path, program)
    trial = question.trial("batch")
    left = question.labelled.is_work & ~trial.gone & question.labelled.in_steps
    assert left.sum() == (2 if batched else 32) * STEPS


def test_a_batch_of_lookups_takes_a_block_for_every_row(tmp_path: Path) -> None:
    program = Program()
    for _ in range(STEPS):
        with program.step():
            for _ in range(16):
                program.op("aten::select", cpu=2, shapes=[[50_000, 16]], dtype="long int")
                shapes, types = [[1000, 32], [50_000]], ["c10::BFloat16", "long int"]
                program.op("aten::embedding", (GATHER, 5), cpu=20, shapes=shapes, types=types, grid=1)
            program.wait()
    question = asked(tmp_path, program)
    trial = question.trial("batch")
    left = question.labelled.is_work & ~trial.gone & question.labelled.in_steps
    # 16 times 50,000 rows of 0.62 ns, which is more than the sum of the lookups.
    assert trial.duration[left] == pytest.approx(16 * 50_000 * question.labelled.device.block.expected)


def recurrence(program: Program) -> None:
    """state = tanh(addmm(x[t], state, weights))"""
    for _ in range(8):
        program.op("aten::select", cpu=2, shapes=[[8, 8, 64]])
        program.op("aten::addmm", (GEMM_BF16, 4), cpu=15, shapes=[[8, 64], [8, 64], [64, 64]])
        program.op("aten::tanh", (MUL, 2), cpu=10, shapes=[[8, 64]])


def layers_in_a_row(program: Program) -> None:
    """x = relu(linear(x))"""
    for _ in range(8):
        program.op("aten::linear", (GEMM_BF16, 4), cpu=15, shapes=[[8, 64], [64, 64]])
        program.op("aten::relu", (MUL, 2), cpu=10, shapes=[[8, 64]])


def pages_from_the_host(program: Program) -> None:
    """Copies from the host are not work that the device could do at once."""
    for _ in range(8):
        program.copy("HtoD (Pinned -> Device)", 10, 1 << 18)


@pytest.mark.parametrize("body", [recurrence, layers_in_a_row, pages_from_the_host])
def test_what_depends_on_the_iteration_before_is_no_batch(body: Body, tmp_path: Path) -> None:
    program = repeated(body)
    assert not any(asked(tmp_path, program).trial("batch").changed)


def test_before_the_first_turn_of_a_loop_there_is_none(tmp_path: Path) -> None:
    program = Program()
    for _ in range(3):
        program.op("aten::select", cpu=2, shapes=[[8, 512]])
        program.op("aten::mul", (MUL, 2), cpu=10, shapes=[[512]])
    labelled = asked(tmp_path, program).labelled
    ops, iterations = RootOps(labelled), labelled.work.reshape(-1, 1)
    assert [ops.of_iteration(iterations, position).tolist() for position in range(3)] == [[], [2, 3], [4, 5]]
