"""``warpline ops``: the table of ops, as torch's ``key_averages().table()`` and more."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click
from msgspec import Struct

from warpline.analyses.ops import GROUPS, SORTS, ops_table
from warpline.analyses.platform import platform_of
from warpline.cli.options import bundle
from warpline.cli.output import ReportOutput, output_options
from warpline.cli.selection import ChipChoice, StepSelection, chip_options, selection_options, trace_argument
from warpline.hardware.vocabulary import in_words_of
from warpline.reports.ops import ops_report
from warpline.reports.title import recording
from warpline.units import duration


class OpRows(Struct, frozen=True):
    """How many rows to list, in which order, and for what."""

    sort: str | None
    group: str | None
    top: int


@click.command()
@trace_argument
@bundle(
    "rows",
    OpRows,
    click.option(
        "--sort",
        type=click.Choice([*SORTS]),
        metavar="COLUMN",
        help=f"Sort by one of {', '.join(SORTS)}; default: gpu-self, or cpu-self without a GPU.",
    ),
    click.option("--group", type=click.Choice(GROUPS), help="Split each op by input shapes, nn.Module, stack or line."),
    click.option("--top", type=click.IntRange(min=1), default=20, help="List this many rows."),
)
@chip_options
@output_options
@selection_options
def ops(trace: Path, rows: OpRows, chip: ChipChoice, output: ReportOutput, selection: StepSelection) -> None:
    """List ops with their calls, CPU and GPU time, work, share of the roofline and line of code.

    Calls and times are those of torch's key_averages(), self and total; a trace without a GPU works too.

    Examples:

      warpline ops trace.json.gz

      warpline ops trace.json.gz --group shape --sort gpu --top 40

      warpline ops trace.json.gz --steps 1: -o ops.md
    """
    opened = selection.open_steps(trace)
    lender = selection.open_lender(chip.shapes_from, opened)
    table = ops_table(opened, group=rows.group, sort=rows.sort, device=chip.device, shapes_from=lender)
    title = recording(opened, duration(table.window_ns), chip=chip.device and table.device, lender=lender)
    said = partial(in_words_of, platform_of(opened))
    output.put(lambda: said(ops_report(table, title, str(trace), rows.top)), table.to_dict)
