"""``warpline diagnose``: open the trace, diagnose it, print the report."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from warpline.cli.dive import put_dive
from warpline.cli.job import JobChoice, job_options, put_job
from warpline.cli.options import bundle, gpu_hour_option, verbose_option, why_option
from warpline.cli.output import ReportOutput, output_options
from warpline.cli.selection import StepSelection, selection_options, steps_option, trace_argument
from warpline.cli.write import command_line, more_traces, say
from warpline.dive.answer import dive_files
from warpline.errors import UsageError
from warpline.findings.cost import DailyCost
from warpline.findings.diagnosis import Diagnosis
from warpline.findings.diagnosis import diagnose as diagnose_trace
from warpline.package_data import demo_trace
from warpline.ranks.inspector_logs import inspect, inspector_logs
from warpline.ranks.job import Job
from warpline.ranks.on_cpu import join_on_cpu
from warpline.reports.console import spinner
from warpline.reports.diagnosis import report
from warpline.reports.inspector_logs import inspected_report
from warpline.sources.stdin import STDIN
from warpline.trace.open import NotATimeline, profiles_in

DEFAULT_TOP = 10


class Detail(Struct, frozen=True):
    """How much to show: the first screen, or all sections with this many kernels."""

    verbose: bool = False
    top: int | None = None


FIRST_SCREEN = Detail()
detail_options = bundle(
    "detail",
    Detail,
    verbose_option,
    click.option("--top", type=click.IntRange(min=1), metavar="N", help="List N kernels; implies -v."),
)


@click.command()
@trace_argument
@detail_options
@output_options
@why_option
@gpu_hour_option
@selection_options
@job_options
def diagnose(
    trace: Path,
    detail: Detail,
    output: ReportOutput,
    why: bool | None,
    gpu_hour: float | None,
    selection: StepSelection,
    ranks: JobChoice,
) -> None:
    """Say why the GPU is slow, where its time goes, and what each fix would gain.

    The first screen has the verdict and the best fixes; -v adds all findings, idle causes, steps, kernels, launches,
    copies and waits. -o writes the same to a file: Markdown, text, JSON or HTML. Of a folder or file with several ranks
    of one job it says who is waited for, why, and what that costs.

    Examples:

      warpline diagnose trace.json.gz

      warpline diagnose profile.sqlite --step-range train_step --steps 2: -v

      warpline diagnose trace.json.gz -v -o report.md

      warpline trace.json.gz --gpu-hour 2.50

      warpline trace.json.gz --json

      warpline profile_traces --job iteration_20

      warpline profile_traces --rank 3
    """
    if logs := inspector_logs(trace):
        job = inspect(trace.name, logs)
        output.put(lambda: inspected_report(job, detail.verbose), job.to_dict)
        return
    try:
        opened = ranks.open(trace, selection)
    except NotATimeline as error:
        if error.read_by != "dive" or trace == STDIN:
            raise
        put_dive(dive_files([trace]), detail.verbose, output)
        return
    if isinstance(opened, Job):
        if why is not None or gpu_hour is not None or detail.top is not None:
            raise UsageError("one-rank", "--why, --gpu-hour and --top are for the file of one rank", "add --rank N")
        put_job(opened, output, detail.verbose, trace)
        return
    if ranks.rank is None and not len(opened.gpu) and (joined := join_on_cpu(trace, ranks.job, not selection.no_cache)):
        rank = "N" if joined.late_rank is None else str(joined.late_rank)
        again = command_line("diagnose", trace, "--rank", rank)
        rest = f"Collectives on several threads of gloo run side by side; these are sums. What a rank does: {again}"
        output.put(lambda: inspected_report(joined, detail.verbose, "no GPU activity", rest), joined.to_dict)
        return
    if ranks.rank is None:
        _say_others(trace, opened.file)
    cost = None if gpu_hour is None else DailyCost(gpu_hour)
    again = command_line("diagnose", trace, *selection.words)
    with spinner("replaying the fixes …"):
        found = diagnose_trace(opened, why)
    put_diagnosis(found, output, detail, again, cost, selection.words)


@click.command()
@detail_options
@output_options
@steps_option
def demo(detail: Detail, output: ReportOutput, steps: str | None) -> None:
    """Diagnose the bundled trace: four training steps of a small GPT on an NVIDIA H200.

    Examples:

      warpline demo

      warpline demo -v

      warpline demo --steps 1:3 --json
    """
    selection = StepSelection(steps)
    found = diagnose_trace(selection.open(demo_trace()), why=True)
    put_diagnosis(found, output, detail, shlex.join(["warpline", "demo", *selection.words]), chosen=selection.words)


def put_diagnosis(
    found: Diagnosis,
    output: ReportOutput,
    detail: Detail = FIRST_SCREEN,
    again: str = "",
    cost: DailyCost | None = None,
    chosen: Sequence[str] = (),
) -> None:
    """Print or write a diagnosis; `again` is the command as typed, `chosen` its options that choose steps."""

    def document() -> dict[str, Any]:
        priced = {} if cost is None else {"cost": cost.to_dict(found.findings, found.plan)}
        return found.to_dict() | priced

    is_full = detail.verbose or detail.top is not None
    output.put(lambda: report(found, is_full, detail.top or DEFAULT_TOP, again, cost, chosen), document)


def _say_others(path: Path, diagnosed: Path) -> None:
    """Of a folder, one trace of which is diagnosed, say which others are there."""
    others = [file for file in profiles_in(path) if file != diagnosed] if path.is_dir() else []
    if others:
        say(f"warpline: this is {diagnosed.name}; {more_traces(others)}", err=True)
