"""``warpline baseline``: what a program took when it was good."""

from __future__ import annotations

from pathlib import Path

import click

from warpline.cli.options import (
    force_option,
    no_cache_option,
    open_with_progress,
    step_range_option,
    steps_option,
)
from warpline.cli.output import refuse_existing, say, short_path

traces_argument = click.argument("traces", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="TRACE…")
folder_option = click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=Path("baselines"),
    metavar="FOLDER",
    help="Keep baselines in this folder.",
)


@click.group()
def baseline() -> None:
    """Save what a program takes, to compare later runs with it.

    Examples:

      warpline baseline save train run1.json.gz run2.json.gz run3.json.gz
    """


@baseline.command()
@click.argument("name", metavar="NAME")
@traces_argument
@folder_option
@force_option
@steps_option
@step_range_option
@no_cache_option
def save(
    name: str,
    traces: tuple[Path, ...],
    folder: Path,
    force: bool,
    steps: str | None,
    step_range: str | None,
    no_cache: bool,
) -> None:
    """Save the recordings as a baseline: a small JSON file for your repository.

    Three or more recordings, each of its own process, say how much runs differ.

    Examples:

      warpline baseline save train traces/run1.json.gz traces/run2.json.gz traces/run3.json.gz
    """
    from warpline.compare.baseline import path_of, write_baseline  # noqa: PLC0415 - polars loads only when it is used
    from warpline.compare.measurement import measure_sound  # noqa: PLC0415

    path = path_of(name, folder)
    refuse_existing(path, force)
    write_baseline(path, [measure_sound(open_with_progress(trace, steps, step_range, no_cache)) for trace in traces])
    say(f"warpline: the baseline is {short_path(path)}", err=True)
