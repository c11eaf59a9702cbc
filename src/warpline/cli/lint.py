"""``warpline lint``: what in a program's source slows the GPU, without running it."""

from __future__ import annotations

from pathlib import Path

import click

from warpline.cli.options import json_option
from warpline.cli.output import print_json, put_report, say
from warpline.errors import EXIT_FAILED, EXIT_REGRESSION, UnreadableFile

SCHEMA = "warpline.lint/1"


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE.py…", help="Programs.")
@json_option
def lint(files: tuple[Path, ...], as_json: bool) -> None:
    """Find what slows the GPU or makes a timing wrong in a program's source, without running it.

    Each finding has its line, a code and a fix. `# warpline: ignore[CODE]` on the line silences it. The exit code is 0
    without findings, 3 with some, and 1 if a file is not valid Python.

    Examples:

      warpline lint train.py

      warpline lint src/*.py --json
    """
    from warpline.lint import LintFinding, lint_file  # noqa: PLC0415 - loaded when used, so that --help stays quick

    findings: list[LintFinding] = []
    errors: list[UnreadableFile] = []
    for file in files:
        try:
            findings += lint_file(file)
        except UnreadableFile as error:
            errors.append(error)
    if as_json:
        print_json(
            {
                "schema": SCHEMA,
                "files": len(files),
                "findings": [finding.to_dict() for finding in findings],
                "errors": [{"code": failed.code, "message": failed.message, "hint": failed.hint} for failed in errors],
            }
        )
    elif len(errors) < len(files):
        from warpline.reports.lint import lint_report  # noqa: PLC0415

        put_report(lint_report(findings, len(files) - len(errors)))
    for failed in errors:
        say(f"warpline: {failed.line()}", err=True)
    code = EXIT_FAILED if errors else EXIT_REGRESSION if findings else 0
    if code:
        raise click.exceptions.Exit(code)
