"""``warpline report``: the diagnosis and the timeline as one HTML file."""

from __future__ import annotations

from pathlib import Path

import click
from msgspec import Struct

from warpline.cli.job import JobChoice, job_options
from warpline.cli.options import (
    PATH,
    bundle,
    force_option,
    gpu_hour_option,
    json_option,
    ncu_option,
    why_option,
)
from warpline.cli.selection import StepSelection, selection_options, trace_argument
from warpline.cli.write import command_line, print_json, refuse_existing, say, write_text
from warpline.dive.answer import dive_files
from warpline.dive.model import Dive
from warpline.errors import UsageError
from warpline.findings.cost import DailyCost
from warpline.findings.diagnosis import diagnose
from warpline.ranks.job import Job
from warpline.reports.job_page import job_page
from warpline.reports.page.document import page

SCHEMA = "warpline.page/1"
OTHER_FORMATS = (".md", ".txt", ".json", ".pdf", ".svg", ".png", ".csv")
"""Suffixes that promise something else than a page."""
SUFFIXES = (".gz", ".json", ".sqlite", ".nsys-rep")


class PageOutput(Struct, frozen=True):
    """Where the page goes, and whether the answer about it is JSON."""

    file: Path | None
    force: bool
    as_json: bool


@click.command()
@trace_argument
@bundle(
    "output",
    PageOutput,
    click.option(
        "-o", "--output", "file", type=PATH, metavar="FILE", help="Write to this file. Default: TRACE.html here."
    ),
    force_option,
    json_option,
)
@why_option
@ncu_option
@gpu_hour_option
@selection_options
@job_options
def report(
    trace: Path,
    output: PageOutput,
    why: bool | None,
    ncu_reports: tuple[Path, ...],
    gpu_hour: float | None,
    selection: StepSelection,
    ranks: JobChoice,
) -> None:
    """Write one HTML file with the verdict, the findings and a timeline; it opens offline in any browser.

    Of a folder with several ranks of one job it has who is waited for, a timeline of the ranks that matter, a heat map
    of ranks and steps, and the collectives with the longest waits.

    Examples:

      warpline report trace.json.gz

      warpline report trace.json.gz -o report.html --steps 1:3

      warpline report trace.json.gz --ncu report.ncu-rep

      warpline report trace.json.gz --gpu-hour 2.50

      warpline report trace.json.gz -o report.html -f --json

      warpline report profile_traces -o job.html

      warpline report profile_traces --rank 3 -o rank3.html
    """
    file = output.file or Path(f"{_stem(trace)}.html")
    if file.suffix.lower() in OTHER_FORMATS:
        hint = f"end the name in .html; text is written by {command_line('diagnose', trace, '-o', 'report.md')}"
        raise UsageError("unknown-format", f"the report is an HTML page, and {file.name} is none", hint)
    refuse_existing(file, output.force)
    opened = ranks.open(trace, selection)
    if isinstance(opened, Job):
        if ncu_reports or gpu_hour is not None:
            hint = "name the file of one rank, or add --rank N"
            raise UsageError("options-of-job", "--ncu and --gpu-hour are for one rank only", hint)
        _put_job(opened, file, output, trace)
        return
    cost = DailyCost(gpu_hour) if gpu_hour is not None else None
    dive = dive_files(ncu_reports, opened) if ncu_reports else None
    written = page(diagnose(opened, why), again=command_line("diagnose", trace), cost=cost, dive=dive)
    write_text(file, written.html)
    size = file.stat().st_size
    if output.as_json:
        answer = {"schema": SCHEMA, "file": str(file), "bytes": size, "events": written.events}
        print_json(answer | ({"inside": _joined(dive)} if dive else {}))
    else:
        say(f"{file}: {size / 1e6:.2f} MB, {written.events:,} events; open it in a browser")
        if dive:
            say("{found} of {kernels} kernels of the ncu report are in the trace".format(**_joined(dive)))


def _put_job(job: Job, file: Path, output: PageOutput, folder: Path) -> None:
    """Write the page of a job, and say so."""
    write_text(file, job_page(job, folder))
    size = file.stat().st_size
    if output.as_json:
        print_json({"schema": SCHEMA, "file": str(file), "bytes": size, "ranks": len(job.ranks)})
    else:
        say(f"{file}: {size / 1e6:.2f} MB, {len(job.ranks)} ranks; open it in a browser")


def _joined(dive: Dive) -> dict[str, int]:
    """Kernels of the report of Nsight Compute, and how many of them the trace has."""
    return {"kernels": len(dive.found), "found": sum(one.match is not None for one in dive.found)}


def _stem(trace: Path) -> str:
    """The file's name without its suffixes."""
    name = trace.name
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix)
    return name if name not in {"", "-"} else "report"
