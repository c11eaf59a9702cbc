"""``warpline baseline``: what a program took when it was good."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from warpline.cli.options import PATH, force_option
from warpline.cli.selection import StepSelection, selection_options
from warpline.cli.write import refuse_existing, say
from warpline.compare.baseline import path_of, write_baseline
from warpline.compare.comparison import differences_of_runs
from warpline.compare.measurement import measure_sound
from warpline.errors import CannotAnswer, UsageError
from warpline.findings.diagnosis import diagnose
from warpline.sources.detect import detect
from warpline.sources.registry import source_of
from warpline.sources.stdin import as_typed

traces_argument = click.argument(
    "traces",
    nargs=-1,
    required=True,
    type=PATH,
    metavar="TRACE…",
    help="Recordings of one program.",
)
folder_option = click.option(
    "--folder",
    type=PATH,
    default=Path("baselines"),
    metavar="FOLDER",
    help="Keep baselines in this folder.",
)


@click.group()
def baseline() -> None:
    """Save what a program takes, to compare later runs with it.

    Examples:

      warpline baseline save train run1.json.gz run2.json.gz run3.json.gz

      warpline gate new1.json.gz new2.json.gz new3.json.gz --baseline train
    """


@baseline.command()
@click.argument("name", metavar="NAME", help="What the baseline is called, for warpline gate --baseline NAME.")
@click.argument("traces", nargs=-1, type=PATH, metavar="TRACE…", help="Recordings of one program.")
@folder_option
@force_option
@selection_options
def save(name: str, traces: tuple[Path, ...], folder: Path, force: bool, selection: StepSelection) -> None:
    """Write a baseline, a JSON file for your repository.

    Three or more recordings, each of its own process, say how much runs differ. `warpline gate` compares later runs
    with it.

    Examples:

      warpline baseline save train run1.json.gz run2.json.gz run3.json.gz

      warpline gate new1.json.gz new2.json.gz new3.json.gz --baseline train
    """
    if Path(name).exists() and source_of(detect(Path(name))) is not None:
        again = shlex.join(["warpline", "baseline", "save", "NAME", name, *map(as_typed, traces)])
        raise UsageError("no-name", "the baseline has no name", again)
    if not traces:
        raise UsageError("usage", "no recording is named", f"warpline baseline save {shlex.quote(name)} TRACE…")
    path = path_of(name, folder)
    refuse_existing(path, force)
    runs = [measure_sound(diagnose(selection.open(trace))) for trace in traces]
    if different := differences_of_runs("the baseline", runs):
        raise CannotAnswer("different-runs", different[0], "save recordings of one program in one setting")
    write_baseline(path, runs)
    say(f"warpline: the baseline is {as_typed(path)}", err=True)
