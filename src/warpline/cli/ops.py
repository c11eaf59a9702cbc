"""``warpline ops``: the table of ops, as torch's ``key_averages().table()`` and more."""

from __future__ import annotations

from pathlib import Path

import click

from warpline.cli.options import (
    force_option,
    json_option,
    no_cache_option,
    open_lender,
    open_with_progress,
    output_option,
    shapes_from_option,
    step_range_option,
    steps_option,
    trace_argument,
)
from warpline.cli.output import format_of, put_answer, refuse_existing

SORTS = ("gpu", "gpu-self", "cpu", "cpu-self", "calls", "launches", "flops", "bytes", "roof")
GROUPS = ("shape", "module", "stack", "line")


@click.command()
@trace_argument
@click.option(
    "--sort",
    type=click.Choice(SORTS),
    metavar="COLUMN",
    help=f"Sort by one of {', '.join(SORTS)}; default: gpu-self, or cpu-self without a GPU.",
)
@click.option("--group", type=click.Choice(GROUPS), help="Split each op by input shapes, nn.Module, stack or line.")
@click.option("--top", type=click.IntRange(min=1), default=20, help="List this many rows.")
@click.option("--device", metavar="NAME", help="Compare with this chip; see warpline device.")
@shapes_from_option
@json_option
@output_option
@force_option
@steps_option
@step_range_option
@no_cache_option
def ops(
    trace: Path,
    sort: str | None,
    group: str | None,
    top: int,
    device: str | None,
    shapes_from: Path | None,
    as_json: bool,
    output: Path | None,
    force: bool,
    steps: str | None,
    step_range: str | None,
    no_cache: bool,
) -> None:
    """List ops with their calls, CPU and GPU time, work, share of the roofline and line of code.

    Calls and times are those of torch's key_averages(), self and total; a trace without a GPU works too.

    Examples:

      warpline ops trace.json.gz

      warpline ops trace.json.gz --group shape --sort gpu --top 40

      warpline ops trace.json.gz --steps 1: -o ops.md
    """
    from warpline.analyses.ops import ops_table  # noqa: PLC0415 - polars loads only when it is used
    from warpline.reports.ops import ops_report  # noqa: PLC0415
    from warpline.reports.title import recording  # noqa: PLC0415
    from warpline.units import duration  # noqa: PLC0415

    chosen = format_of(output, as_json)
    refuse_existing(output, force)
    opened = open_with_progress(trace, steps, step_range, no_cache)
    table = ops_table(
        opened,
        group=group,
        sort=sort,
        device=device,
        shapes_from=open_lender(shapes_from, no_cache),
    )
    title = recording(opened, duration(table.window_ns), chip=device and table.device)
    put_answer(table.to_dict(), ops_report(table, title, str(trace), top), chosen, output)
