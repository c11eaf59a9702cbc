"""How every command answers: a report on the console, JSON on stdout, or a file that replaces none unasked."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
from enum import StrEnum
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


def report_console(pipe_width: int = PIPE_WIDTH) -> Console:
    """Where a report is printed: in colour on a terminal, without an escape code in a pipe."""
    from rich.console import Console  # noqa: PLC0415 - loaded when used, so that --help stays quick

    return Console(width=table_width() or pipe_width)


class ReportFormat(StrEnum):
    """How a report is written."""

    TERMINAL = ".txt"
    MARKDOWN = ".md"
    JSON = ".json"


def format_of(output: Path | None, as_json: bool) -> ReportFormat:
    """JSON where it was asked for, else what the file's suffix says."""
    if as_json or output is None:
        return ReportFormat.JSON if as_json else ReportFormat.TERMINAL
    try:
        return ReportFormat(output.suffix.lower())
    except ValueError as error:
        known = ", ".join(ReportFormat)
        raise UsageError("unknown-format", f"no format goes with {output.name}", f"end it in {known}") from error


def put_report(report: Report, chosen: ReportFormat = ReportFormat.TERMINAL, output: Path | None = None) -> None:
    """A report on the terminal or in a file, as wide as COLUMNS or the terminal says."""
    from warpline.reports import markdown, terminal  # noqa: PLC0415 - loaded when used, so that --help stays quick

    if output is None:
        console = report_console()
        console.print(terminal.render(report, console.width), soft_wrap=True, end="")
    elif chosen is ReportFormat.MARKDOWN:
        write_text(output, markdown.render(report))
    else:
        write_text(output, terminal.render(report, table_width() or PIPE_WIDTH).plain)


def put_text(text: str, output: Path | None) -> None:
    """A text on stdout or in a file."""
    if output is None:
        sys.stdout.write(text)
    else:
        write_text(output, text)


def short_path(path: Path) -> str:
    """The path as one types it: relative where that is shorter."""
    relative = os.path.relpath(path)
    return relative if len(relative) < len(str(path)) else str(path)


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
