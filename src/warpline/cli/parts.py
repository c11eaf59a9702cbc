"""``warpline parts``: the step by module, range, role or class of kernels."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from warpline.analyses.parts.table import WAYS, parts_table
from warpline.analyses.platform import platform_of
from warpline.cli.output import ReportOutput, output_options
from warpline.cli.selection import ChipChoice, StepSelection, chip_options, selection_options, trace_argument
from warpline.hardware.vocabulary import in_words_of
from warpline.reports.parts import parts_report
from warpline.reports.title import recording
from warpline.units import duration


@click.command()
@trace_argument
@click.option(
    "--by",
    type=click.Choice(WAYS),
    help="Choose the parts: nn.Module, NVTX range, role or kernel class; default: what names most of the GPU time.",
)
@click.option("--top", type=click.IntRange(min=1), default=20, help="List this many rows.")
@chip_options
@output_options
@selection_options
def parts(
    trace: Path, by: str | None, top: int, chip: ChipChoice, output: ReportOutput, selection: StepSelection
) -> None:
    """Split the step into parts: GPU time, idle time inside, launches, share of the roofline, and a verdict for each.

    Parts are nn.Modules, NVTX ranges, roles (attention, MLP, norm, …) or classes of kernels; with the gaps, they sum to
    the time window exactly.

    Examples:

      warpline parts trace.json.gz

      warpline parts trace.json.gz --by role --steps 1:

      warpline parts profile.sqlite --by range -o parts.md
    """
    opened = selection.open_steps(trace)
    lender = selection.open_lender(chip.shapes_from, opened)
    table = parts_table(opened, by=by, device=chip.device, shapes_from=lender)
    title = recording(opened, duration(table.window_ns), chip=chip.device and table.device, lender=lender)
    said = partial(in_words_of, platform_of(opened))
    output.put(lambda: said(parts_report(table, title, str(trace), top)), table.to_dict)
