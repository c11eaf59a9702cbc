"""What one rank's file says about waiting in its collectives, worked out on paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kineto_files import Event, annotation, call, kernel, op, write
from small_programs import ALL_REDUCE, H200, Program

from warpline.analyses.collective_waits import least_waits_ns
from warpline.trace.open import open_trace


def collective(start: float, length: float, number: int, shape: list[int] | None, **recorded: Any) -> list[Event]:
    known: dict[str, Any] = {"Input Dims": [shape]} if shape else {}
    return [
        op("record_param_comms", start, 8, external=number, **known),
        call("cudaLaunchKernel", start + 2, 3, number, external=number),
        kernel(ALL_REDUCE, start + 10, length, number, **{"External id": number, **recorded}),
    ]


def waits_of(folder: Path, events: list[Event]) -> list[int]:
    trace = open_trace(write(folder, events, **H200), cache=False)
    return least_waits_ns(trace).tolist()


def test_equal_collectives_transfer_as_fast_as_the_shortest(tmp_path: Path) -> None:
    """Two sizes: 100, 40 and 300 µs of the one, 500 of the other, of which nothing is known."""
    events = [
        *collective(0, 100, 1, [8, 4096]),
        *collective(200, 40, 2, [8, 4096]),
        *collective(400, 300, 3, [8, 4096]),
        *collective(800, 500, 4, [64, 4096]),
    ]
    assert waits_of(tmp_path, events) == [60_000, 0, 260_000, 0]


def test_a_recorded_size_and_group_count_before_the_shape(tmp_path: Path) -> None:
    size = {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 256, "Out msg nelems": 256}
    events = [
        *collective(0, 100, 1, [1], **size, **{"Process Group Name": "1"}),
        *collective(200, 40, 2, [2], **size, **{"Process Group Name": "1"}),
        *collective(400, 300, 3, [2], **size, **{"Process Group Name": "2"}),
    ]
    assert waits_of(tmp_path, events) == [60_000, 0, 0]


@pytest.mark.parametrize(("counts", "expected"), [((1, 1), [0, 30_000]), ((1, 2), [0, 0, 0])])
def test_without_sizes_the_same_place_in_every_step_is_the_same_collective(
    counts: tuple[int, int], expected: list[int], tmp_path: Path
) -> None:
    events, number = list[Event](), 0
    for step, count in enumerate(counts):
        base = 1_000.0 * step
        events.append(annotation(f"ProfilerStep#{step}", base, 900))
        for place in range(count):
            number += 1
            begin = base + 300 * place + 10
            events.append(call("cudaLaunchKernel", begin, 3, number))
            events.append(kernel(ALL_REDUCE, begin + 5, 50 + 30 * step, number))
    assert waits_of(tmp_path, events) == expected


def late_ranks(program: Program) -> None:
    """A GEMM of 1 ms, and an all-reduce that takes 0.2 ms in one step, and 4 ms while it waits in the others."""
    program.large_product(1_000)
    length = 200 if program.steps == 1 else 4_000
    with program.within("record_param_comms", [[1024, 1024]]):
        program.op("nccl:all_reduce", (ALL_REDUCE, length))
    program.wait()


def test_waiting_for_other_ranks_is_not_called_communication(tmp_path: Path) -> None:
    program = Program()
    for _ in range(6):
        with program.step():
            late_ranks(program)
    judgement = program.judged(tmp_path)
    verdict = judgement.verdict
    assert verdict.cause == "comm"
    assert verdict.sentence.startswith("Waiting for other ranks: collectives take ")
    assert "of it waiting for other ranks" in verdict.sentence
    assert "all ranks" in verdict.sentence
    assert verdict.fix != "overlap_comm"
    advice = [finding.how for finding in judgement.findings if finding.fix == "overlap_comm"]
    assert not any("DistributedDataParallel" in how for how in advice)
