"""The comparison as a whole: verdicts, obstacles, the command, and recorded pairs of a fault and its fix."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from kineto_files import Event, annotation, call, launched, op
from paths import SUITES
from step_traces import steps, trace

import warpline
from warpline.cli.main import run
from warpline.compare.comparable import Setting, obstacles
from warpline.reports import terminal
from warpline.reports.compare import report


def test_a_kernel_that_became_twice_as_fast(tmp_path: Path) -> None:
    a = trace(tmp_path, "a", steps(12, [("gemm", 100), ("silu", 40)]))
    b = trace(tmp_path, "b", steps(12, [("gemm", 50), ("silu", 40)]))
    found = warpline.compare(a, b)
    assert found.verdict == "faster"
    assert (found.a.step_ns, found.b.step_ns, found.change_ns) == (150_000, 100_000, -50_000)
    assert (found.parts[0].name, found.parts[0].change_ns) == ("gemm", -50_000)
    assert found.ratio.low < 2 / 3 < found.ratio.high
    assert sum(part.change_ns for part in found.parts) + found.unexplained_ns == found.change_ns


def test_a_recording_compared_with_itself_is_the_same(tmp_path: Path) -> None:
    path = trace(tmp_path, "a", steps(5, [("gemm", 100)], jitter=10))
    found = warpline.compare(path, path)
    assert found.verdict == "same"
    assert found.unexplained_ns == 0
    assert all(part.change_ns == 0 for part in found.parts)


def test_other_counts_are_told_where_times_do_not_tell(tmp_path: Path) -> None:
    a = trace(tmp_path, "a", steps(12, [("gemm", 100), ("silu", 100)]))
    b = trace(tmp_path, "b", steps(12, [("gemm", 98), ("silu", 52), ("mul", 52)]))
    found = warpline.compare(a, b)
    assert found.verdict == "inconclusive"
    assert "counts have no noise, and they differ: launches 2 → 3" in found.reasons
    assert not any("counts" in reason for reason in warpline.compare(a, a).reasons)


def test_two_devices_cannot_be_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = trace(tmp_path, "a", steps(5, [("gemm", 100)]))
    other = [{"id": 0, "name": "Other GPU", "numSms": 132}]
    b = trace(tmp_path, "b", steps(5, [("gemm", 50)]), deviceProperties=other)
    assert run(["compare", str(a), str(b), "--json"]) == 4
    answer = json.loads(capsys.readouterr().out)
    assert answer["verdict"] == "not_comparable"
    assert "Test GPU" in answer["reasons"][0]
    assert run(["compare", str(a), str(b), "--anyway", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["verdict"] == "faster"
    assert answer["reasons"][0].startswith("compared anyway, although A ran on Test GPU")


def test_two_programs_cannot_be_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = (trace(tmp_path, name, steps(5, [(name, 100)])) for name in ("gemm", "conv"))
    assert run(["compare", str(a), str(b)]) == 4
    assert "What changed" not in capsys.readouterr().out


def test_a_fix_that_replaces_all_kernels_is_the_same_program() -> None:
    before, after = (SUITES / "planted" / f"unfused_attention.{form}.json.gz" for form in ("plain", "fixed"))
    assert warpline.compare(before, after).verdict == "faster"


def test_two_ranks_of_a_job_are_not_two_versions() -> None:
    first, same = (Setting("kineto", ("A100",), None, 8, frozenset(), "0") for _ in range(2))
    assert obstacles(first, same) == []
    (reason,) = obstacles(first, Setting("kineto", ("A100",), None, 8, frozenset(), "5"))
    assert "A is rank 0 and B rank 5 of 8" in reason


def test_obstacles_name_what_differs() -> None:
    plain = Setting("kineto", ("H200",), "13000", 1, frozenset())
    assert obstacles(plain, plain) == []
    (source,) = obstacles(plain, Setting("nsys", ("H200",), None, 1, frozenset()))
    assert "Nsight Systems" in source
    (count,) = obstacles(plain, Setting("kineto", ("H200", "H200"), "13000", 1, frozenset()))
    assert "2 devices" in count
    (driver,) = obstacles(plain, Setting("kineto", ("H200",), "12080", 1, frozenset()))
    assert "12080" in driver
    (stacks,) = obstacles(plain, Setting("kineto", ("H200",), "13000", 1, frozenset({"Python stacks"})))
    assert "Python stacks only in B" in stacks


def test_without_steps_the_recording_is_compared(tmp_path: Path) -> None:
    a = trace(tmp_path, "a", launched("gemm", 0, 5, 100, 1))
    b = trace(tmp_path, "b", launched("gemm", 0, 5, 90, 1))
    found = warpline.compare(a, b)
    assert found.change_ns == -10_000
    assert "A has no steps: the whole recording is compared" in found.reasons


@pytest.mark.parametrize("words", [[], ["a"], ["a", "b", "c"]])
def test_the_command_needs_two_recordings(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", *words]) == 2
    assert capsys.readouterr().err.startswith("warpline: two-traces:")


@pytest.mark.parametrize("verb", [[], ["diagnose"]])
def test_the_diagnosis_of_two_recordings_points_to_compare(
    verb: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(tmp_path / name) for name in ("a.json", "b.json")]
    for file in files:
        Path(file).touch()
    assert run([*verb, *files]) == 2
    assert "warpline compare" in capsys.readouterr().err


def test_a_program_of_the_gpu_is_not_compared_with_one_of_the_cpu(tmp_path: Path) -> None:
    a = trace(tmp_path, "a", steps(3, [("gemm", 100)]))
    b = trace(tmp_path, "b", [annotation("ProfilerStep#0", 0, 100)])
    found = warpline.compare(a, b)
    assert (found.verdict, found.same_unit) == ("not_comparable", False)
    assert found.reasons[0] == "A ran on Test GPU and B on CPU"


def test_an_empty_recording_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = trace(tmp_path, "a", steps(3, [("gemm", 100)]))
    b = trace(tmp_path, "b", [call("cudaMalloc", 0, 100, 1)])
    assert run(["compare", str(a), str(b)]) == 1
    assert "no-gpu-work" in capsys.readouterr().err


def test_runs_of_one_side_that_are_not_of_one_program_are_named(tmp_path: Path) -> None:
    a, b = (trace(tmp_path, name, steps(5, [("gemm", 100)])) for name in "ab")
    other = trace(tmp_path, "c", steps(5, [("gemm", 90)]), deviceProperties=[{"id": 0, "name": "Other GPU"}])
    found = warpline.compare([a, other], b)
    assert found.verdict == "not_comparable"
    assert found.reasons[0] == f"{a.parent.name}/{a.name} of A ran on Test GPU and another run of A on Other GPU"


def test_a_recording_that_was_cut_off_is_not_compared_and_passes_no_gate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = trace(tmp_path, "a", steps(12, [("gemm", 100)]))
    text = gzip.decompress(whole.read_bytes()) if whole.suffix == ".gz" else whole.read_bytes()
    half = tmp_path / "half.json"
    half.write_bytes(text[: len(text) * 3 // 4])
    found = warpline.compare(whole, half)
    assert found.verdict == "not_comparable"
    assert found.reasons[0].startswith("B cannot be relied on: half.json: The file ends in the middle of its events")
    for command in (
        ["gate", str(half), "--budget", "syncs<=0"],
        ["baseline", "save", str(tmp_path / "x.json"), str(half)],
    ):
        assert run(command) == 1
        assert capsys.readouterr().err.startswith("warpline: damaged-recording: half.json: The file ends")
    assert not (tmp_path / "x.json").exists()


def test_copies_that_took_part_in_a_replacement_are_not_called_kernels(tmp_path: Path) -> None:
    a, b = (SUITES / "planted" / f"boolean_mask.{form}.json.gz" for form in ("plain", "fixed"))
    shown = terminal.render(report(warpline.compare(a, b)), 200).plain
    assert "36 operations became 18: cub reduce + Memcpy DtoH (Device -> Pinned)" in " ".join(shown.split())


def test_the_report_names_the_fused_kernels(capsys: pytest.CaptureFixture[str]) -> None:
    before, after = (str(SUITES / "planted" / f"gelu_by_hand.{form}.json.gz") for form in ("plain", "fixed"))
    assert run(["compare", before, after]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "9 kernels became 1" in shown
    assert "B is faster than A" in shown


def test_the_op_in_which_the_cpu_spends_its_time_is_named(tmp_path: Path) -> None:
    def planned(length: float) -> list[Event]:
        return [
            *steps(6, [("gemm", 100)], gap=length + 5),
            *(op("aten::conv2d", n * (length + 105), length) for n in range(6)),
        ]

    a, b = trace(tmp_path, "a", planned(900)), trace(tmp_path, "b", planned(20))
    (found,) = warpline.compare(a, b).cpu_ops
    assert (found.name, found.a_ns, found.b_ns) == ("aten::conv2d", 900_000, 20_000)
    assert warpline.compare(a, a).cpu_ops == ()


def test_an_op_that_is_only_inside_another_one_now_is_not_called_gone(tmp_path: Path) -> None:
    plain = [*steps(6, [("gemm", 100)], gap=905), *(op("aten::conv2d", n * 1005, 900) for n in range(6))]
    outer = [op("Compiled region", n * 1005, 902) for n in range(6)]
    found = warpline.compare(trace(tmp_path, "a", plain), trace(tmp_path, "b", [*outer, *plain]))
    assert [one.name for one in found.cpu_ops] == ["Compiled region"]


def test_parts_that_are_gone_are_counted_in_words(tmp_path: Path) -> None:
    a = trace(tmp_path, "a", steps(12, [("gemm", 100), ("silu", 60), ("gemm", 100), ("silu", 60)]))
    b = trace(tmp_path, "b", steps(12, [("gemm", 100), ("gemm", 100)]))
    assert "2 × silu are gone: 120 µs." in terminal.render(report(warpline.compare(a, b)), 200).plain
