"""``warpline dive``: why a kernel is slow inside, from a report of Nsight Compute or from a timeline."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from warpline.cli.options import (
    force_option,
    json_option,
    no_cache_option,
    open_with_progress,
    output_option,
    step_range_option,
    steps_option,
    verbose_option,
)
from warpline.cli.output import format_of, json_text, put_report, put_text, refuse_existing, short_path
from warpline.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpline.dive.inside_kernels import InsideKernel
    from warpline.trace.trace import Trace

DEFAULT_TOP = 3
_PROGRAM = "warpline.dive.program"


class WithProgram(click.Command):
    """A command whose words after `--` are a program to run."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep what follows `--` for the command."""
        if "--" in args:
            at = args.index("--")
            ctx.meta[_PROGRAM] = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(ctx, args)


class Output(Struct, frozen=True):
    """How to show the answer."""

    verbose: bool
    as_json: bool
    file: Path | None


@click.command(cls=WithProgram)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE…")
@click.option("--compare", is_flag=True, help="Compare two reports: what changed, and what explains the time.")
@click.option("--top", type=click.IntRange(min=1), default=DEFAULT_TOP, metavar="N", help="Look into N kernels.")
@click.option("--print", "print_only", is_flag=True, help="Show the commands without running anything.")
@click.option("--stop/--no-stop", default=True, help="End the program when its kernels are profiled.")
@click.option("--source/--no-source", default=True, help="Keep the program's source lines in the report.")
@verbose_option
@json_option
@output_option
@force_option
@steps_option
@step_range_option
@no_cache_option
@click.pass_context
def dive(
    context: click.Context,
    files: tuple[Path, ...],
    compare: bool,
    top: int,
    print_only: bool,
    stop: bool,
    source: bool,
    verbose: bool,
    as_json: bool,
    output: Path | None,
    force: bool,
    steps: str | None,
    step_range: str | None,
    no_cache: bool,
) -> None:
    """Say why a kernel is slow inside: the limiting unit, the reason, what to change, and the gain.

    FILE is a report of Nsight Compute (.ncu-rep, or a CSV page of one), with a timeline behind it if there is one; or a
    timeline alone: then dive chooses the kernels with the most recoverable time and prints the ncu commands, or runs
    them on the program after --.

    Examples:

      warpline dive report.ncu-rep

      warpline dive report.ncu-rep trace.json.gz

      warpline dive trace.json.gz --print

      warpline dive trace.json.gz -- python train.py

      warpline dive --compare before.ncu-rep after.ncu-rep
    """
    from warpline.sources.detect import detect  # noqa: PLC0415 - loaded when used
    from warpline.sources.kinds import NCU_KINDS  # noqa: PLC0415

    program: tuple[str, ...] = context.meta.get(_PROGRAM, ())
    shown = Output(verbose, as_json, output)
    format_of(output, as_json)
    refuse_existing(output, force)
    reports = [file for file in files if detect(file) in NCU_KINDS]
    traces = [file for file in files if file not in reports]
    if compare:
        _compare(reports, traces, program, shown)
        return
    if len(traces) > 1:
        raise UsageError("two-timelines", f"{traces[0]} and {traces[1]} are both timelines", "give one")
    trace = open_with_progress(traces[0], steps, step_range, no_cache) if traces else None
    if not reports:
        assert trace is not None
        again = shlex.join(["warpline", "dive", short_path(traces[0])])
        if program and not print_only:
            from warpline.cli.dive_run import profile_kernels  # noqa: PLC0415

            done = profile_kernels(trace, top, program, stop=stop, source=source, quiet=as_json)
            _explain(done.reports, trace, shown, done.wanted)
        else:
            _show_plan(trace, top, source, again, shown)
        return
    if program:
        raise UsageError("report-and-program", "a report needs no program", "leave out what follows --")
    _explain(reports, trace, shown)


def _show_plan(trace: Trace, top: int, source: bool, again: str, shown: Output) -> None:
    from warpline.dive.inside_kernels import inside_kernels  # noqa: PLC0415
    from warpline.dive.ncu_plan import runs_for  # noqa: PLC0415
    from warpline.reports.dive_plan import plan_dict, plan_report  # noqa: PLC0415

    found = inside_kernels(trace)
    runs = runs_for(found, top, source)
    if shown.as_json or format_of(shown.file, shown.as_json).value == ".json":
        put_text(json_text(plan_dict(found, top, runs)), shown.file)
    else:
        put_report(plan_report(found, top, runs, again), format_of(shown.file, False), shown.file)


def _explain(reports: list[Path], trace: Trace | None, shown: Output, wanted: Sequence[InsideKernel] = ()) -> None:
    from warpline.cli.dive_answer import explain_reports  # noqa: PLC0415

    explain_reports(reports, trace, shown.verbose, shown.as_json, shown.file, wanted)


def _compare(reports: list[Path], traces: list[Path], program: tuple[str, ...], shown: Output) -> None:
    if len(reports) != 2 or traces or program:
        raise UsageError(
            "two-reports",
            f"--compare takes two reports of Nsight Compute, not {len(reports)}",
            "warpline dive --compare A B",
        )
    from warpline.cli.dive_answer import compare_reports  # noqa: PLC0415

    compare_reports(reports[0], reports[1], shown.verbose, shown.as_json, shown.file)


def show_report(file: Path, answer: Any) -> None:
    """A report that was given to `warpline diagnose`, shown as `warpline dive` does."""
    _explain([file], None, Output(answer.verbose, answer.as_json, answer.output))
