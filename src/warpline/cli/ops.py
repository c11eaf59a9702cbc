"""``warpline ops``: the table of ops, as torch's ``key_averages().table()`` and more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from warpline.cli.table_verb import Made, table_verb

if TYPE_CHECKING:
    from warpline.trace.trace import Trace

SORTS = ("gpu", "gpu-self", "cpu", "cpu-self", "calls", "launches", "flops", "bytes", "roof")
GROUPS = ("shape", "module", "stack", "line")


@click.command()
@click.option(
    "--sort",
    type=click.Choice(SORTS),
    metavar="COLUMN",
    help=f"Sort by one of {', '.join(SORTS)}; default: gpu-self, or cpu-self without a GPU.",
)
@click.option("--group", type=click.Choice(GROUPS), help="Split each op by input shapes, nn.Module, stack or line.")
@table_verb
def ops(trace: Trace, device: str | None, shapes_from: Trace | None, sort: str | None, group: str | None) -> Made:
    """List ops with their calls, CPU and GPU time, work, share of the roofline and line of code.

    Calls and times are those of torch's key_averages(), self and total; a trace without a GPU works too.

    Examples:

      warpline ops trace.json.gz

      warpline ops trace.json.gz --group shape --sort gpu --top 40

      warpline ops trace.json.gz --steps 1: -o ops.md
    """
    from warpline.analyses.ops import ops_table  # noqa: PLC0415 - polars loads only when it is used
    from warpline.reports.ops import ops_report  # noqa: PLC0415

    return ops_table(trace, group=group, sort=sort, device=device, shapes_from=shapes_from), ops_report
