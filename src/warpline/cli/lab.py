"""``warpline lab``: experiments on the GPU at hand."""

from __future__ import annotations

from pathlib import Path

import click
from msgspec import Struct

from warpline.cli.options import PATH, bundle
from warpline.cli.output import ReportOutput, output_options
from warpline.cli.write import say
from warpline.errors import UsageError
from warpline.lab.model import LabResults
from warpline.lab.result_files import read_results, side_by_side
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
    click.option("--keep", type=PATH, metavar="FOLDER", help="Keep the recordings here."),
)
@output_options
def lab(names: tuple[str, ...], options: LabOptions, output: ReportOutput) -> None:
    """Run experiments on this GPU that show why programs are slow and what helps; without a name, list them.

    Each asks one question, measures it with warpline bench, and says what was seen and why. NAME is an experiment, or
    all. Without a GPU, sizes are small, and what would say nothing there is left out. A file of results (.json) is
    shown again, and two are compared.

    Examples:

      warpline lab

      warpline lab dispatch

      warpline lab all -o lab.html

      warpline lab optimisation-ladder --keep recordings

      warpline lab h100.json h200.json
    """
    if not names:
        output.put(lab_listing, _listed)
        return
    files = [Path(name) for name in names if name.endswith(".json")]
    results = _stored(names, files) if files else _measured(names, options)
    output.put(lambda: lab_report(results), results.to_dict)


def _measured(names: tuple[str, ...], options: LabOptions) -> LabResults:
    return run_experiments(
        names,
        device=options.device,
        seconds=options.seconds,
        keep=options.keep,
        report=lambda line: say(line, err=True),
    )


def _stored(names: tuple[str, ...], files: list[Path]) -> LabResults:
    if len(files) != len(names) or len(files) > 2:
        raise UsageError("one-or-two-files", "give names of experiments, one file of results, or two to compare")
    found = [read_results(file) for file in files]
    return found[0] if len(found) == 1 else side_by_side(*found)


def _listed() -> dict[str, object]:
    rows = [{"name": one.name, "asks": one.asks, "needs_gpu": one.needs_gpu} for one in EXPERIMENTS.values()]
    return {"schema": "warpline.lab_list/1", "experiments": rows}
