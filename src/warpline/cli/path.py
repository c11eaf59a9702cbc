"""``warpline path``: the cost of dispatch, by layer."""

from __future__ import annotations

from pathlib import Path

import click

from warpline.analyses.platform import platform_of
from warpline.cli.options import PATH
from warpline.cli.output import ReportOutput, output_options
from warpline.cli.selection import StepSelection, selection_options, trace_argument
from warpline.cli.write import check_plot, command_line, say, write_text
from warpline.errors import CannotAnswer
from warpline.hardware.vocabulary import in_words_of
from warpline.replay.bare_path import bare_path
from warpline.reports.path import costliest, path_report, path_svg
from warpline.reports.title import recording

PATH_SCHEMA = "warpline.path/1"


@click.command()
@trace_argument
@click.option("--op", metavar="NAME", help="Show only this op, at any depth.")
@click.option("--top", type=click.IntRange(min=1), default=10, help="List this many ops.")
@click.option("--plot", type=PATH, metavar="FILE.svg", help="Draw the costliest of them into this file.")
@output_options
@selection_options
def path(
    trace: Path, op: str | None, top: int, plot: Path | None, output: ReportOutput, selection: StepSelection
) -> None:
    """Follow ops from Python to the kernel: time in Python, framework, API call, queue and kernel, per op.

    Examples:

      warpline path trace.json.gz

      warpline path trace.json.gz --op aten::linear --steps 1:

      warpline path trace.json.gz --op aten::linear --plot path.svg
    """
    check_plot(plot, output.force)
    opened = selection.open_steps(trace)
    if not len(opened.gpu):
        raise CannotAnswer(
            "no-gpu-work",
            f"{opened.file.name} has no GPU operation to which a path could lead",
            f"{command_line('ops', trace)} has the time of each op on the CPU",
        )
    table = bare_path(opened, op).head(top)
    if plot is not None and len(table):
        write_text(plot, path_svg(costliest(table.rows(named=True)), f"{trace.name}: the path of an op"))
        say(f"wrote {plot}", err=True)
    report = in_words_of(
        platform_of(opened), path_report(table, recording(opened), has_steps=len(opened.steps_in_view) > 0)
    )
    output.put(lambda: report, lambda: {"schema": PATH_SCHEMA, "ops": table.to_dicts()})
