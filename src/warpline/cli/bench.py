"""``warpline bench``: a trustworthy timing of a function."""

from __future__ import annotations

import click

from warpline.bench.command import BenchRequest, answer, data_types
from warpline.bench.experiments import listed
from warpline.cli.options import WORDS, bundle
from warpline.cli.output import ReportOutput, output_options
from warpline.cli.write import say
from warpline.errors import UsageError
from warpline.reports.bench import bench_report, listing


@click.command()
@bundle(
    "request",
    BenchRequest,
    click.argument(
        "what",
        required=False,
        type=WORDS,
        metavar="[WHAT]",
        help="Time this: an experiment (see --list), or file.py:function.",
    ),
    click.option(
        "--shape",
        "shapes",
        multiple=True,
        metavar="SHAPE",
        help="Set the shape of an experiment: 4096, 4096x4096x11008, 64M; several explain the scaling.",
    ),
    click.option(
        "--dtype",
        "dtypes",
        type=data_types,
        default="",
        show_default=False,
        metavar="TYPE",
        help="Set the data type, or several: fp32,tf32,bf16.",
    ),
    click.option("--against", metavar="FILE.PY:FUNCTION", help="Time this one too, alternating, and compare."),
    click.option("--cold", is_flag=True, help="Time the cold start of a fresh process."),
    click.option("--graph", is_flag=True, help="Time many calls captured in a CUDA graph."),
    click.option("--hot", is_flag=True, help="Do not flush the L2 cache between calls."),
    click.option(
        "--copies", type=click.IntRange(min=1), default=1, help="Rotate through this many copies of the inputs."
    ),
    click.option("--seconds", type=float, default=0.5, help="Sample for this long, after the warm-up."),
    click.option(
        "--repeats",
        type=click.IntRange(min=1),
        default=3,
        help="Start this many fresh processes of each kind, with --cold.",
    ),
    click.option("--flops", type=float, help="Set the FLOPs of one call of your function."),
    click.option("--bytes", type=float, help="Set the bytes that one call must move."),
    click.option("--device", default="auto", metavar="auto|cuda|cpu", help="Run on this device."),
)
@click.option("--list", "list_", is_flag=True, help="List the experiments.")
@output_options
def bench(request: BenchRequest, list_: bool, output: ReportOutput) -> None:
    """Time a function on the GPU: warmed up, synchronised, L2 flushed, with a confidence interval and caveats.

    Shows GPU time and host submission time. If the FLOPs and bytes of a call are known, it also shows rates and the
    share of the roofline; a time below the roofline is reported as impossible (exit code 4). Without a GPU it runs on
    the CPU and says so.

    Examples:

      warpline bench matmul --shape 4096 --dtype fp32,tf32,bf16

      warpline bench matmul --shape 4096 --shape 8192 --dtype tf32

      warpline bench matmul --shape 4096 --cold

      warpline bench model.py:step --graph

      warpline bench kernels.py:mine --against kernels.py:theirs
    """
    if list_:
        output.put(listing, listed)
        return
    if not request.what:
        raise UsageError("nothing-to-time", "name an experiment or file.py:function", "warpline bench --list")
    found = answer(request, lambda line: say(line, err=True))
    output.put(lambda: bench_report(found, request), found.to_dict)
    if found.exit_code:
        raise click.exceptions.Exit(found.exit_code)
