"""``warpline path``: the cost of dispatch, by layer."""

from __future__ import annotations

from pathlib import Path

import click

from warpline.analyses.dispatch_path import dispatch_path
from warpline.cli.options import trace_argument
from warpline.cli.output import ReportOutput, output_options
from warpline.cli.selection import StepSelection, selection_options
from warpline.reports.path import path_report
from warpline.reports.title import recording

PATH_SCHEMA = "warpline.path/1"


@click.command()
@trace_argument
@click.option("--op", metavar="NAME", help="Show only this op, at any depth.")
@click.option("--top", type=click.IntRange(min=1), default=10, help="List this many ops.")
@output_options
@selection_options
def path(trace: Path, op: str | None, top: int, output: ReportOutput, selection: StepSelection) -> None:
    """Follow ops from Python to the kernel: time in Python, framework, API call, queue and kernel, per op.

    Examples:

      warpline path trace.json.gz

      warpline path trace.json.gz --op aten::linear --steps 1:

      warpline path trace.json.gz --json
    """
    opened = selection.open_steps(trace)
    table = dispatch_path(opened, op).head(top)
    output.put(lambda: path_report(table, recording(opened)), lambda: {"schema": PATH_SCHEMA, "ops": table.to_dicts()})
