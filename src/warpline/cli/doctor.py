"""``warpline doctor``: why profiling fails, on this machine, in a file, or in a command line before it is run."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import click

from warpline.cli.options import WORDS
from warpline.cli.output import ReportOutput, output_options
from warpline.doctor.checkup import examine_machine
from warpline.doctor.command_line import TOOLS
from warpline.doctor.commands import examine_command
from warpline.doctor.files import examine_files
from warpline.doctor.machine import ThisMachine
from warpline.doctor.model import Examination, exit_code, to_document
from warpline.reports.console import spinner
from warpline.reports.doctor import doctor_report
from warpline.sources.stdin import STDIN, spooled_stdin


class CommandLineAsWords(click.Command):
    """A command whose words may be a command line: from the name of its program on, options are the program's. A
    command line that is one quoted word ends with it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As if -- stood before the program."""
        first = next((place for place, word in enumerate(args) if not word.startswith("-")), None)
        is_program = first is not None and len(args[first].split()) == 1 and _is_command(args[first])
        if is_program and "--" not in args[:first]:
            args = [*args[:first], "--", *args[first:]]
        return super().parse_args(ctx, args)


@click.command(cls=CommandLineAsWords)
@click.argument(
    "subjects",
    nargs=-1,
    type=WORDS,
    metavar="[FILE…|COMMAND]",
    help="Profiles, logs or folders; or a command line. Default: this machine.",
)
@click.option("-v", "--verbose", is_flag=True, help="Also show passed checks and notes.")
@output_options
def doctor(subjects: tuple[str, ...], verbose: bool, output: ReportOutput) -> None:
    """Explain why profiling fails, and how to fix it: on this machine, in a profile, or in a command line.

    Exit code 1 if a problem was found, 4 if a file or command could not be checked, else 0.

    Examples:

      warpline doctor

      warpline doctor report.sqlite trace.json.gz nsys.log

      warpline doctor "nsys profile --capture-range=nvtx -o out python train.py"

      warpline doctor -- ncu -k gemm --set full python train.py
    """
    examinations = _examine(subjects)
    output.put(lambda: doctor_report(examinations, verbose), lambda: to_document(examinations))
    raise click.exceptions.Exit(exit_code(examinations))


def _examine(subjects: Sequence[str]) -> list[Examination]:
    if not subjects:
        return [_this_machine()]
    if _is_command(subjects[0]):
        given = subjects[0] if len(subjects) == 1 else list(subjects)
        return [examine_command(given, ThisMachine())]
    files = [spooled_stdin() if Path(subject) == STDIN else Path(subject) for subject in subjects]
    with spinner("reading …") as now:
        return examine_files(files, lambda what: now(f"reading {what} …"))


def _this_machine() -> Examination:
    with spinner("looking …") as now:
        return examine_machine(ThisMachine(), lambda what: now(f"{what} …"))


def _is_command(word: str) -> bool:
    """An existing file is a file; a program, or several words, begin a command line."""
    try:
        if Path(word).exists():
            return False
    except OSError:
        # The line is too long for a file name.
        return True
    return word.rpartition("/")[2] in TOOLS or len(word.split()) > 1 or shutil.which(word) is not None
