"""A profile on standard input: kept in a file of its own until the process ends, since readers seek in it."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

from warpline.errors import UnreadableFile, UsageError
from warpline.sources.private_files import folder_until_exit

STDIN = Path("-")
"""Standard input, as a command line names it."""
_HINT = "warpline - < FILE"
_spooled: set[Path] = set()


def spooled_stdin() -> Path:
    """A file with everything that standard input holds."""
    if sys.stdin.isatty():
        raise UsageError("no-input", "- reads a profile from standard input, which is a terminal", _HINT)
    path = folder_until_exit() / "stdin"
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    if not path.stat().st_size:
        raise UnreadableFile("empty-input", "standard input is empty", _HINT)
    _spooled.add(path)
    return path


def as_typed(path: Path) -> str:
    """The path as typed in a shell: relative if that is shorter, and `-` for what came from standard input."""
    typed = str(STDIN if path in _spooled else path)
    return min(typed, os.path.relpath(path), key=len)


def as_shell_word(path: Path) -> str:
    """The path as one word of a command that can be pasted."""
    return shlex.quote(as_typed(path))


def without_spool(text: str) -> str:
    """A text that says "standard input" where it names the file that keeps it."""
    for path in _spooled:
        text = text.replace(str(path), "standard input")
    return text
