"""Cold steps are compared by themselves, and the rest of the comparison is one of warm steps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from step_traces import steps, trace

import warpline
from warpline.cli.main import run

KERNELS = [("gemm", 100.0), ("silu", 40.0)]


def test_a_cold_start_that_is_gone_is_faster_by_itself(tmp_path: Path) -> None:
    a = trace(tmp_path, "a", steps(6, KERNELS, cold=9000))
    b = trace(tmp_path, "b", steps(6, KERNELS))
    found = warpline.compare(a, b)
    # A step has 140 µs of kernels and two gaps of 5 µs; the first one of A waits 9 ms longer.
    assert (found.a.step_ns, found.b.step_ns, found.change_ns) == (150_000, 150_000, 0)
    cold = found.cold_start
    assert cold is not None
    assert (cold.first, cold.count, cold.cold_in) == (0, 1, ("a",))
    assert (cold.a_ns, cold.b_ns, cold.difference.verdict) == (9_150_000, 150_000, "faster")
    assert (cold.parts[0].name, cold.parts[0].change_ns) == ("cold_start", -9_000_000)
    assert sum(part.change_ns for part in cold.parts) + cold.unexplained_ns == cold.b_ns - cold.a_ns
    assert cold.sentence.startswith("Cold start, the first step: B is faster than A, 9.15 ms → 150 µs")
    assert "In B these steps are not cold" in cold.remarks[-1]


def test_a_new_cold_start_is_slower(tmp_path: Path) -> None:
    a = trace(tmp_path, "a", steps(6, KERNELS))
    b = trace(tmp_path, "b", steps(6, KERNELS, cold=9000))
    cold = warpline.compare(a, b).cold_start
    assert cold is not None
    assert (cold.cold_in, cold.difference.verdict) == (("b",), "slower")


def test_cold_on_both_sides_is_one_comparison_of_the_same_steps(tmp_path: Path) -> None:
    a = trace(tmp_path, "a", steps(6, KERNELS, cold=9000))
    b = trace(tmp_path, "b", steps(6, KERNELS, cold=8900))
    cold = warpline.compare(a, b).cold_start
    assert cold is not None
    assert (cold.cold_in, cold.difference.verdict) == (("a", "b"), "inconclusive")
    assert not any("not cold" in remark for remark in cold.remarks)
    itself = warpline.compare(a, a).cold_start
    assert itself is not None
    assert itself.difference.verdict == "same"
    assert not any(part.change_ns for part in itself.parts)


def test_without_cold_steps_there_is_none(tmp_path: Path) -> None:
    a, b = (trace(tmp_path, name, steps(6, KERNELS)) for name in "ab")
    assert warpline.compare(a, b).cold_start is None


@pytest.mark.parametrize("suffix", [".md", ".txt", ".json", ".html"])
def test_every_form_of_the_answer_has_it(tmp_path: Path, suffix: str) -> None:
    a = trace(tmp_path, "a", steps(6, KERNELS, cold=9000))
    b = trace(tmp_path, "b", steps(6, KERNELS))
    written = tmp_path / f"change{suffix}"
    run(["compare", str(a), str(b), "--no-history", "-o", str(written)])
    text = written.read_text()
    if suffix == ".json":
        cold = json.loads(text)["cold_start"]
        assert (cold["verdict"], cold["cold_in"], cold["change_ns"]) == ("faster", ["a"], -9_000_000)
    else:
        assert "Cold start, the first step: B is faster than A" in text
        assert "What changed in the cold start" in text
