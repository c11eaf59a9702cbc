"""A program under `try`, with a fix, and with a stopwatch in its source, in the same rounds; whatever the times."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
FOLDER = Path(__file__).parents[2] / "faults" / "tried" / "programs"


def test_each_kind_of_process_is_timed_in_the_same_rounds() -> None:
    words = ("try", "plain", "fused_optimizer", "--after", "actor_opt.step()", "--seconds", "0", "--window", "0.1")
    command = (sys.executable, "-m", "faults.tried.by_turns", str(FOLDER / "td3.py"), *words)
    ran = subprocess.run(command, cwd=FOLDER.parents[2], capture_output=True, text=True, check=True)
    assert "2 rounds of" in ran.stdout
    assert re.findall(r"^(\w+): [\d.]+ ms; ([\d.]+)", ran.stdout, re.M)[0] == ("try", "1.000")
    assert len(re.findall(r"^\w+: [\d.]+ ms", ran.stdout, re.M)) == 3
