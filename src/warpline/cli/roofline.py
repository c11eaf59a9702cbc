"""``warpline roofline``: how far each op and each kernel is from the roofline."""

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
from warpline.cli.output import print_json, put_report, refuse_existing, say, write_text
from warpline.errors import UsageError


@click.command()
@trace_argument
@click.option(
    "--by",
    type=click.Choice(["op", "kernel"]),
    default="op",
    help="Show a row for each op with its shapes, or for each kernel.",
)
@json_option
@click.option("--top", type=click.IntRange(min=1), default=20, help="List this many rows.")
@click.option("--device", metavar="NAME", help="Compare with this chip; see warpline device.")
@click.option("--plot", type=click.Path(path_type=Path), metavar="FILE.svg", help="Draw the roofline into this file.")
@click.option("-f", "--force", is_flag=True, help="Overwrite the file given with --plot.")
@steps_option
@step_range_option
@no_cache_option
def roofline(
    trace: Path,
    by: str,
    as_json: bool,
    top: int,
    device: str | None,
    plot: Path | None,
    force: bool,
    steps: str | None,
    step_range: str | None,
    no_cache: bool,
) -> None:
    """Show how far each op or kernel is from the roofline: FLOPs, bytes, rates, ceiling, bound and headroom.

    FLOPs and bytes come from the shapes that torch.profiler records with record_shapes=True. GPU time without
    them is listed with the reason; a time below the chip's limit is reported as impossible, with the likely cause.

    Examples:

      warpline roofline trace.json.gz

      warpline roofline trace.json.gz --by kernel --top 40

      warpline roofline trace.json.gz --device H100-SXM --plot roofline.svg
    """
    from warpline.analyses.roofline import roofline_table  # noqa: PLC0415 - polars loads only when it is used
    from warpline.reports.roofline import report, to_dict  # noqa: PLC0415
    from warpline.reports.roofline_plot import svg  # noqa: PLC0415

    if plot is not None and plot.suffix.lower() != ".svg":
        raise UsageError("unknown-format", f"{plot.name} is not an SVG file", "use the suffix .svg")
    refuse_existing(plot, force)
    table = roofline_table(open_with_progress(trace, steps, step_range, no_cache), by=by, device=device)
    if plot is not None:
        write_text(plot, svg(table, f"{trace.name} on {table.device}"))
        say(f"wrote {plot}", err=True)
    if as_json:
        print_json(to_dict(table, str(trace)))
        return
    put_report(report(table, str(trace), top))
