"""The errors that warpline raises on purpose.

The command line prints an error as a single line, ``warpline: CODE: what, why, what to type next``,
and exits with its exit code. Any other exception is a bug in warpline.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

from warpline.sanitise import sanitise

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_REGRESSION = 3
EXIT_INCONCLUSIVE = 4


class WarplineError(Exception):
    """An error that the user can understand and act on.

    ``code`` is a stable kebab-case word, ``message`` says what happened and why, and ``hint`` says
    what to type next.

    >>> try:
    ...     warpline.open("trace.json.gz")
    ... except warpline.WarplineError as error:
    ...     print(error.code, error.hint)
    """

    def __init__(self, code: str, message: str, hint: str = "", exit_code: int = EXIT_FAILED) -> None:
        self.code = code
        self.message = message
        self.hint = hint
        self.exit_code = exit_code
        super().__init__(self.line())

    def line(self) -> str:
        """The error as one printable line, whatever the file and its name hold."""
        text = f"{self.code}: {self.message}" + (f"; {self.hint}" if self.hint else "")
        return sanitise(re.sub(r"[ \t\r\n]+", " ", text).strip())


class UnreadableFile(WarplineError):
    """The file is missing, empty, of an unknown kind, or damaged before its first event ends."""


class UsageError(WarplineError):
    """The command or call has invalid arguments."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(code, message, hint, EXIT_USAGE)


class CannotAnswer(WarplineError):
    """The trace lacks the data that the answer needs; zero is never returned instead."""


class NoGpuWork(CannotAnswer):
    """The trace has no GPU operations, and the answer is about them."""

    def __init__(self, what: str) -> None:
        hint = (
            "of a program without a GPU, warpline diagnose, ops, compare and gate tell the CPU's time, and "
            "warpline try measures fixes; of another, record CUDA activities"
        )
        super().__init__("no-gpu-work", what, hint)


def meant(word: str, known: Iterable[str]) -> str:
    """A hint for a name that is not known: the one that it looks like, those that contain it, else all of them."""
    names = sorted(known)
    near = get_close_matches(word, names, 1) or [name for name in names if word and word.lower() in name.lower()]
    return f"did you mean {' or '.join(near)}?" if near else f"use one of {', '.join(names)}"
