"""Algorithms that a library tries are a cold start in the account; kernels that a program times are not."""

from __future__ import annotations

from pathlib import Path

import pytest
from kineto_files import Event, call, kernel, op, write

from warpline.analyses.idle.gaps import idle_gaps
from warpline.analyses.idle.host_time import HostTime
from warpline.trace.open import open_trace

TRIALS = 5


def timed(name: str, start: float, number: int) -> list[Event]:
    """100 µs: an event, a kernel of 10 µs, another event, and a wait until 90 µs."""
    return [
        call("cudaEventRecord", start, 2, number),
        call("cudaLaunchKernel", start + 3, 5, number + 1),
        kernel(name, start + 10, 10, number + 1),
        call("cudaEventRecord", start + 10, 2, number + 2),
        call("cudaEventSynchronize", start + 13, 77, number + 3),
    ]


@pytest.mark.parametrize(
    ("names", "op_name", "cold_us"),
    [
        (["direct", "winograd"], "aten::cudnn_convolution", 520),
        (["void cudnn::direct", "cudnn_winograd"], None, 520),
        (["direct", "winograd"], None, 0),
    ],
)
def test_trials_of_algorithms_are_a_cold_start(
    names: list[str], op_name: str | None, cold_us: int, tmp_path: Path
) -> None:
    """A fill ends at 1,010 µs, and the last of five trials at 1,590 µs: of these 580 µs the device is busy for 50, and five
    times 2 µs lie between the return of a launch and its kernel. The winner is launched at 1,600 µs."""
    events = [call("cudaLaunchKernel", 1_000, 5, 1), kernel("fill", 1_006, 4, 1)]
    for trial in range(TRIALS):
        events += timed(names[trial % 2], 1_100 + 100 * trial, 10 + 10 * trial)
    events += [call("cudaLaunchKernel", 1_600, 5, 90), kernel(names[0], 1_607, 10, 90)]
    if op_name is not None:
        events.append(op(op_name, 1_005, 610))
    trace = open_trace(write(tmp_path, events), cache=False)
    (gaps,) = idle_gaps(trace, HostTime(trace))
    assert gaps.totals()["cold_start"] == 1_000 * cold_us


def test_a_few_timings_in_an_op_are_its_own(tmp_path: Path) -> None:
    events = [event for trial in range(3) for event in timed("direct", 100 + 100 * trial, 10 + 10 * trial)]
    trace = open_trace(write(tmp_path, [*events, op("aten::solve", 90, 310)]), cache=False)
    (gaps,) = idle_gaps(trace, HostTime(trace))
    assert gaps.totals()["cold_start"] == 0
