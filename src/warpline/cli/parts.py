"""``warpline parts``: the step by module, range, role or class of kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from warpline.cli.table_verb import Made, table_verb

if TYPE_CHECKING:
    from warpline.trace.trace import Trace

WAYS = ("module", "range", "role", "class")


@click.command()
@click.option(
    "--by",
    type=click.Choice(WAYS),
    help="Choose the parts: nn.Module, NVTX range, role or kernel class; default: what names most of the GPU time.",
)
@table_verb
def parts(trace: Trace, device: str | None, shapes_from: Trace | None, by: str | None) -> Made:
    """Split the step into parts: GPU time, idle time inside, launches, share of the roofline, and a verdict for each.

    Parts are nn.Modules, NVTX ranges, roles (attention, MLP, norm, …) or classes of kernels; with the gaps, they sum to
    the time window exactly.

    Examples:

      warpline parts trace.json.gz

      warpline parts trace.json.gz --by role --steps 1:

      warpline parts profile.sqlite --by range -o parts.md
    """
    from warpline.analyses.parts.table import parts_table  # noqa: PLC0415 - polars loads only when it is used
    from warpline.reports.parts import parts_report  # noqa: PLC0415

    return parts_table(trace, by=by, device=device, shapes_from=shapes_from), parts_report
