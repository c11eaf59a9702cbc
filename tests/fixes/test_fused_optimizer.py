"""Updates of parameters: which loops are updates, what a fused optimiser takes, and what a CUDA graph leaves alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from nsys_files import Export
from small_programs import GEMM_BF16, MUL, STEPS, Program

from warpline.errors import CannotAnswer
from warpline.findings.fix_table import whatif
from warpline.fixes.registry import all_fixes
from warpline.replay import WhatIf
from warpline.replay.costs import shares
from warpline.replay.patterns.optimizers import counted_on_the_host, in_optimizer
from warpline.replay.representative_steps import steps_to_judge
from warpline.trace.open import open_trace

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


KERNELS = {
    "lerp": "void at::native::vectorized_elementwise_kernel<4, at::native::lerp_scalar_kernel(float, float)>",
    "sqrt": "void at::native::vectorized_elementwise_kernel<4, at::native::sqrt_kernel_cuda(float)>",
    "addcdiv": "void at::native::vectorized_elementwise_kernel<4, at::native::addcdiv_cuda_kernel(float, float)>",
    "pow": "void at::native::vectorized_elementwise_kernel<4, at::native::pow_tensor_scalar_kernel_impl<float>(float)>",
    "tanh": "void at::native::vectorized_elementwise_kernel<4, at::native::tanh_kernel_cuda(float)>",
}


def without_ops(folder: Path, kernels: list[str], blocks: list[int]) -> WhatIf:
    """Four steps, each a product and a loop over parameters that launches these kernels for each; no op is recorded."""
    export, now, number = Export(), 1_000_000, 0
    for _ in range(4):
        begin = now
        launched = [("gemm", 8)]
        launched += [(KERNELS[name], blocks[one % len(blocks)]) for one in range(PARAMETERS) for name in kernels]
        for name, size in launched:
            number += 1
            export.call(now, now + 5_000, "cudaLaunchKernel", number)
            export.kernel(now + 8_000, now + 10_000, name, number, gridX=size, gridY=1, gridZ=1)
            now += 12_000
        export.range(begin, now, "step")
        now += 20_000
    return WhatIf(steps_to_judge(open_trace(export.write(folder / "report.sqlite"), cache=False)), all_fixes())


@pytest.mark.parametrize(
    ("kernels", "blocks", "found"),
    [
        (["lerp", "sqrt", "addcdiv"], [64, 1], True),
        (["lerp", "sqrt", "addcdiv"], [64], False),  # turns of one size may be a solver
        (["lerp", "tanh", "addcdiv"], [64, 1], False),
        (["lerp", "sqrt", "tanh"], [64, 1], False),
    ],
)
def test_without_ops_an_update_shows_in_its_kernels(
    kernels: list[str], blocks: list[int], found: bool, tmp_path: Path
) -> None:
    labelled = without_ops(tmp_path, kernels, blocks).labelled
    in_step = labelled.once(in_optimizer) & labelled.is_work & (labelled.step == 1)
    assert in_step.sum() == (PARAMETERS * 3 if found else 0)


@pytest.mark.parametrize(("more", "counted"), [([], True), (["pow"], False)])
def test_without_ops_powers_on_the_device_show_that_it_counts_the_steps(
    more: list[str], counted: bool, tmp_path: Path
) -> None:
    labelled = without_ops(tmp_path, ["lerp", "sqrt", "addcdiv", *more], [64, 1]).labelled
    assert bool(np.any(labelled.once(counted_on_the_host))) == counted


def test_a_file_without_ops_is_not_said_to_have_no_such_fault(tmp_path: Path) -> None:
    trace = without_ops(tmp_path, ["tanh"], [64, 1]).trace
    with pytest.raises(CannotAnswer, match=r"fused_optimizer cannot be seen in this file: it shows in ops"):
        whatif(trace, ["fused_optimizer"])
