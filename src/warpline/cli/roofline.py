"""``warpline roofline``: how far each op and each kernel is from the roofline."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from warpline.cli.options import (
    JsonOption,
    NoCacheOption,
    StepRangeOption,
    StepsOption,
    TraceArgument,
    open_with_progress,
)
from warpline.cli.output import print_json, put_report, refuse_existing, write_text
from warpline.errors import UsageError


class By(StrEnum):
    """What a row represents."""

    OP = "op"
    KERNEL = "kernel"


def roofline(
    trace: TraceArgument,
    by: Annotated[By, typer.Option("--by", help="Show a row for each op with its shapes, or for each kernel.")] = By.OP,
    as_json: JsonOption = False,
    top: Annotated[int, typer.Option("--top", min=1, help="List this many rows.")] = 20,
    device: Annotated[
        str | None, typer.Option("--device", metavar="NAME", help="Compare with this chip; see warpline device.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE.svg", help="Draw the roofline into this file.")
    ] = None,
    force: Annotated[bool, typer.Option("-f", "--force", help="Overwrite the file given with --plot.")] = False,
    steps: StepsOption = None,
    step_range: StepRangeOption = None,
    no_cache: NoCacheOption = False,
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
    table = roofline_table(open_with_progress(trace, steps, step_range, no_cache), by=by.value, device=device)
    if plot is not None:
        write_text(plot, svg(table, f"{trace.name} on {table.device}"))
        typer.echo(f"wrote {plot}", err=True)
    if as_json:
        print_json(to_dict(table, str(trace)))
        return
    put_report(report(table, str(trace), top))
