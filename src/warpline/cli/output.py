"""How every command answers: a report on the console, JSON on stdout, or a file that replaces none unasked."""

from __future__ import annotations

import json
import math
import sys
from typing import TYPE_CHECKING, Any

from warpline.errors import UsageError, WarplineError

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

PIPE_WIDTH = 140
"""How wide a report is when it goes to a file or another program."""


def report_console(pipe_width: int = PIPE_WIDTH) -> Console:
    """Where a report is printed: as wide as the terminal, or as it reads best in a file or another program."""
    from rich.console import Console  # noqa: PLC0415 - loaded when used, so that --help stays quick

    console = Console()
    return console if console.is_terminal else Console(width=pipe_width)


def print_json(answer: Any) -> None:
    """The answer on stdout, as JSON that every program can read."""
    sys.stdout.write(json_text(answer))


def json_text(answer: Any) -> str:
    """The answer as JSON; what JSON has no number for (infinity, not a number) is null."""
    try:
        return json.dumps(answer, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    except ValueError:
        return json.dumps(_finite(answer), indent=1, ensure_ascii=False) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def refuse_existing(file: Path | None, force: bool) -> None:
    """Asks for -f before a file is replaced; called before the work begins."""
    if file is not None and file.exists() and not force:
        raise UsageError("file-exists", f"{file} exists already", "add -f to overwrite it")


def write_text(file: Path, text: str) -> None:
    """Writes a file that was asked for."""
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise WarplineError("cannot-write", f"{file}: {error.strerror}", "name another file") from error
