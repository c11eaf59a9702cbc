"""``warpline lint``: what in a program's source slows the GPU, without running it."""

from __future__ import annotations

from pathlib import Path

import click

from warpline.cli.options import PATH
from warpline.cli.output import ReportOutput, output_options
from warpline.cli.write import say_error
from warpline.errors import EXIT_FAILED, EXIT_REGRESSION, UnreadableFile
from warpline.lint import LintFinding, imports_gpu_library, lint_file, python_files
from warpline.reports.lint import lint_report

SCHEMA = "warpline.lint/1"


@click.command()
@click.argument(
    "files", nargs=-1, required=True, type=PATH, metavar="FILE.py…", help="Programs, or folders with programs."
)
@output_options
def lint(files: tuple[Path, ...], output: ReportOutput) -> None:
    """Find what slows the GPU or makes a timing wrong in a program's source, without running it.

    Each finding has its line, a code and a fix. `# warpline: ignore[CODE]` on the line silences it. Of a folder, all
    Python files are read, except in hidden folders and installed packages. The exit code is 0 without findings, 3 with
    some, and 1 if a file is not valid Python.

    Examples:

      warpline lint train.py

      warpline lint src --json
    """
    findings: list[LintFinding] = []
    errors: list[UnreadableFile] = []
    read: list[Path] = []
    programs = list(dict.fromkeys(program for file in files for program in python_files(file)))
    for file in programs:
        try:
            findings += lint_file(file)
            read.append(file)
        except UnreadableFile as error:
            errors.append(error)
    if output.as_json or len(errors) < len(programs):
        output.put(
            lambda: lint_report(
                findings, len(programs) - len(errors), bool(findings) or any(map(imports_gpu_library, read))
            ),
            lambda: {
                "schema": SCHEMA,
                "files": len(programs),
                "findings": [finding.to_dict() for finding in findings],
                "errors": [{"code": failed.code, "message": failed.message, "hint": failed.hint} for failed in errors],
            },
        )
    for failed in errors:
        say_error(failed)
    code = EXIT_FAILED if errors else EXIT_REGRESSION if findings else 0
    if code:
        raise click.exceptions.Exit(code)
