"""Where the answer of a verb goes: to the terminal, to stdout as JSON, or to a file whose suffix picks the format."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any

import click
from msgspec import Struct
from rich.console import Console

from warpline.cli.options import PATH, bundle, force_option, json_option
from warpline.cli.write import json_text, print_json, put_text, refuse_existing, say, table_width
from warpline.errors import UsageError
from warpline.reports import html, markdown, terminal
from warpline.reports.console import plain_console
from warpline.reports.page.shell import document as html_document
from warpline.reports.sections import Report

PIPE_WIDTH = 120
"""Width of a report in a file or pipe, if COLUMNS is not set."""


class ReportFormat(StrEnum):
    """Format of a report, by the suffix of its file."""

    TERMINAL = ".txt"
    MARKDOWN = ".md"
    JSON = ".json"
    HTML = ".html"


class ReportOutput(Struct, frozen=True):
    """The options --json, -o and -f; an unknown format and an existing file are refused before the work starts."""

    as_json: bool = False
    file: Path | None = None
    force: bool = False

    def __post_init__(self) -> None:
        if not self.as_json and self.file is not None and self.file.suffix.lower() not in list(ReportFormat):
            known = ", ".join(ReportFormat)
            raise UsageError("unknown-format", f"unknown format of {self.file.name}", f"use {known}")
        refuse_existing(self.file, self.force)

    @property
    def format(self) -> ReportFormat:
        """JSON if requested, else by the file's suffix."""
        if self.as_json:
            return ReportFormat.JSON
        return ReportFormat.TERMINAL if self.file is None else ReportFormat(self.file.suffix.lower())

    def put(self, report: Callable[[], Report], document: Callable[[], Any]) -> None:
        """Print the answer, or write it to the file: the document as JSON, or else the report."""
        match self.format:
            case ReportFormat.JSON if self.file is None:
                print_json(document())
            case ReportFormat.JSON:
                put_text(json_text(document()), self.file)
            case ReportFormat.MARKDOWN:
                put_text(markdown.render(report()), self.file)
            case ReportFormat.HTML:
                put_text(page_of(report()), self.file)
            case ReportFormat.TERMINAL if self.file is None:
                print_report(report())
            case ReportFormat.TERMINAL:
                put_text(terminal.render(report(), table_width() or PIPE_WIDTH).plain, self.file)
        if self.file is not None:
            say(f"wrote {self.file}", err=True)


output_options = bundle(
    "output",
    ReportOutput,
    json_option,
    click.option(
        "-o", "--output", "file", type=PATH, metavar="FILE", help="Write to this file: .md, .txt, .json or .html."
    ),
    force_option,
)


def report_console() -> Console:
    """The console for reports: in colour on a terminal, without escape codes in a pipe."""
    return plain_console(width=table_width() or PIPE_WIDTH)


def print_report(report: Report) -> None:
    """Print a report in the width of COLUMNS or the terminal."""
    console = report_console()
    console.print(terminal.render(report, console.width), soft_wrap=True, end="")


def page_of(report: Report) -> str:
    """A report as one HTML file without a script."""
    title = report.title or next((section.title for section in report.sections if section.title), "")
    sections = "\n".join(map(html.section, report.sections))
    return html_document(title, title, f"<main>\n{sections}\n</main>")
