"""A program run in our place, without torch."""

from __future__ import annotations

import os
import sys

import pytest

from warpline.capture.launch import launch
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
