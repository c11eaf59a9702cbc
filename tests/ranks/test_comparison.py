"""Two jobs compared: the change of each rank is known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rank_files import job

from warpline.cli.main import run

HEALTHY_NS, LATE_NS = 535_000, 200_000


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    job(tmp_path / "a", steps=8)
    job(tmp_path / "b", steps=8, late={2: 200.0})
    return tmp_path / "a", tmp_path / "b"


def compared(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict]:  # type: ignore[type-arg]
    code = run(["compare", *words, "--json", "--no-cache"])
    return code, json.loads(capsys.readouterr().out)


def test_the_rank_that_became_slow_is_named_and_the_others_wait(
    folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    code, answer = compared(capsys, *map(str, folders))
    assert code == 0
    assert answer["schema"] == "warpline.job_comparison/1"
    assert answer["verdict"] == "slower"
    assert answer["change"]["step_ns"] == pytest.approx(LATE_NS, abs=10)
    assert answer["change"]["ratio"]["expected"] == pytest.approx((HEALTHY_NS + LATE_NS) / HEALTHY_NS, rel=1e-3)
    first, *others = answer["ranks"]
    assert first["rank"] == 2
    assert first["compute"]["change_ns"] == LATE_NS
    for one in others:
        assert one["compute"]["change_ns"] == 0
        assert one["wait"]["change_ns"] == pytest.approx(LATE_NS, abs=10)
    for one in answer["ranks"]:
        parts = sum(one[name]["change_ns"] for name in ("compute", "transfer", "wait", "idle"))
        assert parts == one["step"]["change_ns"]
    assert answer["change"]["causes"][0] == "rank 2 computes 200 µs longer a step"
    kernel = answer["kernels"][0]
    assert (kernel["most_on_rank"], kernel["most"]["change_ns"]) == (2, LATE_NS // 2)


def test_the_screen_has_the_verdict_and_what_changed(
    folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compare", *map(str, folders), "--no-cache"]) == 0
    shown = capsys.readouterr().out
    assert "B is slower than A: 535 µs → 735 µs a step" in shown
    assert "Rank 2 computes 200 µs longer a step" in shown


def test_a_job_is_as_fast_as_itself(folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    code, answer = compared(capsys, str(folders[0]), str(folders[0]))
    assert (code, answer["verdict"]) == (0, "same")


def test_jobs_of_another_size_are_not_comparable(
    folders: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job(tmp_path / "c", (400.0,) * 2)
    code, answer = compared(capsys, str(folders[0]), str(tmp_path / "c"))
    assert (code, answer["verdict"]) == (4, "not_comparable")
    assert answer["reasons"][0] == "A ran on 4 ranks and B on 2 ranks"


def test_two_ranks_of_one_job_are_not_comparable_and_the_right_command_is_named(
    folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(folders[1] / f"rank{rank}_trace.json") for rank in (0, 2)]
    code, answer = compared(capsys, *files)
    assert (code, answer["verdict"]) == (4, "not_comparable")
    assert "warpline diagnose FOLDER says who is late" in answer["reasons"][0]


def test_a_job_and_one_rank_are_refused(folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", str(folders[0]), str(folders[1] / "rank0_trace.json"), "--no-cache"]) == 2
    assert "job-and-rank" in capsys.readouterr().err
