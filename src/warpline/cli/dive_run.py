"""Runs a program under ncu for the kernels that a timeline chose; where counters are forbidden, says what is known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, to_builtins

from warpline.capture.ncu_log import COUNTERS_FORBIDDEN
from warpline.capture.plan import NCU, Plan
from warpline.cli.output import say
from warpline.errors import WarplineError

if TYPE_CHECKING:
    from warpline.dive.inside_kernels import InsideKernel
    from warpline.dive.ncu_plan import NcuRun
    from warpline.trace.trace import Trace

SECONDS = 600.0
"""Longest recording under ncu: one step, every kernel of which may be replayed tens of times."""


class Profiled(Struct, frozen=True):
    """The reports of all runs, and the kernels that they should hold."""

    reports: list[Path]
    wanted: list[InsideKernel]


def profile_kernels(
    trace: Trace, top: int, words: tuple[str, ...], *, stop: bool, source: bool, quiet: bool
) -> Profiled:
    """Run the program under ncu, once or once per kernel."""
    from warpline.dive.inside_kernels import inside_kernels  # noqa: PLC0415 - only when something is run
    from warpline.dive.ncu_plan import runs_for  # noqa: PLC0415

    found = inside_kernels(trace)
    runs = runs_for(found, top, source)
    if not runs:
        raise WarplineError(
            "nothing-to-profile",
            "the timeline explains every kernel with over 1 % of the time",
            "see why: warpline dive TRACE --print",
        )
    try:
        reports = [_one(run, number, len(runs), words, stop) for number, run in enumerate(runs, 1)]
    except WarplineError as error:
        if error.code == COUNTERS_FORBIDDEN:
            _say_without_counters(runs, to_stderr=quiet)
        raise
    return Profiled(reports, [kernel for run in runs for kernel in run.kernels])


def _one(run: NcuRun, number: int, total: int, words: tuple[str, ...], stop: bool) -> Path:
    from warpline.capture.program import program_of  # noqa: PLC0415
    from warpline.capture.run import RunRequest, prepared, say_on_stderr  # noqa: PLC0415
    from warpline.capture.run import run as record  # noqa: PLC0415

    names = ", ".join(run.focus.functions)
    say_on_stderr(
        f"run {number} of {total} under ncu: {names}, up to {run.seconds:.0f} s beside the program's own time"
    )
    module = words[:1] == ("-m",)
    request = RunRequest(
        program_of(list(words[module:]), module), NCU, stop=stop, output_to_stderr=True, focus=run.focus
    )
    plan = Plan(folder="", tool=NCU, steps=1, seconds=SECONDS, lines=False, dataflow=False)
    result = record(request, prepared(request, Plan(**to_builtins(plan))), say_on_stderr)
    if result.trace is None:
        assert result.nothing is not None
        raise result.nothing
    say_on_stderr(f"the report is {result.trace}")
    return result.trace


def _say_without_counters(runs: tuple[NcuRun, ...], to_stderr: bool) -> None:
    """What the timeline and the roofline say about the kernels: the answer, as far as there is one."""
    say("Without counters, the timeline says:", err=to_stderr)
    for kernel in (kernel for run in runs for kernel in run.kernels):
        say(f"  {kernel.function}{f' ({kernel.op})' if kernel.op else ''}: {kernel.why}", err=to_stderr)
