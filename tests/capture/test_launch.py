"""A program run in our place, without torch; and processes that are ended, by ever stronger signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from warpline.capture.launch import EndProcesses, launch
from warpline.errors import WarplineError


@pytest.mark.parametrize(
    ("code", "exit_code", "name"),
    [
        ("raise SystemExit(7)", 7, None),
        ("os.kill(os.getpid(), 9)", 137, "SIGKILL"),
        ("os.kill(os.getpid(), 40)", 168, "signal 40"),
    ],
    ids=["exit", "signal", "nameless"],
)
def test_the_exit_code_is_the_programs_or_128_and_its_signal(code: str, exit_code: int, name: str | None) -> None:
    ending = launch([sys.executable, "-c", f"import os; {code}"], os.environ)
    assert (ending.exit_code, ending.signal, ending.interrupted) == (exit_code, name, False)


def test_a_program_that_cannot_be_started_is_one_line() -> None:
    with pytest.raises(WarplineError, match="cannot-run: /dev/null could not be started: Permission denied"):
        launch(["/dev/null"], os.environ)


def started(ignored: list[str]) -> subprocess.Popen[str]:
    ignore = "".join(f"signal.signal(signal.{name}, signal.SIG_IGN);" for name in ignored)
    program = f"import signal, time; signal.signal(signal.SIGINT, signal.SIG_DFL); {ignore} print('ready', flush=True); time.sleep(600)"
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child


@pytest.mark.parametrize(
    ("ignored", "ended_by", "said"),
    [
        ([], signal.SIGINT, 0),
        (["SIGINT"], signal.SIGTERM, 1),
        (["SIGINT", "SIGTERM"], signal.SIGKILL, 2),
    ],
)
def test_each_signal_is_stronger_than_the_last(
    ignored: list[str], ended_by: signal.Signals, said: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warpline.capture.launch.GRACE_S", 0.2 if ignored else 60.0)
    child = started(ignored)
    lines: list[str] = []
    EndProcesses([child.pid], lines.append).wait()
    assert child.wait(60) == -ended_by
    assert len(lines) == said
    assert all("did not end within 0.2 s; sending SIG" in line for line in lines)


def test_a_process_that_is_gone_is_not_waited_for() -> None:
    child = started([])
    child.kill()
    child.wait()
    EndProcesses([child.pid], lambda _: pytest.fail("nothing to say")).wait()
