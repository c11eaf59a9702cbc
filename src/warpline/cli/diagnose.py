"""``warpline diagnose``: where the GPU's time went, and whether the profile can be believed."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from warpline.cli.options import (
    JsonOption,
    NoCacheOption,
    StepRangeOption,
    StepsOption,
    TraceArgument,
    open_with_progress,
)
from warpline.cli.output import print_json, report_console

WhyOption = Annotated[
    bool | None,
    typer.Option("--why/--no-why", help="Replay the trace for findings and a verdict; by default where that is quick."),
]
TopOption = Annotated[int, typer.Option("--top", min=1, help="How many kernels to list.")]


def diagnose(
    trace: TraceArgument,
    as_json: JsonOption = False,
    steps: StepsOption = None,
    step_range: StepRangeOption = None,
    top: TopOption = 10,
    why: WhyOption = None,
    no_cache: NoCacheOption = False,
) -> None:
    """Say where the GPU's time went and why it is slow: health, busy and idle, verdict, steps, kernels, copies.

    Examples:

      warpline diagnose trace.json.gz

      warpline diagnose profile.sqlite --step-range train_step --steps 2:

      warpline trace.json.gz --json
    """
    show(trace, as_json, steps, step_range, top, why, no_cache)


def demo(as_json: JsonOption = False, steps: StepsOption = None, top: TopOption = 10) -> None:
    """Diagnose the bundled trace: four training steps of a small GPT on an NVIDIA H200.

    Examples:

      warpline demo

      warpline demo --steps 1:3 --json
    """
    with resources.as_file(resources.files("warpline.data") / "demo.json.gz") as path:
        show(path, as_json, steps, None, top, why=True, no_cache=False)


def show(
    trace: Path, as_json: bool, steps: str | None, step_range: str | None, top: int, why: bool | None, no_cache: bool
) -> None:
    """Opens, diagnoses, and prints as JSON or as a report."""
    with _no_collection():
        from warpline.findings.diagnosis import diagnose as analyse  # noqa: PLC0415 - polars loads only when it is used

        diagnosis = analyse(open_with_progress(trace, steps, step_range, no_cache), why)
        if as_json:
            print_json(diagnosis.to_dict())
            return
        from warpline.reports.terminal import render  # noqa: PLC0415

        console = report_console()
        console.print(render(diagnosis, top, console.width))


@contextmanager
def _no_collection() -> Iterator[None]:
    """What a diagnosis makes is kept to its end: looking for garbage would find none and cost a tenth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
