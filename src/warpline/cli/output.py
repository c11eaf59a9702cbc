"""Output of every command: a report on the console, JSON on stdout, or a file, never overwritten without -f.

No other module of the command line writes to the terminal, so that a file's text is sanitised in one place.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import click

from warpline.atomic_write import write_atomically
from warpline.errors import UsageError, WarplineError
from warpline.sanitise import sanitise_json, sanitise_lines

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from warpline.reports.sections import Report

PIPE_WIDTH = 120
"""Width of a report in a file or pipe, if COLUMNS is not set."""


def table_width() -> int | None:
    """Width of a table: COLUMNS if set, else the terminal's width; unlimited without a terminal."""
    asked = os.environ.get("COLUMNS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def report_console() -> Console:
    """The console for reports: in colour on a terminal, without escape codes in a pipe."""
    from warpline.reports.console import plain_console  # noqa: PLC0415 - loaded when used, so that --help stays quick

    return plain_console(width=table_width() or PIPE_WIDTH)


class ReportFormat(StrEnum):
    """Format of a report."""

    TERMINAL = ".txt"
    MARKDOWN = ".md"
    JSON = ".json"


def format_of(output: Path | None, as_json: bool) -> ReportFormat:
    """JSON if requested, else by the file's suffix."""
    if as_json or output is None:
        return ReportFormat.JSON if as_json else ReportFormat.TERMINAL
    try:
        return ReportFormat(output.suffix.lower())
    except ValueError as error:
        known = ", ".join(ReportFormat)
        raise UsageError("unknown-format", f"unknown format of {output.name}", f"use {known}") from error


def put_report(report: Report, chosen: ReportFormat = ReportFormat.TERMINAL, output: Path | None = None) -> None:
    """Print a report or write it to a file, in the width of COLUMNS or the terminal."""
    from warpline.reports import markdown, terminal  # noqa: PLC0415 - loaded when used, so that --help stays quick

    if output is None:
        console = report_console()
        console.print(terminal.render(report, console.width), soft_wrap=True, end="")
    elif chosen is ReportFormat.MARKDOWN:
        write_text(output, markdown.render(report))
    else:
        write_text(output, terminal.render(report, table_width() or PIPE_WIDTH).plain)


def put_answer(answer: Any, report: Report, chosen: ReportFormat, output: Path | None) -> None:
    """Print or write an answer: as JSON if that was chosen, else as a report."""
    if chosen is ReportFormat.JSON:
        put_text(json_text(answer), output)
    else:
        put_report(report, chosen, output)


def put_text(text: str, output: Path | None = None) -> None:
    """Write lines of text to stdout or to a file."""
    if output is None:
        sys.stdout.write(sanitise_lines(text))
    else:
        write_text(output, text)


def say(text: str, *, err: bool = False) -> None:
    """Print a line, or write it on stderr."""
    click.echo(sanitise_lines(text), err=err)


def short_path(path: Path) -> str:
    """The path as typed in a shell: relative if that is shorter."""
    relative = os.path.relpath(path)
    return relative if len(relative) < len(str(path)) else str(path)


def print_json(answer: Any) -> None:
    """Print the answer as strict JSON on stdout."""
    put_text(json_text(answer))


def json_text(answer: Any) -> str:
    """The answer as JSON; infinity and NaN become null.

    Texts are exact: what a terminal would act on is written as JSON's own escape.
    """
    try:
        text = json.dumps(answer, indent=1, ensure_ascii=False, allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(answer), indent=1, ensure_ascii=False)
    return sanitise_json(text) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def refuse_existing(file: Path | None, force: bool) -> None:
    """Refuse to overwrite a file without -f; called before the analysis starts."""
    if file is not None and file.exists() and not force:
        raise UsageError("file-exists", f"{file} exists already", "add -f to overwrite it")


def write_text(file: Path, text: str) -> None:
    """Write the output file."""
    try:
        write_atomically(file, text)
    except OSError as error:
        raise WarplineError("cannot-write", f"{file}: {error.strerror}", "name another file") from error
