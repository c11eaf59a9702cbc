"""``warpline roofline``: how far each op and each kernel is from the roofline."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from warpline.analyses.platform import platform_of
from warpline.analyses.roofline.by_hand import envelope, scaling_dict
from warpline.analyses.roofline.other_shapes import other_shapes
from warpline.analyses.roofline.table import roofline_table
from warpline.cli.options import PATH, bundle
from warpline.cli.output import ReportOutput, output_options
from warpline.cli.selection import ChipChoice, StepSelection, chip_options, selection_options
from warpline.cli.write import check_plot, say, write_text
from warpline.errors import EXIT_INCONCLUSIVE, UsageError
from warpline.hardware.vocabulary import in_words_of
from warpline.reports.other_shapes import scaled_report
from warpline.reports.roofline import report, to_dict
from warpline.reports.roofline_by_hand import envelope_report, scaling_report
from warpline.reports.roofline_plot import svg
from warpline.reports.title import recording
from warpline.units import duration

_NUMBER = r"([0-9][0-9_,]*+(?:\.[0-9]*+)?(?:[eE][+-]?[0-9]++)?|\.[0-9]++)"
_TIMES = {"s": 1e9, "ms": 1e6, "us": 1e3, "µs": 1e3, "μs": 1e3, "ns": 1.0}
_DECIMAL = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15}
_BINARY = {f"{prefix}i": 1024.0**power for power, prefix in enumerate("kmgt", start=1)}


class Time(click.ParamType[float]):
    """A time with its unit, in nanoseconds: 31.139ms, 383us, 1.2s."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse it."""
        match = re.fullmatch(rf"{_NUMBER}\s*([a-zµμ]+)", str(value).strip())
        if match is None or match[2] not in _TIMES:
            self.fail(f"{value!r} is not a time with a unit: 31.139ms, 383us or 1.2s", param, ctx)
        return _number(match[1]) * _TIMES[match[2]]


class Amount(click.ParamType[float]):
    """A count, with a decimal or binary prefix: 1.1e12, 137G, 402MB, 24MiB."""

    name = "amount"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse it."""
        match = re.fullmatch(rf"{_NUMBER}\s*([kmgtp]i?)?(b|flops?)?", str(value).strip(), flags=re.IGNORECASE)
        factor = ({**_DECIMAL, **_BINARY}.get((match[2] or "").lower()) if match else None) or 0.0
        number = _number(match[1]) * factor if match else math.inf
        if not factor or not number < math.inf:
            self.fail(f"{value!r} is not an amount: 1.1e12, 137G or 402MB", param, ctx)
        return number


def _number(text: str) -> float:
    return float(text.replace(",", "").replace("_", ""))


class WorkByHand(Struct, frozen=True):
    """What the options say of some work, without a trace."""

    flops: float | None
    bytes_: float | None
    shapes: tuple[str, ...]
    times_ns: tuple[float, ...]
    dtype: str | None


class RooflineRows(Struct, frozen=True):
    """What the rows are, how many are listed, and where they are drawn."""

    by: str
    scale: str | None
    top: int
    plot: Path | None


@click.command()
@click.argument("trace", type=PATH, required=False, metavar="[TRACE]", help="A profile; - reads stdin.")
@bundle(
    "work",
    WorkByHand,
    click.option("--flops", type=Amount(), help="Without a trace: the FLOPs of the matmuls (1.1e12, 137G)."),
    click.option("--bytes", "bytes_", type=Amount(), help="Without a trace: the bytes to move (402MB)."),
    click.option(
        "--shape",
        "shapes",
        multiple=True,
        metavar="OP SIZES",
        help='Without a trace: an op, as "mm 8192x8192x8192" or "relu 8192x16384"; several add up.',
    ),
    click.option(
        "--time",
        "times_ns",
        type=Time(),
        multiple=True,
        help="Without a trace: the measured time of all shapes together (383us); given once for each, how they scale.",
    ),
    click.option("--dtype", metavar="TYPE", help="Without a trace: the data type of the matmuls.  [default: bf16]"),
)
@bundle(
    "rows",
    RooflineRows,
    click.option(
        "--by",
        type=click.Choice(["op", "kernel"]),
        default="op",
        help="Show a row for each op with its shapes, or for each kernel.",
    ),
    click.option(
        "--scale",
        metavar="seq=NEW|OLD:NEW",
        help="Predict the GPU time with another sequence length (seq=4096), or another size of a dimension (512:4096).",
    ),
    click.option("--top", type=click.IntRange(min=1), default=20, help="List this many rows."),
    click.option("--plot", type=PATH, metavar="FILE.svg", help="Draw the roofline into this file."),
)
@chip_options
@output_options
@selection_options
def roofline(
    trace: Path | None,
    work: WorkByHand,
    rows: RooflineRows,
    chip: ChipChoice,
    output: ReportOutput,
    selection: StepSelection,
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

      warpline roofline --shape "mm 4096" --time 3.71ms --shape "mm 8192" --time 31.139ms --dtype tf32 --device GB10

      warpline roofline --flops 828.9G --time 383us --device H100 --dtype fp16
    """
    if trace is None or work != WorkByHand(None, None, (), (), None):
        if trace is not None or rows.scale is not None:
            raise UsageError("two-inputs", "--flops, --bytes, --shape, --time and --dtype take no trace", "omit one")
        _by_hand(work, chip.device, output)
    elif rows.scale is not None:
        opened = selection.open_steps(trace)
        prediction = other_shapes(opened, rows.scale, chip.device)
        output.put(lambda: scaled_report(prediction, str(opened.file), rows.top), prediction.to_dict)
    else:
        _of_trace(trace, rows, chip, output, selection)


def _by_hand(work: WorkByHand, device: str | None, output: ReportOutput) -> None:
    if work.flops is None and work.bytes_ is None and not work.shapes:
        raise UsageError("no-work", "give a trace, or --flops, --bytes or --shape", "see warpline roofline --help")
    if len(work.times_ns) > 1:
        _scaling(work, device, output)
        return
    answer = envelope(
        flops=work.flops or 0.0,
        bytes=work.bytes_ or 0.0,
        shapes=work.shapes,
        dtype=work.dtype or "bf16",
        device=device,
        time_ns=next(iter(work.times_ns), None),
    )
    output.put(lambda: envelope_report(answer), answer.to_dict)
    if answer.verdict == "impossible":
        raise click.exceptions.Exit(EXIT_INCONCLUSIVE)


def _scaling(work: WorkByHand, device: str | None, output: ReportOutput) -> None:
    """How the time grows with the shape, beside how the work does."""
    if len(work.times_ns) != len(work.shapes) or work.flops or work.bytes_:
        what = f"{len(work.times_ns)} times for {len(work.shapes)} shapes"
        raise UsageError("which-time", what, "give one --time for all shapes, or one for each --shape")
    answers = [
        envelope(shapes=[shape], dtype=work.dtype or "bf16", device=device, time_ns=time_ns)
        for shape, time_ns in zip(work.shapes, work.times_ns, strict=True)
    ]
    output.put(lambda: scaling_report(answers), lambda: scaling_dict(answers))
    if any(answer.verdict == "impossible" for answer in answers):
        raise click.exceptions.Exit(EXIT_INCONCLUSIVE)


def _of_trace(
    trace: Path, rows: RooflineRows, chip: ChipChoice, output: ReportOutput, selection: StepSelection
) -> None:
    check_plot(rows.plot, output.force)
    opened = selection.open_steps(trace)
    lender = selection.open_lender(chip.shapes_from, opened)
    table = roofline_table(opened, by=rows.by, device=chip.device, shapes_from=lender)
    if rows.plot is not None:
        write_text(rows.plot, svg(table, f"{trace.name} on {table.device}"))
        say(f"wrote {rows.plot}", err=True)
    length = f"{duration(table.total_ns)} of GPU time"
    title = recording(opened, length, chip=chip.device and table.device, lender=lender)
    platform = platform_of(opened)
    output.put(
        lambda: in_words_of(platform, report(table, title, str(trace), rows.top)), lambda: to_dict(table, str(trace))
    )
