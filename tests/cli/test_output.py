"""Answers are JSON that every program can read, and files that replace none unasked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
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


WARPLINE = [sys.executable, "-c", "from warpline.cli.main import main; main()"]


@pytest.mark.parametrize(("encoding", "time"), [("ascii", b"600 us"), ("latin-1", b"600 \xb5s")])
def test_a_sign_that_the_encoding_lacks_is_a_plain_one(encoding: str, time: bytes) -> None:
    # 50 launches of 12 µs take 600 µs.
    budget = ["budget", "--ops", "50", "--cpu-us", "12", "--gpu-us", "1"]
    done = subprocess.run(
        [*WARPLINE, *budget], env={**os.environ, "PYTHONIOENCODING": encoding}, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert time in done.stdout


def test_json_is_ascii_where_stdout_is_not_utf_8() -> None:
    done = subprocess.run(
        [*WARPLINE, "explain", "no-µ", "--json"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert json.loads(done.stdout)["unknown"][0]["name"] == "no-µ"
