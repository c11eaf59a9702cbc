"""How every command answers: a report on the console, JSON on stdout, or a file that replaces none unasked."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
from typing import TYPE_CHECKING, Any

from warpline.errors import UsageError, WarplineError

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from warpline.reports.sections import Report

PIPE_WIDTH = 120
"""How wide a report is when it goes to a file or another program, and COLUMNS does not say."""


def table_width() -> int | None:
    """Columns that a table may take: COLUMNS where it is set, else the terminal's; all it needs where there is none."""
    asked = os.environ.get("COLUMNS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def report_width() -> int:
    """Columns that a report takes."""
    return table_width() or PIPE_WIDTH


def report_console(pipe_width: int = PIPE_WIDTH) -> Console:
    """Where a report is printed: in colour on a terminal, without an escape code in a pipe."""
    from rich.console import Console  # noqa: PLC0415 - loaded when used, so that --help stays quick

    return Console(width=table_width() or pipe_width)


def print_report(report: Report) -> None:
    """A report as titled sections, as wide as the terminal or as COLUMNS says."""
    from warpline.reports.terminal import render  # noqa: PLC0415

    console = report_console()
    console.print(render(report, console.width), soft_wrap=True, end="")


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
