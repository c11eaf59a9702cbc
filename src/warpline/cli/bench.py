"""``warpline bench``: a trustworthy timing of a function."""

from __future__ import annotations

from typing import Annotated

import typer

from warpline.cli.options import JsonOption
from warpline.cli.output import print_json, put_report
from warpline.errors import UsageError


def bench(
    what: Annotated[
        str | None, typer.Argument(metavar="[WHAT]", help="Time this: an experiment (see --list), or file.py:function.")
    ] = None,
    shape: Annotated[
        str | None,
        typer.Option("--shape", metavar="SHAPE", help="Set the shape of an experiment: 4096, 4096x4096x11008, 64M."),
    ] = None,
    dtype: Annotated[
        str | None, typer.Option("--dtype", metavar="TYPE", help="Set the data type, or several: fp32,tf32,bf16.")
    ] = None,
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="FILE.PY:FUNCTION", help="Time this one too, alternating, and compare."),
    ] = None,
    cold: Annotated[bool, typer.Option("--cold", help="Time the cold start of a fresh process.")] = False,
    graph: Annotated[bool, typer.Option("--graph", help="Time many calls captured in a CUDA graph.")] = False,
    hot: Annotated[bool, typer.Option("--hot", help="Do not flush the L2 cache between calls.")] = False,
    copies: Annotated[int, typer.Option("--copies", min=1, help="Rotate through this many copies of the inputs.")] = 1,
    seconds: Annotated[float, typer.Option("--seconds", help="Sample for this long, after the warm-up.")] = 0.5,
    repeats: Annotated[
        int, typer.Option("--repeats", min=1, help="Start this many fresh processes of each kind, with --cold.")
    ] = 3,
    flops: Annotated[float | None, typer.Option("--flops", help="Set the FLOPs of one call of your function.")] = None,
    bytes_: Annotated[float | None, typer.Option("--bytes", help="Set the bytes that one call must move.")] = None,
    device: Annotated[str, typer.Option("--device", metavar="auto|cuda|cpu", help="Run on this device.")] = "auto",
    list_: Annotated[bool, typer.Option("--list", help="List the experiments.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Time a function on the GPU: warmed up, synchronised, L2 flushed, with a confidence interval and caveats.

    Shows GPU time and host submission time. If the FLOPs and bytes of a call are known, it also shows rates and the
    share of the roofline; a time below the roofline is reported as impossible (exit code 4). Without a GPU it runs on
    the CPU and says so.

    Examples:

      warpline bench matmul --shape 4096 --dtype fp32,tf32,bf16

      warpline bench matmul --shape 4096 --cold

      warpline bench model.py:step --graph

      warpline bench kernels.py:mine --against kernels.py:theirs
    """
    from warpline.bench.command import Request, answer  # noqa: PLC0415 - loaded when used, so that --help stays quick
    from warpline.reports.bench import bench_report  # noqa: PLC0415

    if list_:
        _list(as_json)
        return
    if what is None:
        raise UsageError("nothing-to-time", "name an experiment or file.py:function", "warpline bench --list")
    dtypes = tuple(filter(None, (dtype or "").split(",")))
    request = Request(
        what, shape, dtypes, against, not hot, graph, copies, seconds, flops, bytes_, device, cold, repeats
    )
    found = answer(request, lambda line: typer.echo(line, err=True))
    if as_json:
        print_json(found.to_dict())
    else:
        put_report(bench_report(found, request))
    if found.exit_code:
        raise typer.Exit(found.exit_code)


def _list(as_json: bool) -> None:
    from warpline.bench.experiments import listed  # noqa: PLC0415
    from warpline.reports.bench import listing  # noqa: PLC0415

    if as_json:
        print_json(listed())
    else:
        put_report(listing())
