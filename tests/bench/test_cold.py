"""Cold starts: put together from processes of known times, and once for real where torch is there."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from warpline.bench.cold import ENOUGH_S, MEANINGS, Orders, affordable, cold_start, run_child
from warpline.bench.cold_child import FEWEST_CALLS, STEADY_CALLS, Marks, _calls
from warpline.errors import CannotAnswer

MS = 1_000_000
PARTS = {
    "python": 20 * MS,
    "import": 3000 * MS,
    "driver": 100 * MS,
    "context": 200 * MS,
    "allocator": MS,
    "first_kernel": 5 * MS,
    "library": 60 * MS,
    "inputs": 10 * MS,
    "first_call": 40 * MS,
    "second_call": 4 * MS,
    "steady": 2 * MS,
}


class Processes:
    """Fresh processes: the first of all is slowed by the disk, the second by its compiler."""

    def __init__(self, *, compiles: bool) -> None:
        self.compiles = compiles
        self.count = 0

    def __call__(self, orders: Orders, split: bool, environment: dict[str, str]) -> dict[str, Any]:
        self.count += 1
        parts = dict(PARTS)
        cache = Path(environment["TRITON_CACHE_DIR"])
        if self.count == 1:
            parts["first_call"] += 5000 * MS
        elif not cache.exists():
            parts["first_call"] += 300 * MS
            if self.compiles:
                cache.mkdir(parents=True)
                (cache / "kernel.cubin").write_text("")
        if not split:
            parts = {
                name: parts[name] for name in ("python", "import", "inputs", "first_call", "second_call", "steady")
            }
            parts["first_call"] += 60 * MS
        return {"parts": parts, "device": "NVIDIA H200", "torch": "2.11"}


def test_the_parts_are_medians_and_the_first_process_counts_for_nothing() -> None:
    found = cold_start(Orders("it"), repeats=3, run=Processes(compiles=True))
    times = {part.name: part.median_ns for part in found.parts}
    assert list(times) == [name for name in MEANINGS if name != "program"]
    assert times == {**PARTS, "jit": 300 * MS}
    assert (found.first_call_ns, found.steady_ns, found.ratio) == (100 * MS, 2 * MS, 50)
    assert found.processes == 8


def test_a_slow_run_without_anything_in_the_caches_is_no_compilation() -> None:
    found = cold_start(Orders("it"), repeats=1, run=Processes(compiles=False))
    part = next(part for part in found.parts if part.name == "jit")
    assert (part.median_ns, part.meaning) == (0, "compilers: nothing was compiled")


def test_it_reads_as_the_first_call_against_the_steady_state() -> None:
    text = str(cold_start(Orders("matmul"), repeats=1, run=Processes(compiles=True)))
    assert "first kernel   5.00 ms" in text
    assert text.endswith("shows 100 ms; a steady-state call takes 2.00 ms: 50× less")


def test_each_process_is_reported_before_it_runs() -> None:
    said: list[str] = []
    cold_start(Orders("it"), repeats=2, report=said.append, run=Processes(compiles=True))
    assert [line.partition(",")[0] for line in said] == [f"cold start: process {number} of 6" for number in range(1, 7)]


def test_slow_processes_are_fewer() -> None:
    assert affordable(3, 0.01) == 3
    assert affordable(3, ENOUGH_S / 4) == 2  # two of each kind take as long as is enough
    assert affordable(3, 10 * ENOUGH_S) == 1


@pytest.mark.parametrize(("call_ms", "calls"), [(1, STEADY_CALLS), (400, FEWEST_CALLS)])
def test_long_calls_are_fewer(call_ms: int, calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    now, made = [0], [0]

    def call() -> None:
        now[0] += call_ms * MS
        made[0] += 1

    monkeypatch.setattr("warpline.bench.cold_child.time.monotonic_ns", lambda: now[0])
    marks = Marks(0)
    _calls(None, call, "cpu", marks)
    assert (made[0], marks.parts["steady"]) == (2 + calls, call_ms * MS)


def test_a_process_that_fails_is_one_line() -> None:
    orders = Orders("it", program="absent.py:f", device="cpu")
    with pytest.raises(CannotAnswer, match=r"cold-failed: a fresh process ended with 1: .*"):
        run_child(orders, True, {})


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_a_real_process_on_the_cpu() -> None:
    orders = Orders("matmul", experiment="matmul", shape=(32, 32, 32), dtype="fp32", library="cuBLAS", device="cpu")
    answer = run_child(orders, True, {})
    assert list(answer["parts"]) == ["python", "import", "inputs", "first_call", "second_call", "steady"]
    assert all(value > 0 for value in answer["parts"].values())
    assert answer["parts"]["import"] > answer["parts"]["steady"]
