"""A process of the program: it is ended with all that it started."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import msgspec
import pytest

from warpline.capture.trial.gate import READY
from warpline.capture.trial.plan import VARIABLE, TrialPlan
from warpline.trial.process import ProcessReport, VariantProcess

STARTS_A_RANK = """
import subprocess, time
rank = subprocess.Popen(["sleep", "1000"], start_new_session=True)
open("rank", "w").write(str(rank.pid))
time.sleep(1000)
"""


@pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="only /proc shows which processes are the program's"
)
def test_ranks_in_sessions_of_their_own_end_with_the_program(tmp_path: Path) -> None:
    running = {}
    for number in ("1", "10"):
        folder = tmp_path / number
        folder.mkdir()
        environment = {**os.environ, VARIABLE: TrialPlan(str(folder), os.getpid(), time.time()).to_text()}
        command = [sys.executable, "-c", STARTS_A_RANK]
        running[number] = VariantProcess("baseline", folder, command, environment, folder)
    ranks = {number: int(_text(tmp_path / number / "rank")) for number in running}
    running["1"].end()
    assert not _runs(ranks["1"])
    assert _runs(ranks["10"])
    running["10"].end()
    assert not _runs(ranks["10"])


@pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="only /proc shows which processes are the program's"
)
def test_ranks_in_sessions_of_their_own_stop_with_the_program(tmp_path: Path) -> None:
    environment = {**os.environ, VARIABLE: TrialPlan(str(tmp_path), os.getpid(), time.time()).to_text()}
    process = VariantProcess("baseline", tmp_path, [sys.executable, "-c", STARTS_A_RANK], environment, tmp_path)
    rank = int(_text(tmp_path / "rank"))
    (tmp_path / READY).write_bytes(msgspec.json.encode(ProcessReport({}, 8, 0, 0, 0, 0, {}, {})))
    assert process.is_ready()
    process.pause()
    assert _comes_to(rank, "T")
    process.run_window()
    assert _comes_to(rank, "S")
    process.end()


def test_a_launcher_is_no_place_in_the_program(tmp_path: Path) -> None:
    process = VariantProcess("baseline", tmp_path, [sys.executable, "-c", ""], os.environ, tmp_path)
    (tmp_path / "log.txt").write_text(
        '  File "/venv/bin/torchrun", line 8 in <module>\n  File "train.py", line 3 in f\n'
    )
    assert process.place() == ' (File "train.py", line 3 in f)'
    process.end()


def _text(file: Path) -> str:
    """What is written into the file, once it is."""
    until = time.monotonic() + 60
    while time.monotonic() < until and not (file.exists() and file.read_text()):
        time.sleep(0.01)
    return file.read_text()


def _runs(pid: int) -> bool:
    """Whether the process has not ended within a second; one that nobody waits for has ended too."""
    return not _comes_to(pid, "Z")


def _comes_to(pid: int, state: str) -> bool:
    """Whether the process is in this state within a second, or at its end."""
    for _ in range(100):
        stat = Path(f"/proc/{pid}/stat")
        if not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == state:
            return True
        time.sleep(0.01)
    return False
