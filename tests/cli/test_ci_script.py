"""The script of the GitHub action: budgets from lines, the summary, and the exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT
from step_traces import steps, trace


@pytest.fixture
def job(tmp_path: Path) -> dict[str, str]:
    """The environment of a job, with `warpline` on its path."""
    command = tmp_path / "bin" / "warpline"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m warpline "$@"\n')
    command.chmod(0o755)
    path = trace(tmp_path, "run", steps(6, [("gemm", 100.0)]))
    source = f"{ROOT / 'src'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    return {
        **os.environ,
        "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": source,
        "TRACES": str(path),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
    }


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        ({"BUDGETS": "kernels<=1\n\n  launches<=1  \n"}, 0, "Passed."),
        ({"BUDGETS": "kernels<=0"}, 3, "exceeded"),
        ({"BUDGETS": "nonsense"}, 2, None),
    ],
)
def test_the_exit_code_is_the_gates_and_the_summary_has_its_answer(
    job: dict[str, str], more: dict[str, str], code: int, said: str | None
) -> None:
    ran = subprocess.run(["bash", str(ROOT / "ci" / "gate.sh")], env={**job, **more}, capture_output=True, check=False)
    assert ran.returncode == code, ran.stderr
    summary = Path(job["GITHUB_STEP_SUMMARY"])
    assert summary.exists() == (said is not None)
    if said is not None:
        assert said in summary.read_text()
