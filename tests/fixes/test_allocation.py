"""Memory that is given back within steps, on hand-made traces, with answers worked out on paper."""

from __future__ import annotations

from pathlib import Path

import pytest
from kineto_files import write
from small_programs import H200, STEPS, Body, Program, judged

BUSY_US = 2000.0
FILL = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >"


@pytest.mark.parametrize(
    ("collecting_us", "own_us", "frames", "after_us"),
    [
        (0, 0, False, BUSY_US),
        (50_000, 0, True, BUSY_US),
        (50_000, 20_000, True, 20_000 + BUSY_US),  # frames show what else the program does
    ],
)
def test_garbage_that_is_collected_for_an_empty_cache_goes_with_it(
    tmp_path: Path, collecting_us: float, own_us: float, frames: bool, after_us: float
) -> None:
    def body(program: Program) -> None:
        program.call("cudaMalloc", 300)
        program.large_product(BUSY_US)
        program.wait()
        program.python(own_us)
        if frames:
            with program.frame("<built-in function collect>"):
                program.python(collecting_us)
        else:
            program.python(collecting_us)
        for _ in range(3):
            program.call("cudaFree", 300)

    judgement = judged(tmp_path, body)
    verdict, claims = judgement.verdict, [one.claim for one in judgement.findings if one.fix == "no_empty_cache"]
    assert verdict.fix == "no_empty_cache"
    assert verdict.new_step_ns.expected == pytest.approx(after_us * 1000, rel=0.05)
    assert ("garbage collection" in claims[0]) == bool(collecting_us)


def test_an_allocator_under_pressure_collects_no_garbage(tmp_path: Path) -> None:
    """What an op frees to make room says nothing of the Python before it."""

    def body(program: Program) -> None:
        program.large_product(BUSY_US)
        program.wait()
        program.python(50_000)
        start = program.now
        program.call("cudaFree", 300)
        program.large_product(BUSY_US)
        program.events[-1]["ts"], program.events[-1]["dur"] = start - 1, program.now - start + 1
        program.wait()

    assert judged(tmp_path, body).verdict.fix != "no_empty_cache"


def test_a_program_that_starts_has_no_cache_to_keep(tmp_path: Path) -> None:
    """Libraries free once where they allocate three times, and their first frees create contexts: a cold start."""
    program = Program()
    for number, start_up in enumerate((3_000_000, 900_000, 900)):
        program.call("cudaFree", start_up)
        for _ in range(3):
            program.call("cudaMalloc", 100)
        program.op(f"first_{number}", (f"kernel_{number}", 50))
    program.wait()
    judgement = program.judged(tmp_path)
    assert "no_empty_cache" not in [finding.fix for finding in judgement.findings]
    assert judgement.limits.row("memory").gain.expected == pytest.approx(1.0, abs=0.01)


def test_a_program_that_ends_has_no_cache_to_keep(tmp_path: Path) -> None:
    program = Program()
    for _ in range(4):
        program.call("cudaMalloc", 500)
    for _ in range(5):
        program.large_product(BUSY_US)
    program.wait()
    for _ in range(4):
        program.call("cudaFree", 900)
    assert "no_empty_cache" not in [finding.fix for finding in program.judged(tmp_path).findings]


def written(folder: Path, body: Body) -> Path:
    program = Program()
    for _ in range(STEPS):
        with program.step():
            body(program)
    return write(folder, program.events, **H200)


def test_a_free_that_takes_less_than_a_launch_returns_no_memory(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        program.call("cudaMalloc", 300)
        program.large_product(BUSY_US)
        program.wait()
        for _ in range(3):
            program.call("cudaFree", 0.5)

    assert not [one for one in judged(tmp_path, body).findings if one.fix == "no_empty_cache"]
