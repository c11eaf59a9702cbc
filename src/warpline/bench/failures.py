"""Whatever goes wrong in the program that is timed, as one line; and what it prints, out of the answer's way."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from warpline.bench.calls import Calls
from warpline.errors import WarplineError

INTERRUPTED = 130
LONGEST = 300


def program_failed(what: str, error: BaseException, file: str) -> WarplineError:
    """An error of the program's own, with the last of its lines that led to it."""
    path = str(Path(file).absolute())
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    where = f" in line {lines[-1]}" if lines else ""
    reason = " ".join(f"{type(error).__name__}: {error}".split())[:LONGEST]
    return WarplineError("program-failed", f"{what} failed{where}, {reason}", "run it alone")


@contextlib.contextmanager
def failures_said() -> Iterator[None]:
    """Errors of the functions that are timed are their own, and Ctrl-C is the user's; all others are ours."""
    try:
        yield
    except KeyboardInterrupt:
        raise WarplineError("interrupted", "stopped at your request", exit_code=INTERRUPTED) from None
    except WarplineError:
        raise
    except (Exception, SystemExit) as error:
        function = _called(error)
        if function is None:
            raise
        file = getattr(getattr(function, "__code__", None), "co_filename", "")
        raise program_failed(getattr(function, "__name__", type(function).__name__), error, file) from error


def _called(error: BaseException) -> Any:
    """The function that was being timed when it happened; None where none was."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__) if frame.f_code is Calls.__call__.__code__]
    return frames[-1].f_locals["self"].function if frames else None


@contextlib.contextmanager
def prints_on_stderr() -> Iterator[None]:
    """What the program prints goes to stderr, also from its libraries: stdout is for the answer."""
    sys.stdout.flush()
    with contextlib.ExitStack() as undo:
        with contextlib.suppress(OSError):  # closed
            kept = os.dup(1)
            undo.callback(os.close, kept)
            os.dup2(2, 1)
            undo.callback(os.dup2, kept, 1)
        undo.enter_context(contextlib.redirect_stdout(sys.stderr))
        yield
