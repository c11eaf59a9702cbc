"""How slow the host was, and what that says of the CPU's time."""

from __future__ import annotations

from math import log
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from step_traces import steps, trace

from warpline.compare.comparison import compare_measurements
from warpline.compare.measurement import launch_times, measure, slowness
from warpline.compare.spread import RunTime, difference
from warpline.trace.open import open_trace


def test_the_median_launch_of_a_name_that_is_called_often(tmp_path: Path) -> None:
    opened = open_trace(trace(tmp_path, "a", steps(6, [("gemm", 100), ("silu", 40)])))
    assert measure(opened).launch_times == {"cudaLaunchKernel": 5000.0}
    few = open_trace(trace(tmp_path, "b", steps(4, [("gemm", 100), ("silu", 40)])))
    assert launch_times(few, measure(few).step.spans) == {}


def test_slowness_is_that_of_calls_that_all_runs_make() -> None:
    assert slowness([{"x": 4.0, "y": 1.0}, {"x": 1.0, "z": 9.0}]) == pytest.approx([log(2), -log(2)])
    assert slowness([{"x": 4.0}, {"y": 1.0}]) is None
    assert slowness([{}, {"y": 1.0}]) is None


def test_a_host_that_is_known_to_be_as_fast_settles_what_else_it_might_have_done() -> None:
    lengths_a, lengths_b = (np.full(6, ns, np.int64) + np.arange(6) for ns in (1_800_000, 1_200_000))
    a = RunTime(6e5, 1e4, lengths_a, copies_ns=1.2e6, ahead_ns=2.5e5)
    b = RunTime(6e5, 1e4, lengths_b, copies_ns=6e5, ahead_ns=6e5)
    assert difference((a,), (b,), 0.02).verdict == "inconclusive"
    known = difference((replace(a, host=0.0),), (replace(b, host=0.0),), 0.02)
    assert known.verdict == "faster"
    # The CPU of B was twice as fast as that of A: on one host it needs longer than the GPU of A.
    lucky = difference((replace(a, host=log(2)),), (replace(b, ahead_ns=1.1e6, host=-log(2)),), 0.02)
    assert lucky.verdict == "inconclusive"


def test_another_host_is_told_where_the_answer_is_open(tmp_path: Path) -> None:
    one = measure(open_trace(trace(tmp_path, "a", steps(6, [("gemm", 20), ("silu", 20)], gap=40, jitter=3))))
    other = measure(open_trace(trace(tmp_path, "b", steps(6, [("gemm", 20), ("silu", 20)], gap=44, jitter=3))))
    slow = replace(other, launch_times={"cudaLaunchKernel": 6000.0})
    found = compare_measurements([one], [slow])
    assert found.verdict == "inconclusive"
    assert any("a kernel launch takes 20 % longer in B: its host was slower" in reason for reason in found.reasons)
    assert not any("launch takes" in reason for reason in compare_measurements([one], [other]).reasons)
