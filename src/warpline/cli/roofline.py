"""``warpline roofline``: how far each op and each kernel is from the roofline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from warpline.cli.amounts import Amount, Time
from warpline.cli.options import (
    json_option,
    no_cache_option,
    open_lender,
    open_with_progress,
    shapes_from_option,
    step_range_option,
    steps_option,
)
from warpline.cli.output import print_json, put_report, refuse_existing, say, write_text
from warpline.errors import EXIT_INCONCLUSIVE, UsageError

if TYPE_CHECKING:
    from warpline.trace.trace import Trace


@click.command()
@click.argument(
    "trace", type=click.Path(path_type=Path), required=False, metavar="[TRACE]", help="A profile; - reads stdin."
)
@click.option("--flops", type=Amount(), help="Without a trace: the FLOPs of the matmuls (1.1e12, 137G).")
@click.option("--bytes", "bytes_", type=Amount(), help="Without a trace: the bytes to move (402MB).")
@click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="OP SIZES",
    help='Without a trace: an op, as "mm 8192x8192x8192" or "relu 8192x16384"; several add up.',
)
@click.option("--time", "time_ns", type=Time(), help="Without a trace: the measured time (31.139ms, 383us).")
@click.option("--dtype", metavar="TYPE", help="Without a trace: the data type of the matmuls.  [default: bf16]")
@click.option(
    "--by",
    type=click.Choice(["op", "kernel"]),
    default="op",
    help="Show a row for each op with its shapes, or for each kernel.",
)
@click.option(
    "--scale",
    metavar="seq=NEW|OLD:NEW",
    help="Predict the GPU time with another sequence length (seq=4096), or another size of a dimension (512:4096).",
)
@json_option
@click.option("--top", type=click.IntRange(min=1), default=20, help="List this many rows.")
@click.option("--device", metavar="NAME", help="Compare with this chip; see warpline device.")
@shapes_from_option
@click.option("--plot", type=click.Path(path_type=Path), metavar="FILE.svg", help="Draw the roofline into this file.")
@click.option("-f", "--force", is_flag=True, help="Overwrite the file given with --plot.")
@steps_option
@step_range_option
@no_cache_option
def roofline(
    trace: Path | None,
    flops: float | None,
    bytes_: float | None,
    shapes: tuple[str, ...],
    time_ns: float | None,
    dtype: str | None,
    by: str,
    scale: str | None,
    as_json: bool,
    top: int,
    device: str | None,
    shapes_from: Path | None,
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

      warpline roofline trace.json.gz --scale seq=4096

      warpline roofline --shape "mm 8192x8192x8192" --dtype tf32 --time 31.139ms --device GB10

      warpline roofline --flops 828.9G --time 383us --device H100 --dtype fp16
    """
    if trace is None or any(given is not None for given in (flops, bytes_, time_ns, dtype)) or shapes:
        if trace is not None or scale is not None:
            raise UsageError("two-inputs", "--flops, --bytes, --shape, --time and --dtype take no trace", "omit one")
        _envelope(flops, bytes_, shapes, time_ns, dtype, device, as_json)
        return
    from warpline.analyses.roofline.table import roofline_table  # noqa: PLC0415 - polars loads only when it is used
    from warpline.reports.roofline import report, to_dict  # noqa: PLC0415
    from warpline.reports.roofline_plot import svg  # noqa: PLC0415
    from warpline.reports.title import recording  # noqa: PLC0415
    from warpline.units import duration  # noqa: PLC0415

    if scale is not None:
        _scaled(open_with_progress(trace, steps, step_range, no_cache), scale, device, top, as_json)
        return
    if plot is not None and plot.suffix.lower() != ".svg":
        raise UsageError("unknown-format", f"{plot.name} is not an SVG file", "use the suffix .svg")
    refuse_existing(plot, force)
    opened = open_with_progress(trace, steps, step_range, no_cache)
    table = roofline_table(
        opened,
        by=by,
        device=device,
        shapes_from=open_lender(shapes_from, no_cache),
    )
    if plot is not None:
        write_text(plot, svg(table, f"{trace.name} on {table.device}"))
        say(f"wrote {plot}", err=True)
    if as_json:
        print_json(to_dict(table, str(trace)))
        return
    title = recording(opened, f"{duration(table.total_ns)} of GPU time", chip=device and table.device)
    put_report(report(table, title, str(trace), top))


def _scaled(trace: Trace, scale: str, device: str | None, top: int, as_json: bool) -> None:
    from warpline.analyses.roofline.other_shapes import scaled  # noqa: PLC0415

    answer = scaled(trace, scale, device)
    if as_json:
        print_json(answer.to_dict())
        return
    from warpline.reports.scaled import scaled_report  # noqa: PLC0415

    put_report(scaled_report(answer, str(trace.file), top))


def _envelope(
    flops: float | None,
    bytes_: float | None,
    shapes: tuple[str, ...],
    time_ns: float | None,
    dtype: str | None,
    device: str | None,
    as_json: bool,
) -> None:
    from warpline.analyses.roofline.by_hand import envelope  # noqa: PLC0415

    if flops is None and bytes_ is None and not shapes:
        raise UsageError("no-work", "give a trace, or --flops, --bytes or --shape", "see warpline roofline --help")
    answer = envelope(
        flops=flops or 0.0,
        bytes=bytes_ or 0.0,
        shapes=shapes,
        dtype=dtype or "bf16",
        device=device,
        time_ns=time_ns,
    )
    if as_json:
        print_json(answer.to_dict())
    else:
        from warpline.reports.envelope import envelope_report  # noqa: PLC0415

        put_report(envelope_report(answer))
    if answer.verdict == "impossible":
        raise click.exceptions.Exit(EXIT_INCONCLUSIVE)
