"""A closed, full or broken standard stream ends in no traceback, and changes no answer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FULL = Path("/dev/full")
COMMANDS = ("explain sync", "--version", "diagnose missing --json", "nosuch")
SUCCESS = {"explain sync", "--version"}


def shell(command: str, streams: str) -> tuple[int, str, str]:
    """Exit code of the command, its stdout and its stderr."""
    script = f"{sys.executable} -m warpline {command} {streams}; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, timeout=120)
    assert "Traceback" not in done.stderr + done.stdout
    assert "internal-error" not in done.stderr + done.stdout
    assert "Exception ignored" not in done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("streams", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-", "| true", "2>&1 | true"])
def test_a_closed_stream_is_quiet(command: str, streams: str) -> None:
    code, _, _ = shell(command, streams)
    is_broken_pipe = "|" in streams and not (command == "nosuch" and "2>&1" not in streams)
    assert code == 0 if command in SUCCESS else code != 0 or is_broken_pipe


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize("command", ["explain sync", "--version", "diagnose missing --json"])
def test_a_full_stdout_is_one_line(command: str) -> None:
    code, _, err = shell(command, f"> {FULL}")
    assert code == 1
    assert err.startswith("warpline: cannot-write: ") and err.count("\n") == 1
    assert shell(command, f"> {FULL} 2> {FULL}")[0] == 1


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
def test_a_full_stderr_changes_no_answer() -> None:
    code, out, _ = shell("explain sync", f"2> {FULL}")
    assert code == 0 and out
    code, out, _ = shell("diagnose missing --json", f"2> {FULL}")
    assert code == 1 and '"no-such-file"' in out
