"""``warpline gate``: whether recordings keep their budgets and are as fast as their baseline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from warpline.cli.baseline import folder_option, traces_argument
from warpline.cli.options import (
    force_option,
    json_option,
    no_cache_option,
    open_with_progress,
    output_option,
    step_range_option,
    steps_option,
)
from warpline.cli.output import format_of, put_answer, refuse_existing, say, write_text
from warpline.errors import UsageError, WarplineError

if TYPE_CHECKING:
    from warpline.compare.gate import Gate


@click.command()
@traces_argument
@click.option("--baseline", "name", metavar="NAME", help="Compare with this baseline.")
@click.option(
    "--budget",
    "budgets",
    multiple=True,
    metavar="NUMBER<=LIMIT",
    help="Check this limit, for example step_ms<=12; several may follow.",
)
@click.option(
    "--metric",
    type=click.Choice(["step", "busy"]),
    default="step",
    help="Compare the step with the baseline's, or only the time in which the GPU is busy.",
)
@click.option("--least-effect", type=float, default=2.0, metavar="PERCENT", help="Ignore smaller changes of the step.")
@click.option("--junit", type=click.Path(path_type=Path), metavar="FILE", help="Also write a JUnit XML file.")
@click.option(
    "--comment", type=click.Path(path_type=Path), metavar="FILE", help="Also write a pull-request comment (Markdown)."
)
@click.option(
    "--ncu",
    "reports",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="REPORT",
    help="Take counters for budgets (ncu:KERNEL:METRIC) from this Nsight Compute report; repeat.",
)
@click.option("--name", "series", metavar="NAME", help="Record the run under this name; default: the baseline's.")
@click.option(
    "--label", metavar="TEXT", help="Record the run with this label; default: the commit that the CI system names."
)
@click.option("--no-history", is_flag=True, help="Do not record this run.")
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
    junit: Path | None,
    comment: Path | None,
    reports: tuple[Path, ...],
    series: str | None,
    label: str | None,
    no_history: bool,
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

      warpline gate trace.json.gz --budget "step_ms<=12" "syncs<=0" "idle_pct<=10"
    """
    from warpline.compare.asked_numbers import asked_numbers  # noqa: PLC0415 - polars loads only when it is used
    from warpline.compare.baseline import path_of, read_baseline  # noqa: PLC0415
    from warpline.compare.budgets import Budget, is_budget  # noqa: PLC0415
    from warpline.compare.gate import EXIT_CODES, judge  # noqa: PLC0415
    from warpline.compare.measurement import measure_sound, median_run  # noqa: PLC0415
    from warpline.reports import gate_files  # noqa: PLC0415
    from warpline.reports.compare import gate_report  # noqa: PLC0415

    for file in (output, junit, comment):
        refuse_existing(file, force)
    chosen = format_of(output, as_json)
    # `--budget A B` is one option with A, and B among the traces.
    more = [path for path in traces if is_budget(str(path)) and not path.exists()]
    traces = tuple(path for path in traces if path not in more)
    if not traces:
        raise UsageError("no-trace", "there is no recording to check", "warpline gate TRACE --budget NUMBER<=LIMIT")
    limits = [Budget.parse(text) for text in (*budgets, *map(str, more))]
    known = read_baseline(path_of(name, folder)) if name is not None else None
    opened = [open_with_progress(path, steps, step_range, no_cache) for path in traces]
    measured = [measure_sound(trace) for trace in opened]
    median = next(trace for trace, run in zip(opened, measured, strict=True) if run is median_run(measured))
    found = judge(measured, known, limits, metric, least_effect / 100, asked_numbers(limits, median, reports))
    title = series or (Path(name).stem if name else "gate")
    for path, text in ((junit, gate_files.junit), (comment, gate_files.comment)):
        if path is not None:
            write_text(path, text(found, title))
    if not no_history:
        _remember(found, folder.resolve().parent, title, label, metric)
    put_answer(found.to_dict(), gate_report(found), chosen, output)
    return EXIT_CODES[found.outcome]


def _remember(found: Gate, project: Path, name: str, label: str | None, metric: str) -> None:
    """Append to the history. That it cannot be written changes no outcome."""
    from warpline.compare.history import remember  # noqa: PLC0415
    from warpline.sources.record_files import record_file  # noqa: PLC0415

    try:
        remember(record_file(), found, project, name, label, metric)
    except WarplineError as error:
        say(f"warpline: not recorded: {error.line()}", err=True)
