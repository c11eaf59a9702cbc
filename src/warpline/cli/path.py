"""``warpline path``: the cost of dispatch, by layer."""

from __future__ import annotations

from pathlib import Path

import click

from warpline.cli.options import (
    json_option,
    no_cache_option,
    open_with_progress,
    step_range_option,
    steps_option,
    trace_argument,
)
from warpline.cli.output import print_json, put_report

PATH_SCHEMA = "warpline.path/1"


@click.command()
@trace_argument
@click.option("--op", metavar="NAME", help="Show only this op, at any depth.")
@click.option("--top", type=click.IntRange(min=1), default=10, help="List this many ops.")
@json_option
@steps_option
@step_range_option
@no_cache_option
def path(
    trace: Path,
    op: str | None,
    top: int,
    as_json: bool,
    steps: str | None,
    step_range: str | None,
    no_cache: bool,
) -> None:
    """Follow ops from Python to the kernel: time in Python, framework, API call, queue and kernel, per op.

    Examples:

      warpline path trace.json.gz

      warpline path trace.json.gz --op aten::linear --steps 1:

      warpline path trace.json.gz --json
    """
    from warpline.analyses.dispatch_path import dispatch_path  # noqa: PLC0415 - polars loads only when it is used

    opened = open_with_progress(trace, steps, step_range, no_cache)
    table = dispatch_path(opened, op).head(top)
    if as_json:
        print_json({"schema": PATH_SCHEMA, "ops": table.to_dicts()})
        return
    from warpline.reports.path import path_report  # noqa: PLC0415
    from warpline.reports.title import recording  # noqa: PLC0415

    put_report(path_report(table, recording(opened)))
