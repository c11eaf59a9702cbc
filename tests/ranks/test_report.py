"""The answer about a job on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rank_files import job

from warpline.cli.main import run


def test_a_folder_of_ranks_is_answered_as_one_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job(tmp_path, late={2: 200.0})
    assert run([str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "The job waits for rank 2: the same kernels take 200 µs longer a step than on other ranks" in shown
    assert "535 µs instead of 735 µs" in shown
    assert shown.index("   2  ") < shown.index("   0  ")  # who holds others up stands first


def test_steps_of_two_kinds_have_a_length_on_average(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Steps of 535 µs; then every second one is 1,000 µs longer, so that none is as long as the average."""
    for name, stalls in (("alike", {}), ("two", {(rank, step): 1_000.0 for rank in range(4) for step in (1, 3, 5)})):
        job(tmp_path / name, steps=7, stalls_us=stalls)
        assert run([str(tmp_path / name)]) == 0
        title = capsys.readouterr().out.splitlines()[0]
        assert title == f"{name} · 4 ranks · 7 steps of " + ("535 µs" if name == "alike" else "1.03 ms on average")


def test_the_json_is_the_documented_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job(tmp_path, late={2: 200.0})
    assert run(["diagnose", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["job"]["straggler"]["ranks"] == [2]


def test_steps_of_a_job_cannot_be_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job(tmp_path)
    assert run(["diagnose", str(tmp_path), "--steps", "1:2"]) == 2
    assert "steps-of-job" in capsys.readouterr().err


def test_what_was_summarised_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WARPLINE_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "ranks"
    files = job(folder, steps=60)
    assert min(file.stat().st_size for file in files) > 64 << 10
    assert run([str(folder), "--json"]) == 0
    first = capsys.readouterr().out
    monkeypatch.setattr("warpline.ranks.read.summarise", None)
    assert run([str(folder), "--json"]) == 0
    assert capsys.readouterr().out == first


def test_verbose_adds_the_collectives_with_the_longest_waits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job(tmp_path, late={2: 200.0})
    for more in ((), ("-v",)):
        assert run(["diagnose", str(tmp_path), "--no-cache", *more]) == 0
        shown = capsys.readouterr().out
        assert ("Collectives with the longest waits" in shown) == bool(more)
        assert "warpline report " in shown


def test_a_pause_leads_to_the_ranks_together_and_not_to_the_file_of_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job(tmp_path, pause_us={1: 300.0})
    assert run(["diagnose", str(tmp_path), "--no-cache"]) == 0
    shown = capsys.readouterr().out
    assert "Look for what takes the process off the CPU" in shown
    assert "rank1_trace.json" not in shown


def test_many_files_left_out_for_one_reason_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job(tmp_path)
    for number in range(20):
        (tmp_path / f"c{number:02}.json").write_text('{"a": 1}')
    assert run([str(tmp_path)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "20 files are left out; c00.json is left out: " in shown
    assert "likewise 19 more (-v)" in shown
    assert "c19.json" not in shown
    assert run([str(tmp_path), "-v"]) == 0
    assert "c19.json is left out: " in " ".join(capsys.readouterr().out.split())
