"""``warpline parts``: the step by module, range, role or class of kernels."""

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

WAYS = ("module", "range", "role", "class")


@click.command()
@trace_argument
@click.option(
    "--by",
    type=click.Choice(WAYS),
    help="Choose the parts: nn.Module, NVTX range, role or kernel class; default: what names most of the GPU time.",
)
@click.option("--top", type=click.IntRange(min=1), default=20, help="List this many parts.")
@click.option("--device", metavar="NAME", help="Compare with this chip; see warpline device.")
@shapes_from_option
@json_option
@output_option
@force_option
@steps_option
@step_range_option
@no_cache_option
def parts(
    trace: Path,
    by: str | None,
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
    """Split the step into parts: GPU time, idle time inside, launches, share of the roofline, and a verdict for each.

    Parts are nn.Modules, NVTX ranges, roles (attention, MLP, norm, …) or classes of kernels; with the gaps, they sum to
    the time window exactly.

    Examples:

      warpline parts trace.json.gz

      warpline parts trace.json.gz --by role --steps 1:

      warpline parts profile.sqlite --by range -o parts.md
    """
    from warpline.analyses.parts import parts_table  # noqa: PLC0415 - polars loads only when it is used
    from warpline.reports.parts import parts_report  # noqa: PLC0415
    from warpline.reports.title import recording  # noqa: PLC0415
    from warpline.units import duration  # noqa: PLC0415

    chosen = format_of(output, as_json)
    refuse_existing(output, force)
    opened = open_with_progress(trace, steps, step_range, no_cache)
    table = parts_table(
        opened,
        by=by,
        device=device,
        shapes_from=open_lender(shapes_from, no_cache),
    )
    title = recording(opened, duration(table.window_ns), chip=device and table.device)
    put_answer(table.to_dict(), parts_report(table, title, str(trace), top), chosen, output)
