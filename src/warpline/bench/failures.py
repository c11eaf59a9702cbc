"""Report errors of the timed program as one line, and keep its output apart from the answer."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from warpline.bench.calls import AlternatingCalls
from warpline.errors import WarplineError

INTERRUPTED = 130
MAX_MESSAGE_CHARS = 300


def program_failed(what: str, error: BaseException, file: str) -> WarplineError:
    """An error of the program, with its last source line."""
    path = str(Path(file).absolute())
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    where = f" in line {lines[-1]}" if lines else ""
    reason = " ".join(f"{type(error).__name__}: {error}".split())[:MAX_MESSAGE_CHARS]
    return WarplineError("program-failed", f"{what} failed{where}, {reason}", "run it without bench")


@contextlib.contextmanager
def failures_said() -> Iterator[None]:
    """Report errors of the timed functions as theirs and Ctrl-C as the user's; raise all others."""
    try:
        yield
    except KeyboardInterrupt:
        raise WarplineError("interrupted", "stopped by Ctrl-C", exit_code=INTERRUPTED) from None
    except WarplineError:
        raise
    except (Exception, SystemExit) as error:
        function = _called(error)
        if function is None:
            raise
        file = getattr(getattr(function, "__code__", None), "co_filename", "")
        raise program_failed(getattr(function, "__name__", type(function).__name__), error, file) from error


def _called(error: BaseException) -> Any:
    """The function that was being timed; None if none was."""
    frames = [
        frame
        for frame, _ in traceback.walk_tb(error.__traceback__)
        if frame.f_code is AlternatingCalls.__call__.__code__
    ]
    return frames[-1].f_locals["self"].function if frames else None


@contextlib.contextmanager
def prints_on_stderr() -> Iterator[None]:
    """Redirect the program's output, including that of its libraries, to stderr: stdout is for the answer."""
    sys.stdout.flush()
    with contextlib.ExitStack() as undo:
        with contextlib.suppress(OSError):  # closed
            stdout_copy = os.dup(1)
            undo.callback(os.close, stdout_copy)
            os.dup2(2, 1)
            undo.callback(os.dup2, stdout_copy, 1)
        undo.enter_context(contextlib.redirect_stdout(sys.stderr))
        yield
