"""Answers are JSON that every program can read, and files that replace none unasked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from warpline.cli.main import run
from warpline.cli.write import json_text, refuse_existing, write_text
from warpline.errors import UsageError, WarplineError


def test_what_json_has_no_number_for_is_null() -> None:
    answer = {"a": [float("inf"), 1.5, (float("nan"), 2)], "b": "NaN"}
    assert json.loads(json_text(answer)) == {"a": [None, 1.5, [None, 2]], "b": "NaN"}


def test_an_existing_file_is_kept_without_force(tmp_path: Path) -> None:
    file = tmp_path / "answer.txt"
    write_text(file, "old")
    with pytest.raises(UsageError, match="file-exists"):
        refuse_existing(file, force=False)
    refuse_existing(file, force=True)
    refuse_existing(tmp_path / "new.txt", force=False)


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(WarplineError, match="cannot-write"):
        write_text(tmp_path / "absent" / "answer.txt", "")


def test_launches_that_take_no_time_have_no_crossover(capsys: pytest.CaptureFixture[str]) -> None:
    free = ["budget", "--ops", "10", "--cpu-us", "0"]
    assert run([*free, "--gpu-us", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["crossover_ops"] is None
    assert run([*free, "--gpu-us", "4"]) == 0
    assert "crossover" not in capsys.readouterr().out
    assert run([*free, "--gpu-us", "0"]) == 2
    assert capsys.readouterr().err.startswith("warpline: no-time")
