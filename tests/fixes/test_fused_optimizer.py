"""Updates of parameters: which loops are updates, what a fused optimiser takes, and what a CUDA graph leaves alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_programs import GEMM_BF16, MUL, STEPS, Program

from warpline.replay import WhatIf
from warpline.replay.costs import shares
from warpline.replay.patterns.optimizers import counted_on_the_host, in_optimizer

ADAM = ["mul_", "add_", "mul_", "addcmul_", "sqrt", "add_", "addcdiv_"]
PARAMETERS = 16
KERNEL_US = 2.0


def trained(
    folder: Path,
    ops: list[str],
    shapes: list[list[int]],
    *,
    number: str = "",
    backward: bool = True,
    first_op_us: float = 10,
) -> WhatIf:
    """A product, and then a loop over parameters that does these ops with each."""
    program = Program()
    for _ in range(STEPS):
        with program.step():
            if backward:
                with program.within("autograd::engine::evaluate_function: MmBackward0"):
                    program.op("aten::mm", (GEMM_BF16, 20), shapes=[[512, 512], [512, 512]])
            for parameter in range(PARAMETERS):
                shape = shapes[parameter % len(shapes)]
                for place, name in enumerate(ops):
                    cpu = first_op_us if parameter == place == 0 else 10
                    program.op(f"aten::{name}", (MUL, KERNEL_US), cpu=cpu, shapes=[shape, shape])
                program.events[-1]["args"]["Concrete Inputs"] = ["", "", number]
            program.wait()
    return program.asked(folder)


def updates_per_step(asked: WhatIf) -> float:
    labelled = asked.labelled
    return float((labelled.once(in_optimizer) & labelled.in_steps & labelled.is_work).sum()) / STEPS


@pytest.mark.parametrize(
    ("ops", "number", "found"),
    [
        (ADAM, "", True),
        (["mul", "sub_"], "1", True),  # p -= rate * gradient
        (["mul_", "add_", "add_"], "-0.01", True),  # momentum, and a step against it
        (["mul_", "add_"], "0.1", False),  # an average that follows
        (["sub", "mul", "sub_"], "1", False),  # the same, as average -= share * (average - parameter)
        (["lerp_"], "", False),
        (["sqrt", "div"], "", False),  # nothing is updated
        (["mul_", "tanh", "sqrt", "div_"], "", False),
    ],
)
def test_an_update_divides_by_a_root_or_goes_against_the_gradient(
    ops: list[str], number: str, found: bool, tmp_path: Path
) -> None:
    asked = trained(tmp_path, ops, [[256, 256], [256]], number=number)
    assert updates_per_step(asked) == (PARAMETERS * len(ops) if found else 0)


@pytest.mark.parametrize(
    ("shapes", "backward", "found"),
    [([[64], [32]], False, True), ([[64]], True, True), ([[64]], False, False)],
)
def test_turns_of_one_shape_are_a_solver_where_nothing_was_differentiated(
    shapes: list[list[int]], backward: bool, found: bool, tmp_path: Path
) -> None:
    assert (updates_per_step(trained(tmp_path, ADAM, shapes, backward=backward)) > 0) == found


def test_an_op_that_takes_longer_than_any_dispatch_keeps_its_time(tmp_path: Path) -> None:
    """20 ms in one op of the optimizer: it waits for something, which a fused optimizer would wait for too."""
    short, long = (
        trained(tmp_path, ADAM, [[256, 256], [256]], first_op_us=us).trial("fused_optimizer").step_ns
        for us in (10, 20_000)
    )
    assert long - short == pytest.approx(20_000_000, rel=0.01)


def test_an_update_written_by_hand_becomes_one_launch(tmp_path: Path) -> None:
    asked = trained(tmp_path, ADAM, [[256, 256], [256]])
    trial = asked.trial("fused_optimizer")
    labelled = asked.labelled
    left = labelled.is_work & labelled.in_steps & ~trial.gone
    assert left.sum() == 2 * STEPS
    kernels = PARAMETERS * len(ADAM)
    host = labelled.host.fused_step.expected + kernels / 8 * labelled.host.fused_parameter.expected
    mine = labelled.once(in_optimizer) & labelled.in_steps & ~labelled.is_work
    assert trial.duration[mine].sum() / STEPS == pytest.approx(host)
    # Seven tensors of the 15 that five different ops read and write, and a tenth more.
    share = 7 / (2 + 3 + 4 + 2 + 4) * shares.FUSED_OPTIMIZER_DEVICE.expected
    assert trial.duration[left].sum() / STEPS == pytest.approx(20_000 + share * kernels * KERNEL_US * 1e3)
    assert not any(asked.trial("batch").changed), "it is no list for anybody else"


def test_where_no_launch_of_an_update_was_recorded_nothing_else_pays_for_it(tmp_path: Path) -> None:
    program = Program()
    for _ in range(STEPS):
        with program.step(), program.range("Optimizer.step#Adam.step"):
            for _ in range(PARAMETERS):
                program.op("aten::addcdiv_", (MUL, KERNEL_US), shapes=[[256], [256], [256]])
            program.wait()
    program.events = [event for event in program.events if event["name"] != "cudaLaunchKernel"]
    asked = program.asked(tmp_path)
    trial, outside = asked.trial("fused_optimizer"), ~asked.labelled.once(in_optimizer)
    assert trial.gone.any()
    assert trial.duration[outside].tolist() == asked.labelled.graph.duration[outside].tolist()


@pytest.mark.parametrize("shapes", ["x", [3], [None], [["a"]], [{}]])
def test_shapes_that_are_none_hide_no_update(shapes: object, tmp_path: Path) -> None:
    program = Program()
    for _ in range(STEPS):
        with program.step():
            for name in PARAMETERS * ADAM:
                program.op(f"aten::{name}", (MUL, KERNEL_US), cpu=10)
                program.events[-1]["args"] |= {"Input Dims": shapes, "Concrete Inputs": shapes}
    assert updates_per_step(program.asked(tmp_path)) == 0


def test_a_loop_with_a_count_of_steps_on_the_host_is_not_captured(tmp_path: Path) -> None:
    """Corrections that change with every step would be frozen in a graph; a constant rate is not."""
    for name, ops, stays in (("adam", ADAM, True), ("descent", ["mul", "sub_"], False)):
        (tmp_path / name).mkdir()
        asked = trained(tmp_path / name, ops, [[256, 256], [256]], number="1")
        labelled = asked.labelled
        loop = labelled.once(in_optimizer) & labelled.in_steps & ~labelled.is_work
        assert labelled.once(counted_on_the_host).any() == stays
        whole = labelled.graph.duration[loop].sum()
        captured = asked.trial("cuda_graph").duration[loop].sum()
        assert captured == (pytest.approx(whole) if stays else pytest.approx(0, abs=0.05 * whole))


def test_a_count_on_the_device_can_be_captured(tmp_path: Path) -> None:
    program = Program()
    for _ in range(STEPS):
        with program.step(), program.range("Optimizer.step#Adam.step"):
            for _ in range(PARAMETERS):
                program.op("aten::add_", (MUL, KERNEL_US), shapes=[[], []])
                program.op("aten::sqrt", (MUL, KERNEL_US), shapes=[[256]])
                program.op("aten::addcdiv_", (MUL, KERNEL_US), shapes=[[256], [256], [256]])
    assert not program.asked(tmp_path).labelled.once(counted_on_the_host).any()
