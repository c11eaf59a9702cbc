"""What a CUDA graph captures of steps that wait, on hand-made traces and on recorded programs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kineto_files import op
from small_programs import MUL, STEPS, Program

from warpline.replay.graph.model import NodeKind

KERNELS, KERNEL_US = 10, 4.0


def looked_at(program: Program) -> None:
    """A number is read."""
    start = program.now
    program.copy("DtoH (Device -> Pinned)", 1.5, 4)
    program.wait()
    program.events.append(op("aten::item", start, program.now - start))


def launched(program: Program, count: int = KERNELS) -> None:
    for _ in range(count):
        program.op("aten::mul", (MUL, KERNEL_US), cpu=30)


@pytest.mark.parametrize(("reads", "pieces"), [(2, 1), (3, 1), (4, 5)])
def test_numbers_that_are_read_now_and_then_do_not_cut_the_graph(reads: int, pieces: int, tmp_path: Path) -> None:
    """Ten kernels, then so many times a number is read and ten more follow: one graph, unless it is read too often."""
    program = Program()
    for _ in range(STEPS):
        with program.step():
            launched(program)
            for _ in range(reads):
                looked_at(program)
                launched(program)
    asked = program.asked(tmp_path)
    kernels = (reads + 1) * KERNELS
    work = kernels * KERNEL_US * 1e3 + reads * 1_500 + (kernels + reads) * asked.labelled.device.graph_gap.expected
    predicted = asked.ask("cuda_graph").new_step_ns
    if pieces == 1:
        assert predicted.expected == pytest.approx(work, rel=0.03)
        assert predicted.high > work + reads * asked.labelled.host.graph_launch.high, (
            "the worst case has a graph for each"
        )
    else:
        assert work + pieces * asked.labelled.host.graph_launch.expected < predicted.expected


def test_each_token_of_a_decoder_is_worth_a_graph(tmp_path: Path) -> None:
    """Four tokens a step, each of forty kernels, and a read whether the answer has ended."""
    program = Program()
    for _ in range(STEPS):
        with program.step():
            for _ in range(4):
                launched(program, 40)
                looked_at(program)
    asked = program.asked(tmp_path)
    work = (
        160 * (KERNEL_US * 1e3 + asked.labelled.device.graph_gap.expected)
        + 4 * asked.labelled.host.graph_launch.expected
    )
    assert work < asked.ask("cuda_graph").new_step_ns.expected < work + 4 * 60_000 < 0.4 * asked.bare.step_ns.expected


def test_a_number_that_is_read_at_the_end_is_waited_for(tmp_path: Path) -> None:
    """The graph, the wait, 200 µs of Python, and the next graph; what leads to the first launch is captured, too."""
    program = Program()
    for _ in range(STEPS):
        with program.step():
            program.op("aten::view", cpu=267)
            launched(program)
            looked_at(program)
            program.python(200)
    asked = program.asked(tmp_path)
    labelled, duration = asked.labelled, asked.trial("cuda_graph").duration
    waits = labelled.calls_like("Synchronize") & labelled.in_steps
    assert (duration[waits] == labelled.graph.duration[waits]).all()
    # From the wait to the first launch: 200 µs, and in the next step 1 of Python, 268 for the view, 31 before the call.
    recorded = labelled.graph.measured_end - labelled.graph.measured_start
    between = np.flatnonzero(
        (labelled.graph.kind == NodeKind.SEGMENT) & (recorded > 490_000) & (labelled.step < STEPS - 1)
    )
    assert len(between) == STEPS - 1
    assert duration[between] == pytest.approx(0.4 * labelled.graph.duration[between], rel=0.01)


def test_inputs_from_ordinary_memory_still_hold_the_cpu(tmp_path: Path) -> None:
    program = Program()
    for _ in range(STEPS):
        with program.step():
            launched(program)
            program.copy("HtoD (Pageable -> Device)", 2, 512)
            launched(program)
    asked = program.asked(tmp_path)
    labelled, trial = asked.labelled, asked.trial("cuda_graph")
    waits = labelled.calls_like("Synchronize") & labelled.in_steps
    assert waits.any()
    assert (trial.duration[waits] == labelled.graph.duration[waits]).all()
