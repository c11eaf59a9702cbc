"""Fixes of copies and joins on hand-made traces, with answers worked out on paper."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_programs import CAT, DIRECT_COPY, GEMM_BF16, MUL, STEPS, Body, Program, asked, judged

from warpline.replay import WhatIf
from warpline.replay.graph.model import NodeKind
from warpline.replay.patterns.copies import PASSING

PAGES, PAGE_BYTES = 20, 32 << 10
PAGES_BYTES = PAGES * PAGE_BYTES


def recorded(program: Program, **arguments: Any) -> None:
    """Adds arguments to the op that was written last."""
    program.events[-1]["args"].update(arguments)


def pages(kind: str, name: str = "aten::copy_", between: float = 0.0) -> Body:
    """A tensor is cut into pieces, which are copied one by one, and a product follows."""

    def body(program: Program) -> None:
        program.op("aten::unbind", cpu=200)
        for _ in range(PAGES):
            program.python(between)
            program.copy(kind, 1, PAGE_BYTES)
            program.events[-1]["name"] = name
        program.op("aten::mm", (GEMM_BF16, 50))
        program.wait()

    return body


def one_copy(question: WhatIf) -> tuple[float, float]:
    """Of the last step: the time of its one copy, and what the copy's call takes more than before."""
    labelled, trial = question.labelled, question.trial("coalesce_copies")
    copies = np.flatnonzero(labelled.is_copy & (labelled.step == STEPS - 1))
    first = copies[~trial.gone[copies]]
    assert len(first) == 1
    call = labelled.call_of_work[first]
    added = trial.duration[call] - labelled.graph.duration[call]
    return float(trial.duration[first][0]), float(added[0])


def test_pinned_pieces_are_not_gathered_but_put_into_their_places(tmp_path: Path) -> None:
    question = asked(tmp_path, pages("HtoD (Pinned -> Device)"))
    time, added = one_copy(question)
    host, device = question.labelled.host, question.labelled.device
    assert device.memory_byte is not None
    crossing = device.smallest_copy.expected + PAGES_BYTES * device.pinned_byte.expected
    placing = device.smallest_copy.expected + 2 * PAGES_BYTES * PASSING.expected * device.memory_byte.expected
    assert time == pytest.approx(crossing + placing)
    assert added == pytest.approx(host.launched_op.expected)


def test_pageable_pieces_are_gathered_by_the_host_and_need_no_place(tmp_path: Path) -> None:
    question = asked(tmp_path, pages("HtoD (Pageable -> Device)", "aten::to"))
    time, added = one_copy(question)
    host, device = question.labelled.host, question.labelled.device
    assert time == pytest.approx(device.smallest_copy.expected + PAGES_BYTES * device.pinned_byte.expected)
    assert added == pytest.approx(PAGES_BYTES * host.host_byte.expected)


def test_what_cut_the_pieces_out_of_a_tensor_goes_with_the_loop(tmp_path: Path) -> None:
    question = asked(tmp_path, pages("HtoD (Pinned -> Device)"))
    before, after = question.labelled.graph.duration, question.trial("coalesce_copies").duration
    cutting = (question.labelled.graph.kind == NodeKind.SEGMENT) & (before > 50_000) & question.labelled.in_steps
    assert cutting.sum() == STEPS
    assert (after[cutting] < 0.1 * before[cutting]).all()


def test_a_loop_that_makes_its_pieces_still_makes_them(tmp_path: Path) -> None:
    question = asked(tmp_path, pages("HtoD (Pinned -> Device)", between=200))
    labelled, trial = question.labelled, question.trial("coalesce_copies")
    making = np.flatnonzero(
        (labelled.graph.kind == NodeKind.SEGMENT) & (labelled.graph.duration > 190_000) & (trial.duration > 0)
    )
    last = making[labelled.step[making] == STEPS - 1]
    kept = trial.duration[last] / labelled.graph.duration[last]
    # Of 200 µs, at most 40 belong to the launch.
    assert (kept > 0.75).sum() >= PAGES - 2


def expanded_keys(reading: float, *, stored: bool = False) -> Body:
    """A cache of 32 × 8 heads is written for four query heads each, and multiplied."""
    shape, strides = [32, 8, 4, 4096, 128], [4194304, 524288, 524288 if stored else 0, 128, 1]

    def body(program: Program) -> None:
        with program.within("aten::clone"):
            program.op("aten::copy_", (DIRECT_COPY, 1000), shapes=[shape, shape])
            recorded(program, **{"Input Strides": [[16777216, 2097152, 524288, 128, 1], strides]})
        program.op("aten::bmm", (GEMM_BF16, reading), shapes=[[1024, 1, 128], [1024, 128, 4096]])
        program.op("aten::bmm", (GEMM_BF16, reading), shapes=[[1024, 1, 128], [1024, 128, 4096]])
        program.wait()

    return body


def reading_times(question: WhatIf) -> list[float]:
    labelled, trial = question.labelled, question.trial("drop_copies")
    assert trial.changed == (STEPS,)
    reading = np.flatnonzero(labelled.op_name.equal("aten::bmm") & (labelled.step == STEPS - 1))
    times: list[float] = (trial.duration[reading] / 1000).tolist()
    return times


def test_what_reads_an_expanded_copy_reads_a_quarter_without_it(tmp_path: Path) -> None:
    # 1,074 MB in 300 µs are bound by memory; of 1,074 + 0.3 + 8.4 MB, 805 need not be read by what comes first.
    first, second = reading_times(asked(tmp_path, expanded_keys(300)))
    assert first == pytest.approx(300 * (1 - 805.3 / 1082.4), rel=0.01)
    assert second == 300


@pytest.mark.parametrize(("reading", "stored"), [(3000, False), (300, True)])
def test_a_copy_of_the_same_size_or_a_reader_bound_by_arithmetic_changes_nothing_else(
    tmp_path: Path, reading: float, stored: bool
) -> None:
    assert reading_times(asked(tmp_path, expanded_keys(reading, stored=stored))) == [reading, reading]


def copied_within(outer: str, inner: str | None, kernel: str | None) -> Body:
    """An op that copies a tensor, by itself or by another op, and may launch a kernel of its own."""
    shape = [8000, 256]

    def body(program: Program) -> None:
        with program.within(outer):
            with program.within(inner) if inner else nullcontext():
                program.op("aten::copy_", (DIRECT_COPY, 500), shapes=[shape, shape])
            if kernel:
                program.op("aten::fill_", (kernel, 20))
        program.op("aten::mm", (GEMM_BF16, 300))
        program.wait()

    return body


@pytest.mark.parametrize(
    ("outer", "inner", "kernel", "removed"),
    [
        ("aten::reshape", "aten::clone", None, STEPS),
        # A norm that finds its input strided makes it contiguous for its own kernel.
        ("aten::native_layer_norm", "aten::contiguous", MUL, 0),
        # To change some rows, these copy all of them; index_copy_ does not.
        ("aten::index_copy", None, MUL, STEPS),
        ("aten::masked_fill", "aten::clone", MUL, STEPS),
        ("aten::index_copy_", None, MUL, 0),
    ],
)
def test_copies_go_that_the_program_asks_for_and_not_those_that_a_kernel_needs(
    tmp_path: Path, outer: str, inner: str | None, kernel: str | None, removed: int
) -> None:
    assert asked(tmp_path, copied_within(outer, inner, kernel)).trial("drop_copies").changed == (removed,)


def test_an_update_of_a_part_is_said_to_copy_the_whole(tmp_path: Path) -> None:
    found = judged(tmp_path, copied_within("aten::index_copy", None, MUL))
    (claim,) = [one.claim for one in found.findings if one.rule == "redundant_copies"]
    assert claim == "index_copy copies the whole tensor to change a part of it: 1 copy a step, 500 µs."
    assert found.verdict.fix == "drop_copies"
    assert found.verdict.cause in {"memory", "kernel"}


def joined(pieces: list[list[int]], *, strides: bool = True, engine: bool = False) -> Body:
    """Four times, pieces are joined and one kernel reads them."""

    def body(program: Program) -> None:
        for _ in range(4):
            with program.within("autograd::engine::evaluate_function: UnbindBackward0" if engine else "aten::stack"):
                program.op("aten::cat", (CAT, 60))
                recorded(program, **{"Input Dims": [pieces, []], "Input type": ["TensorList", "Scalar"]})
                if strides:
                    recorded(program, **{"Input Strides": [[[1]] * len(pieces), []]})
            program.op("aten::mm", (GEMM_BF16, 40))
        program.wait()

    return body


@pytest.mark.parametrize(
    ("body", "left"),
    [
        (joined([]), 0.0),  # a list too long to be recorded: not all made by the one kernel since
        (joined([[8]] * 6), 0.0),
        (joined([[800], [8]]), 1.8),  # grows: 3 % are written anew
        (joined([], strides=False), 1.8),  # an older profile, which lists no tensors
        (joined([[8]] * 6, engine=True), 60.0),  # the gradient of unbind
    ],
)
def test_joins_of_what_was_there_go_and_growing_ones_write_what_is_new(tmp_path: Path, body: Body, left: float) -> None:
    question = asked(tmp_path, body)
    labelled, trial = question.labelled, question.trial("preallocate")
    joins = labelled.op_name.equal("aten::cat") & labelled.in_steps
    assert trial.duration[joins].tolist() == pytest.approx([left * 1000] * 4 * STEPS)
    assert bool(trial.gone[joins].all()) == (left == 0.0)


@pytest.mark.parametrize(("size", "changed"), [(8, 0), (256, 0), (4096, STEPS)])
def test_a_few_numbers_need_no_pinned_memory(tmp_path: Path, size: int, changed: int) -> None:
    def body(program: Program) -> None:
        program.copy("HtoD (Pageable -> Device)", 1, size)
        program.op("aten::mm", (GEMM_BF16, 50))

    assert asked(tmp_path, body).trial("pin_memory").changed == (changed,)


@pytest.mark.parametrize(("memory", "left"), [("Pinned", 1000), ("Pageable", 1500)])
def test_a_copy_that_holds_its_thread_gains_nothing_by_a_stream_of_its_own(
    tmp_path: Path, memory: str, left: float
) -> None:
    def body(program: Program) -> None:
        program.copy(f"HtoD ({memory} -> Device)", 500, 16 << 20)
        program.op("aten::mm", (GEMM_BF16, 1000))

    step = asked(tmp_path, body).ask("prefetch").new_step_ns.expected / 1e3
    assert step == pytest.approx(left, rel=0.03)


@pytest.mark.parametrize(
    ("direction", "effort"), [("HtoD (Pageable -> Device)", "setting"), ("DtoH (Device -> Pageable)", "few_lines")]
)
def test_pinning_batches_is_a_setting_and_pinning_results_takes_a_buffer(
    direction: str, effort: str, tmp_path: Path
) -> None:
    def body(program: Program) -> None:
        program.copy(direction, 800, 8_000_000)
        program.op("aten::mm", (GEMM_BF16, 100))

    found = {finding.fix: finding for finding in judged(tmp_path, body).findings}
    assert found["pin_memory"].effort == effort


@pytest.mark.parametrize("after", [0, 30, 1000])
def test_a_reduction_on_the_host_goes_and_what_python_does_after_it_stays(tmp_path: Path, after: float) -> None:
    def body(program: Program) -> None:
        program.op("aten::mm", (GEMM_BF16, 50))
        program.copy("DtoH (Device -> Pageable)", 800, 8_000_000)
        program.op("aten::argmax", cpu=600)
        program.python(after)

    question = asked(tmp_path, body)
    labelled, trial = question.labelled, question.trial("reduce_before_copy")
    reducing = np.flatnonzero(
        (labelled.graph.kind == NodeKind.SEGMENT) & (labelled.graph.duration > 500_000) & labelled.in_steps
    )[1:-1]
    assert len(reducing) >= STEPS - 2
    left = np.maximum(labelled.graph.duration[reducing] - 600_000, 0.0) + labelled.host.launched_op.expected
    assert trial.duration[reducing] == pytest.approx(left, abs=10_000)  # the op took a little longer
