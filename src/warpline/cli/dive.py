"""``warpline dive``: why a kernel is slow inside, from a report of Nsight Compute or from a timeline."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import click
from msgspec import Struct
from msgspec.structs import replace

from warpline.capture.ncu_log import COUNTERS_FORBIDDEN
from warpline.capture.plan import NCU, Plan
from warpline.capture.program import program_of
from warpline.capture.run import RunRequest, prepare, say_on_stderr
from warpline.capture.run import run as record
from warpline.cli.options import PATH, bundle, verbose_option
from warpline.cli.output import ReportOutput, output_options
from warpline.cli.selection import StepSelection, selection_options
from warpline.cli.write import command_line, say
from warpline.dive.answer import dive_files
from warpline.dive.compare import compare as compare_dives
from warpline.dive.inside_kernels import InsideKernel, inside_kernels
from warpline.dive.model import Dive
from warpline.dive.ncu_plan import EXAMPLE, NcuRun, runs_for
from warpline.errors import NoGpuWork, UsageError, WarplineError
from warpline.reports.dive import report
from warpline.reports.dive_compare import report as comparison_report
from warpline.reports.dive_plan import plan_dict, plan_report
from warpline.sources.detect import detect
from warpline.sources.health import HealthEntry
from warpline.sources.kinds import NCU_KINDS
from warpline.sources.ncu import read_report
from warpline.trace.trace import Trace

SECONDS = 600.0
"""Longest recording under ncu: one step, every kernel of which may be replayed tens of times."""


class WithProgram(click.Command):
    """A command whose words after `--` are a program to run."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep what follows `--` for the command."""
        own, program = (args[: args.index("--")], args[args.index("--") + 1 :]) if "--" in args else (args, [])
        ctx.params["program"] = tuple(program)
        return super().parse_args(ctx, own)


class KernelProfiling(Struct, frozen=True):
    """The program to profile with Nsight Compute, and how much of it."""

    program: tuple[str, ...]
    top: int
    print_only: bool
    stop: bool
    source: bool


@click.command(cls=WithProgram)
@click.argument("files", nargs=-1, required=True, type=PATH, metavar="FILE…")
@click.option("--compare", is_flag=True, help="Compare two reports: what changed, and what explains the time.")
@click.option(
    "--kernel",
    "kernels",
    multiple=True,
    metavar="NAME",
    help="Look only at these kernels of a report: part of the name, or the number; with --compare twice, of A and B.",
)
@bundle(
    "profiling",
    KernelProfiling,
    click.option("--top", type=click.IntRange(min=1), default=3, metavar="N", help="Look into N kernels."),
    click.option("--print", "print_only", is_flag=True, help="Show the commands without running anything."),
    click.option("--stop/--no-stop", default=True, help="End the program when its kernels are profiled."),
    click.option("--source/--no-source", default=True, help="Keep the program's source lines in the report."),
)
@verbose_option
@output_options
@selection_options
def dive(
    files: tuple[Path, ...],
    compare: bool,
    kernels: tuple[str, ...],
    profiling: KernelProfiling,
    verbose: bool,
    output: ReportOutput,
    selection: StepSelection,
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

      warpline dive --compare before.ncu-rep after.ncu-rep --kernel sgemm --kernel tensorop
    """
    reports = [file for file in files if detect(file) in NCU_KINDS]
    traces = [file for file in files if file not in reports]
    if compare:
        if len(reports) != 2 or traces or profiling.program:
            what = f"--compare takes two reports of Nsight Compute, not {len(reports)}"
            raise UsageError("two-reports", what, "warpline dive --compare A B")
        _compare(reports[0], reports[1], kernels, verbose, output)
        return
    if len(kernels) > 1 or (kernels and not reports):
        what = "--kernel chooses the kernels of a report, and two are for --compare"
        raise UsageError("which-kernel", what, "warpline dive REPORT --kernel NAME")
    if len(traces) > 1:
        raise UsageError("two-timelines", f"{traces[0]} and {traces[1]} are both timelines", "give one")
    trace = selection.open(traces[0]) if traces else None
    if reports and profiling.program:
        raise UsageError("report-and-program", "a report needs no program", "leave out what follows --")
    if reports:
        put_dive(dive_files(reports, trace, *kernels), verbose, output)
    elif trace is not None:
        _choose_kernels(trace, profiling, verbose, output, command_line("dive", traces[0]))


def _compare(a: Path, b: Path, kernels: Sequence[str], verbose: bool, output: ReportOutput) -> None:
    """Print what changed from one report to the other, or from one kernel to another implementation of it."""
    if len(kernels) > 2:
        raise UsageError("which-kernel", f"--kernel is given {len(kernels)} times", "once for both reports, or twice")
    before, after = read_report(a), read_report(b)
    if kernels:
        before, after = before.only(kernels[0]), after.only(kernels[-1])
    change = compare_dives(before, after)
    output.put(lambda: comparison_report(change, verbose=verbose), change.to_dict)


def put_dive(found: Dive, verbose: bool, output: ReportOutput) -> None:
    """Print or write the reason inside each kernel; with a timeline, the gain of a step."""
    output.put(lambda: report(found, verbose=verbose), found.to_dict)


def _choose_kernels(trace: Trace, profiling: KernelProfiling, verbose: bool, output: ReportOutput, again: str) -> None:
    """Choose kernels of the timeline; profile them in the program, or say how to."""
    if not len(trace.gpu):
        raise NoGpuWork("Nsight Compute looks into kernels, and the trace has no GPU operations")
    found = inside_kernels(trace)
    runs = runs_for(found, profiling.top, profiling.source)
    if profiling.print_only or not profiling.program:
        program = shlex.join(profiling.program) or EXAMPLE
        output.put(
            lambda: plan_report(found, profiling.top, runs, again, program),
            lambda: plan_dict(found, profiling.top, runs, program),
        )
        return
    answer = dive_files(_profile_kernels(runs, profiling, quiet=output.as_json), trace)
    missed = _missed(answer, [kernel for run in runs for kernel in run.kernels])
    put_dive(replace(answer, health=(*answer.health, *missed)), verbose, output)


def _missed(found: Dive, wanted: Sequence[InsideKernel]) -> list[HealthEntry]:
    """An entry if kernels should have been profiled and were not: the launches were counted wrongly."""
    reported = {(one.kernel.function, one.kernel.grid, one.kernel.block) for one in found.found}
    names = [
        f"{kernel.function} with grid {kernel.grid}"
        for kernel in wanted
        if (kernel.function, kernel.grid, kernel.block) not in reported
    ]
    message = f"ncu met other launches than the timeline: {', '.join(names)} was not profiled."
    return [HealthEntry("other-launches", "warning", message)] if names else []


def _profile_kernels(runs: Sequence[NcuRun], profiling: KernelProfiling, quiet: bool) -> list[Path]:
    """Run the program under ncu, once or once per kernel; where counters are forbidden, say what is known."""
    if not runs:
        raise WarplineError(
            "nothing-to-profile",
            "the timeline explains every kernel with over 1 % of the time",
            "see why: warpline dive TRACE --print",
        )
    try:
        return [_profile(run, f"run {number} of {len(runs)}", profiling) for number, run in enumerate(runs, 1)]
    except WarplineError as error:
        if error.code == COUNTERS_FORBIDDEN:
            _say_without_counters(runs, to_stderr=quiet)
        raise


def _profile(run: NcuRun, title: str, profiling: KernelProfiling) -> Path:
    names = ", ".join(run.focus.functions)
    say_on_stderr(f"{title} under ncu: {names}, up to {run.seconds:.0f} s beside the program's own time")
    words = profiling.program
    module = words[:1] == ("-m",)
    request = RunRequest(
        program_of(list(words[module:]), module), NCU, stop=profiling.stop, output_to_stderr=True, focus=run.focus
    )
    # ncu sets the clocks for every launch, so that no time is needed for them to rise.
    plan = Plan(folder="", tool=NCU, steps=1, settle_s=0.0, seconds=SECONDS, lines=False, dataflow=False)
    result = record(request, prepare(request, plan), say_on_stderr)
    if result.trace is None:
        assert result.nothing is not None
        raise result.nothing
    say_on_stderr(f"the report is {result.trace}")
    return result.trace


def _say_without_counters(runs: Sequence[NcuRun], to_stderr: bool) -> None:
    """What the timeline and the roofline say about the kernels: the answer, as far as there is one."""
    say("Without counters, the timeline says:", err=to_stderr)
    for kernel in (kernel for run in runs for kernel in run.kernels):
        say(f"  {kernel.function}{f' ({kernel.op})' if kernel.op else ''}: {kernel.why}", err=to_stderr)
