"""``warpline report``: the diagnosis and the timeline as one HTML file."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from warpline.cli.options import (
    force_option,
    gpu_hour_option,
    json_option,
    ncu_option,
    no_cache_option,
    open_with_progress,
    step_range_option,
    steps_option,
    trace_argument,
)
from warpline.cli.output import print_json, refuse_existing, say, short_path, write_text

if TYPE_CHECKING:
    from warpline.dive.model import Dive

SCHEMA = "warpline.page/1"
SUFFIXES = (".gz", ".json", ".sqlite", ".nsys-rep")


@click.command()
@trace_argument
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write to this file. Default: TRACE.html here.",
)
@force_option
@json_option
@steps_option
@step_range_option
@click.option("--why/--no-why", default=None, help="Replay the trace for a verdict and fixes; default: if quick.")
@ncu_option
@gpu_hour_option
@no_cache_option
def report(
    trace: Path,
    output: Path | None,
    force: bool,
    as_json: bool,
    steps: str | None,
    step_range: str | None,
    why: bool | None,
    ncu_reports: tuple[Path, ...],
    gpu_hour: float | None,
    no_cache: bool,
) -> None:
    """Write one HTML file with the verdict, the findings and a timeline; it opens offline in any browser.

    Examples:

      warpline report trace.json.gz

      warpline report trace.json.gz -o report.html --steps 1:3

      warpline report trace.json.gz --ncu report.ncu-rep

      warpline report trace.json.gz --gpu-hour 2.50

      warpline report trace.json.gz -o report.html -f --json
    """
    file = output or Path(f"{_stem(trace)}.html")
    refuse_existing(file, force)
    opened = open_with_progress(trace, steps, step_range, no_cache)
    from warpline.dive.answer import dive_files  # noqa: PLC0415
    from warpline.findings.cost import DailyCost  # noqa: PLC0415 - polars loads only when it is used
    from warpline.findings.diagnosis import diagnose  # noqa: PLC0415
    from warpline.reports.page.document import page  # noqa: PLC0415

    cost = DailyCost(gpu_hour) if gpu_hour is not None else None
    again = shlex.join(["warpline", "diagnose", short_path(trace)])
    dive = dive_files(ncu_reports, opened) if ncu_reports else None
    made = page(diagnose(opened, why), again=again, cost=cost, dive=dive)
    write_text(file, made.html)
    size = file.stat().st_size
    if as_json:
        answer = {"schema": SCHEMA, "file": str(file), "bytes": size, "events": made.events}
        print_json(answer | ({"inside": _joined(dive)} if dive else {}))
    else:
        say(f"{file}: {size / 1e6:.2f} MB, {made.events:,} events; open it in a browser")
        if dive:
            say("{found} of {kernels} kernels of the ncu report are in the trace".format(**_joined(dive)))


def _joined(dive: Dive) -> dict[str, int]:
    """Kernels of the report of Nsight Compute, and how many of them the trace has."""
    return {"kernels": len(dive.found), "found": sum(one.match is not None for one in dive.found)}


def _stem(trace: Path) -> str:
    """The file's name without its suffixes."""
    name = trace.name
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix)
    return name if name not in {"", "-"} else "report"
