"""``warpline diagnose``: why the GPU is slow, where its time goes, and what each fix would gain."""

from __future__ import annotations

import shlex
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from warpline.cli.options import (
    force_option,
    gpu_hour_option,
    json_option,
    no_cache_option,
    open_with_progress,
    output_option,
    step_range_option,
    steps_option,
    trace_argument,
    verbose_option,
)
from warpline.cli.output import (
    ReportFormat,
    format_of,
    json_text,
    put_report,
    put_text,
    refuse_existing,
    say,
    short_path,
)

if TYPE_CHECKING:
    from warpline.findings.cost import DailyCost
    from warpline.findings.diagnosis import Diagnosis
    from warpline.reports.sections import Report

top_option = click.option("--top", type=click.IntRange(min=1), metavar="N", help="List N kernels; implies -v.")
DEFAULT_TOP = 10


@click.command()
@trace_argument
@verbose_option
@json_option
@output_option
@force_option
@steps_option
@step_range_option
@top_option
@click.option("--why/--no-why", default=None, help="Replay the trace for a verdict and fixes; default: if quick.")
@gpu_hour_option
@no_cache_option
def diagnose(
    trace: Path,
    verbose: bool,
    as_json: bool,
    output: Path | None,
    force: bool,
    steps: str | None,
    step_range: str | None,
    top: int | None,
    why: bool | None,
    gpu_hour: float | None,
    no_cache: bool,
) -> None:
    """Say why the GPU is slow, where its time goes, and what each fix would gain.

    The first screen has the verdict and the best fixes; -v adds all findings, idle causes, steps, kernels, launches,
    copies and waits. -o writes the same to a file: Markdown (.md), text (.txt) or JSON (.json).

    Examples:

      warpline diagnose trace.json.gz

      warpline diagnose profile.sqlite --step-range train_step --steps 2: -v

      warpline diagnose trace.json.gz -v -o report.md

      warpline trace.json.gz --gpu-hour 2.50

      warpline trace.json.gz --json
    """
    answer = Answer(verbose, as_json, output, force, top, gpu_hour)
    again = shlex.join(["warpline", "diagnose", short_path(trace), *_chosen(steps, step_range)])
    show(trace, answer, steps, step_range, why, no_cache, again)


@click.command()
@verbose_option
@json_option
@steps_option
@top_option
def demo(
    verbose: bool,
    as_json: bool,
    steps: str | None,
    top: int | None,
) -> None:
    """Diagnose the bundled trace: four training steps of a small GPT on an NVIDIA H200.

    Examples:

      warpline demo

      warpline demo -v

      warpline demo --steps 1:3 --json
    """
    from warpline.demo_trace import demo_trace  # noqa: PLC0415 - loaded when used, so that --help stays quick

    answer = Answer(verbose, as_json, top=top)
    again = shlex.join(["warpline", "demo", *_chosen(steps, None)])
    show(demo_trace(), answer, steps, None, True, False, again)


class Answer(Struct, frozen=True):
    """How to show a diagnosis."""

    verbose: bool = False
    as_json: bool = False
    output: Path | None = None
    force: bool = False
    top: int | None = None
    gpu_hour: float | None = None


def show(
    trace: Path,
    answer: Answer,
    steps: str | None = None,
    step_range: str | None = None,
    why: bool | None = None,
    no_cache: bool = False,
    again: str = "",
) -> None:
    """Open, diagnose, and print or write the report; `again` is the command as typed."""
    chosen = format_of(answer.output, answer.as_json)
    refuse_existing(answer.output, answer.force)
    if _is_ncu(trace):
        from warpline.cli.dive import show_report  # noqa: PLC0415 - loaded when used

        show_report(trace, answer)
        return
    finished = finished_answer(
        trace, steps, step_range, why, no_cache, again, answer.top or DEFAULT_TOP, answer.gpu_hour
    )
    if chosen is ReportFormat.JSON:
        put_text(finished.json, answer.output)
    else:
        is_full = answer.verbose or answer.top is not None
        put_report(finished.full if is_full else finished.brief, chosen, answer.output)


def finished_answer(
    trace: Path,
    steps: str | None = None,
    step_range: str | None = None,
    why: bool | None = None,
    no_cache: bool = False,
    again: str = "",
    top: int = DEFAULT_TOP,
    gpu_hour: float | None = None,
) -> NewAnswer:
    """Open and diagnose the trace."""
    from warpline.trace.open import trace_of_folder  # noqa: PLC0415 - loaded when used, so that --help stays quick

    if trace.is_dir():
        trace, others = trace_of_folder(trace)
        if others:
            more = f"{len(others)} more trace{'s' if len(others) > 1 else ''} there"
            named = f"warpline diagnose {shlex.quote(short_path(others[0]))}"
            say(f"warpline: this is {trace.name}; {more}: {named}", err=True)
    opened = open_with_progress(trace, steps, step_range, no_cache)
    from warpline.findings.diagnosis import diagnose as analyse  # noqa: PLC0415 - polars loads only when it is used

    return NewAnswer(analyse(opened, why), top, again, _cost(gpu_hour))


def _is_ncu(file: Path) -> bool:
    """Whether the file is a report of Nsight Compute, which has no timeline."""
    from warpline.sources.detect import detect  # noqa: PLC0415 - loaded when used
    from warpline.sources.kinds import NCU_KINDS  # noqa: PLC0415
    from warpline.sources.stdin import STDIN  # noqa: PLC0415

    return file != STDIN and not file.is_dir() and detect(file) in NCU_KINDS


class NewAnswer(Struct, frozen=True, dict=True):
    """A diagnosis whose forms are made when they are asked for."""

    diagnosis: Diagnosis
    top: int
    again: str
    cost: DailyCost | None

    @cached_property
    def json(self) -> str:
        """As JSON."""
        found = self.diagnosis
        priced = {"cost": self.cost.to_dict(found.findings, found.plan)} if self.cost is not None else {}
        return json_text(found.to_dict() | priced)

    @cached_property
    def brief(self) -> Report:
        """The first screen."""
        return self._report(is_full=False)

    @cached_property
    def full(self) -> Report:
        """All of it."""
        return self._report(is_full=True)

    def _report(self, *, is_full: bool) -> Report:
        from warpline.reports.diagnosis import report  # noqa: PLC0415

        return report(self.diagnosis, is_full, self.top, self.again, self.cost)


def _cost(gpu_hour: float | None) -> DailyCost | None:
    if gpu_hour is None:
        return None
    from warpline.findings.cost import DailyCost  # noqa: PLC0415 - loads where a price is given

    return DailyCost(gpu_hour)


def _chosen(steps: str | None, step_range: str | None) -> list[str]:
    """The options that select steps, as typed."""
    words = [] if step_range is None else ["--step-range", step_range]
    return words + ([] if steps is None else ["--steps", steps])
