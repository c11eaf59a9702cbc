"""A process of the program: it is ended with all that it started."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from warpline.capture.trial.plan import VARIABLE, TrialPlan
from warpline.trial.process import VariantProcess

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


def _text(file: Path) -> str:
    """What is written into the file, once it is."""
    until = time.monotonic() + 60
    while time.monotonic() < until and not (file.exists() and file.read_text()):
        time.sleep(0.01)
    return file.read_text()


def _runs(pid: int) -> bool:
    """Whether the process has not ended within a second; one that nobody waits for has ended too."""
    for _ in range(100):
        stat = Path(f"/proc/{pid}/stat")
        if not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z":
            return False
        time.sleep(0.01)
    return True
