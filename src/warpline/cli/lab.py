"""``warpline lab``: experiments on the GPU at hand."""

from __future__ import annotations

from pathlib import Path

import click
from msgspec import Struct

from warpline.cli.options import bundle
from warpline.cli.output import ReportOutput, output_options
from warpline.cli.write import say
from warpline.lab.run import EXPERIMENTS, run_experiments
from warpline.reports.lab import lab_listing, lab_report


class LabOptions(Struct, frozen=True):
    """How to run the experiments."""

    device: str
    seconds: float
    keep: Path | None


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME…]")
@bundle(
    "options",
    LabOptions,
    click.option("--device", type=click.Choice(["auto", "cuda", "cpu"]), default="auto", help="Run on this device."),
    click.option(
        "--seconds",
        type=click.FloatRange(min=0, max=60, min_open=True),
        default=0.2,
        help="Sample each measurement for this long.",
    ),
    click.option("--keep", type=click.Path(path_type=Path), metavar="FOLDER", help="Keep the recordings here."),
)
@output_options
def lab(names: tuple[str, ...], options: LabOptions, output: ReportOutput) -> None:
    """Run experiments on this GPU that show why programs are slow and what helps; without a name, list them.

    Each asks one question, measures it with warpline bench, and says what was seen and why. NAME is an experiment, or
    all. Without a GPU, sizes are small, and what would say nothing there is left out.

    Examples:

      warpline lab

      warpline lab dispatch

      warpline lab all -o lab.html

      warpline lab optimisation-ladder --keep recordings
    """
    if not names:
        output.put(lab_listing, _listed)
        return
    results = run_experiments(
        names,
        device=options.device,
        seconds=options.seconds,
        keep=options.keep,
        report=lambda line: say(line, err=True),
    )
    output.put(lambda: lab_report(results), results.to_dict)


def _listed() -> dict[str, object]:
    rows = [{"name": one.name, "asks": one.asks, "needs_gpu": one.needs_gpu} for one in EXPERIMENTS.values()]
    return {"schema": "warpline.lab_list/1", "experiments": rows}
