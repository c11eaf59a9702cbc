"""``warpline doctor``: why profiling fails, on this machine, in a file, or in a command line before it is run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from warpline.cli.options import json_option
from warpline.cli.output import print_json, put_report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpline.doctor.model import Examination


@click.command()
@click.argument(
    "subjects",
    nargs=-1,
    metavar="[FILE…|COMMAND]",
    help="Profiles, logs or folders; or a command line, quoted or after --. Default: this machine.",
)
@click.option("-v", "--verbose", is_flag=True, help="Also show passed checks and notes.")
@json_option
def doctor(
    subjects: tuple[str, ...],
    verbose: bool,
    as_json: bool,
) -> None:
    """Explain why profiling fails, and how to fix it: on this machine, in a profile, or in a command line.

    Exit code 1 if a problem was found, 4 if a file or command could not be checked, else 0.

    Examples:

      warpline doctor

      warpline doctor report.sqlite trace.json.gz nsys.log

      warpline doctor "nsys profile --capture-range=nvtx -o out python train.py"

      warpline doctor -- ncu -k gemm --set full python train.py
    """
    from warpline.doctor.model import exit_code, to_document  # noqa: PLC0415 - loaded when used

    examinations = _examine(subjects, as_json)
    if as_json:
        print_json(to_document(examinations))
    else:
        from warpline.reports.doctor import doctor_report  # noqa: PLC0415

        put_report(doctor_report(examinations, verbose))
    raise click.exceptions.Exit(exit_code(examinations))


def _examine(subjects: Sequence[str], as_json: bool) -> list[Examination]:
    from warpline.doctor.machine import ThisMachine  # noqa: PLC0415

    if not subjects:
        return [_this_machine()]
    if _is_command(subjects[0]):
        from warpline.doctor.commands import examine_command  # noqa: PLC0415

        given = subjects[0] if len(subjects) == 1 else list(subjects)
        return [examine_command(given, ThisMachine())]
    from warpline.doctor.files import examine_files  # noqa: PLC0415
    from warpline.reports.console import spinner  # noqa: PLC0415
    from warpline.sources.stdin import STDIN, spooled_stdin  # noqa: PLC0415

    files = [spooled_stdin() if Path(subject) == STDIN else Path(subject) for subject in subjects]
    if as_json:
        return examine_files(files)
    with spinner("reading …"):
        return examine_files(files)


def _this_machine() -> Examination:
    from warpline.doctor.checkup import examine_machine  # noqa: PLC0415
    from warpline.doctor.machine import ThisMachine  # noqa: PLC0415
    from warpline.reports.console import spinner  # noqa: PLC0415

    with spinner("looking …") as now:
        return examine_machine(ThisMachine(), lambda what: now(f"{what} …"))


def _is_command(word: str) -> bool:
    """An existing file is a file; else the words are a command line."""
    from warpline.doctor.command_line import TOOLS  # noqa: PLC0415

    try:
        if Path(word).exists():
            return False
    except OSError:
        # The line is too long for a file name.
        return True
    return word.rpartition("/")[2] in TOOLS or len(word.split()) > 1
