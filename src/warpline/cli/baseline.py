"""``warpline baseline`` and ``warpline gate``: what a program took when it was good, and whether it still does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from warpline.cli.options import (
    force_option,
    json_option,
    no_cache_option,
    open_with_progress,
    output_option,
    step_range_option,
    steps_option,
)
from warpline.cli.output import format_of, put_answer, refuse_existing, say, short_path

if TYPE_CHECKING:
    from warpline.compare.measured import Measured

traces_argument = click.argument("traces", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="TRACE…")
folder_option = click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=Path("baselines"),
    metavar="FOLDER",
    help="Where baselines lie.",
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

    path = path_of(name, folder)
    refuse_existing(path, force)
    write_baseline(path, _measured(traces, steps, step_range, no_cache))
    say(f"warpline: the baseline is {short_path(path)}", err=True)


@click.command()
@traces_argument
@click.option("--baseline", "name", metavar="NAME", help="Compare with this baseline.")
@click.option(
    "--budget", "budgets", multiple=True, metavar="NUMBER<=LIMIT", help="A limit, for example step_ms<=12; repeat."
)
@click.option(
    "--metric",
    type=click.Choice(["step", "busy"]),
    default="step",
    help="What must not be slower than the baseline: the step, or the GPU's work alone.",
)
@click.option(
    "--least-effect", type=float, default=2.0, metavar="PERCENT", help="The smallest change of the step that matters."
)
@folder_option
@json_option
@output_option
@force_option
@steps_option
@step_range_option
@no_cache_option
def gate(
    traces: tuple[Path, ...],
    name: str | None,
    budgets: tuple[str, ...],
    metric: Literal["step", "busy"],
    least_effect: float,
    folder: Path,
    as_json: bool,
    output: Path | None,
    force: bool,
    steps: str | None,
    step_range: str | None,
    no_cache: bool,
) -> int:
    """Check recordings against a baseline, budgets, or both.

    Exit code: 0 if they pass, 3 if they are slower or exceed a budget, 4 if the answer is inconclusive.

    Examples:

      warpline gate run1.json.gz run2.json.gz run3.json.gz --baseline train

      warpline gate trace.json.gz --budget "step_ms<=12" --budget "syncs<=0" --budget "idle_pct<=10"
    """
    from warpline.compare.baseline import path_of, read_baseline  # noqa: PLC0415 - polars loads only when it is used
    from warpline.compare.gate import EXIT_CODES, Budget, judge  # noqa: PLC0415
    from warpline.reports.compare import gate_report  # noqa: PLC0415

    refuse_existing(output, force)
    chosen = format_of(output, as_json)
    limits = [Budget.parse(text) for text in budgets]
    known = read_baseline(path_of(name, folder)) if name is not None else None
    found = judge(_measured(traces, steps, step_range, no_cache), known, limits, metric, least_effect / 100)
    put_answer(found.to_dict(), gate_report(found), chosen, output)
    return EXIT_CODES[found.outcome]


def _measured(traces: tuple[Path, ...], steps: str | None, step_range: str | None, no_cache: bool) -> list[Measured]:
    from warpline.compare.measured import measure  # noqa: PLC0415 - polars loads only when it is used

    return [measure(open_with_progress(path, steps, step_range, no_cache)) for path in traces]
