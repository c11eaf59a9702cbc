"""What the time of a step is about: marked steps, steps found by repetition, and whole recordings."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from kineto_files import launched
from msgspec.structs import replace
from nsys_files import small
from step_traces import steps, trace

import warpline
from warpline.analyses.idle.gaps import CAUSES
from warpline.cli.main import run
from warpline.compare.comparable import Setting, obstacles
from warpline.compare.same_work import is_longer_between, obstacle, other_program, remark, times_as_often
from warpline.compare.typical_step import Operation, TypicalStep, typical_step
from warpline.intervals import Spans


def step_of(kernels: dict[str, tuple[int, float]], found_by: str | None = "profiler_step") -> TypicalStep:
    """Kernels by name: how often each runs, and its time."""
    operations = [
        Operation("kernel", name, "", (1, 1, 1)) for name, (count, _) in kernels.items() for _ in range(count)
    ]
    times = np.array([ns for count, ns in kernels.values() for _ in range(count)])
    whole = int(times.sum())
    spans = Spans(np.array([0]), np.array([whole]))
    return TypicalStep(tuple(operations), times, dict.fromkeys(CAUSES, 0.0), spans, 1, whole, 0, found_by)


ONE = {"gemm": (2, 100.0), "silu": (1, 20.0)}
FOUR = {"gemm": (8, 100.0), "silu": (4, 20.0), "adam": (1, 50.0)}
OTHER = {"conv": (3, 100.0)}


def test_kernels_in_common_say_how_often_they_run() -> None:
    assert times_as_often(step_of(ONE), step_of(FOUR)) == 4.0
    assert times_as_often(step_of(FOUR), step_of(ONE)) == 0.25
    assert times_as_often(step_of(ONE), step_of(OTHER)) is None
    mostly_other = step_of({**OTHER, "silu": (1, 20.0)})
    assert times_as_often(step_of(ONE), mostly_other) is None


def test_steps_that_run_the_same_kernels_as_often_are_about_the_same_work() -> None:
    assert obstacle(step_of(ONE), step_of(ONE, "range")) is None
    assert remark(step_of(ONE), step_of(ONE)) is None
    assert remark(step_of(ONE), step_of(OTHER)) is None


def test_programs_without_kernels_in_common_are_not_the_same() -> None:
    assert other_program(step_of(ONE), step_of(ONE)) is None
    assert "A and B have hardly any kernels in common" in (other_program(step_of(ONE), step_of(OTHER)) or "")
    one_of_twenty = step_of({**{f"rank_{size}": (1, 100.0) for size in range(19)}, "silu": (1, 100.0)})
    another = step_of({**{f"walk_{size}": (1, 100.0) for size in range(19)}, "silu": (1, 100.0)})
    assert other_program(one_of_twenty, another) is not None


def test_marked_steps_that_run_the_same_kernels_more_often_are_other_steps() -> None:
    found = other_program(step_of(ONE), step_of(FOUR, "range")) or ""
    assert found.startswith("a step of B runs the same kernels 4.0 times as often as one of A")


def test_a_program_at_another_precision_is_the_same() -> None:
    fp32 = step_of({"ampere_sgemm_128x64_tn": (4, 100.0), "at::native::relu_f32": (4, 30.0)})
    bf16 = step_of({"nvjet_hsh_128x64_64x4_1x2_h_bz_TNT": (4, 50.0), "at::native::relu_bf16": (4, 15.0)})
    assert other_program(fp32, bf16) is None


ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::{}<float>, std::array<char*, 3ul> >(int)"


def test_the_kernels_of_any_program_do_not_make_two_programs_the_same() -> None:
    """Half of A's time is in an addition and a product that B also has, of another size and beside other work."""
    names = [ELEMENTWISE.format(name) for name in ("CUDAFunctor_add", "MulFunctor")]
    common = dict.fromkeys(names, (1, 100.0))
    policy = step_of({**common, "tanh": (2, 100.0), "draw": (1, 50.0)})
    large = step_of({**common, **{f"radix_sort_{digit}": (40, 100.0) for digit in range(6)}})
    large = replace(large, operations=tuple(replace(one, grid=(64, 1, 1)) for one in large.operations))
    assert "not the same program" in (other_program(policy, large) or "")


def test_another_program_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = trace(tmp_path, "a", steps(5, [("gemm", 100), ("silu", 20)]))
    b = trace(tmp_path, "b", steps(5, [("conv", 100), ("sort", 3000)]), with_stack=1)
    assert run(["compare", str(a), str(b)]) == 4
    shown = capsys.readouterr().out
    assert shown.count("!") == 1
    assert "not the same program; --anyway compares them" in " ".join(shown.split())
    assert "What changed" not in shown
    assert run(["compare", str(a), str(b), "--anyway"]) == 0
    assert "compared anyway, although A and B have hardly any kernels in common" in " ".join(
        capsys.readouterr().out.split()
    )


def test_one_kernel_in_the_files_of_two_tools_is_the_same() -> None:
    kineto = Operation(
        "kernel", "void at::native::(anonymous namespace)::layer_norm<float, false>(int, float const*)", "", (4, 1, 1)
    )
    nsys = replace(kineto, name="void at::native::<unnamed>::layer_norm<float, (bool)0>(int, const T1 *)")
    assert kineto.key == nsys.key
    assert kineto.key != replace(nsys, name="void at::native::<unnamed>::layer_norm<float, (bool)1>(int)").key


def test_copies_have_one_name_whatever_tool_recorded_them(tmp_path: Path) -> None:
    step = typical_step(warpline.open(small().write(tmp_path / "nsys.sqlite")))
    found = {one.name for one in step.operations if one.kind != "kernel"}
    assert found == {"Memcpy HtoD (Pageable -> Device)", "Memset (Device)"}


def test_a_program_of_which_little_is_left_is_the_same() -> None:
    assert other_program(step_of({"copy": (9, 900.0), "gemm": (1, 10.0)}), step_of({"gemm": (1, 10.0)})) is None


def test_a_recording_of_copies_alone_says_nothing_about_the_program() -> None:
    assert other_program(step_of({}), step_of(ONE)) is None


@pytest.mark.parametrize(
    ("a", "b", "found_by", "word"),
    [
        (ONE, FOUR, ("profiler_step", "repetition"), "4.0 times"),
        (FOUR, ONE, ("repetition", "repetition"), "a step of A runs"),
        (ONE, FOUR, (None, None), "B runs the same kernels 4.0 times"),
        (ONE, ONE, ("profiler_step", None), "the time of B, which has no steps"),
        (ONE, OTHER, ("repetition", "range"), "the steps of A were found by repetition"),
    ],
)
def test_times_about_different_work(
    a: dict[str, tuple[int, float]], b: dict[str, tuple[int, float]], found_by: tuple[str | None, str | None], word: str
) -> None:
    first, second = step_of(a, found_by[0]), step_of(b, found_by[1])
    assert word in (obstacle(first, second) or "")
    assert remark(first, second) is None


def test_steps_found_by_repetition_that_do_the_same_work() -> None:
    found = step_of(ONE, "repetition")
    assert obstacle(step_of(ONE), found) is None
    assert obstacle(found, step_of(OTHER, "repetition")) is None
    assert "found by repetition" in (remark(found, step_of(OTHER, "repetition")) or "")


def test_a_step_is_not_compared_with_a_whole_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = trace(tmp_path, "a", steps(5, [("gemm", 100)]))
    b = trace(tmp_path, "b", launched("gemm", 0, 5, 900, 1))
    assert run(["compare", str(a), str(b)]) == 4
    shown = capsys.readouterr().out
    assert "Not comparable: 105 µs a step and 900 µs for the whole recording." in shown
    assert "What changed" not in shown
    assert run(["compare", str(a), str(b), "--json"]) == 4
    assert json.loads(capsys.readouterr().out)["verdict"] == "not_comparable"


def test_other_numbers_of_ranks_are_not_compared(tmp_path: Path) -> None:
    alone = Setting("kineto", ("H200",), "13000", 1, frozenset())
    (reason,) = obstacles(alone, Setting("kineto", ("H200",), "13000", 16, frozenset()))
    assert reason == "A ran on 1 rank and B on 16 ranks"
    a = trace(tmp_path, "a", steps(5, [("gemm", 100)]))
    b = trace(
        tmp_path, "b", steps(5, [("gemm", 100)]), distributedInfo={"backend": "nccl", "rank": 0, "world_size": 16}
    )
    assert reason in warpline.compare(a, b).reasons


def test_work_that_left_the_steps_is_not_gone() -> None:
    whole, half = step_of({"gemm": (1, 100.0), "silu": (1, 100.0)}), step_of({"gemm": (1, 100.0)})
    assert other_program(whole, half) is None
    assert "hold 50.0 % " not in (other_program(whole, whole) or "")
    assert "which do less, 50.0 %" in (other_program(whole, replace(half, covered=0.5)) or "")


def test_steps_cut_in_two_are_not_the_steps_of_the_baseline() -> None:
    whole = replace(step_of({"gemm": (1, 100.0), "silu": (1, 100.0)}), waited_ns=np.zeros(2))
    found = other_program(whole, step_of({"gemm": (1, 100.0)}))
    assert "different ones by turns" in (found or "")


def test_graphs_that_hide_the_kernels_are_no_other_program() -> None:
    eager, hidden = step_of(ONE, "repetition"), step_of({"replay": (1, 200.0), "copy": (1, 20.0)}, "range")
    assert other_program(eager, hidden) is not None
    graph = replace(hidden, operations=(replace(hidden.operations[0], kind="graph"), hidden.operations[1]))
    assert other_program(eager, graph) is None
    assert obstacle(eager, graph) is None
    assert "hide the kernels" in (remark(eager, graph) or "")


def test_time_between_steps_counts_only_beyond_what_is_usual() -> None:
    step = step_of({"gemm": (1, 100.0)})
    alone, apart = replace(step, step_ns=100.0, between_ns=0.0), replace(step, step_ns=100.0, between_ns=50.0)
    assert is_longer_between(alone, replace(alone, between_ns=3.0), 0.02)
    assert not is_longer_between(alone, replace(alone, between_ns=1.0), 0.02)
    assert not is_longer_between(apart, replace(apart, between_ns=80.0), 0.02)  # the host's time differs by 30 %
    assert is_longer_between(apart, replace(apart, between_ns=100.0), 0.02)
    assert not is_longer_between(alone, replace(alone, between_ns=3.0, step_ns=90.0), 0.02)
    assert not is_longer_between(alone, replace(alone, between_ns=None), 0.02)
