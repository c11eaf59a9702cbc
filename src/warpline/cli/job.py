"""A folder with several ranks of one job: opened as one, and its answer printed."""

from __future__ import annotations

from pathlib import Path

import click
from msgspec import Struct

from warpline.cli.options import bundle
from warpline.cli.output import ReportOutput
from warpline.cli.selection import StepSelection
from warpline.errors import UsageError
from warpline.ranks.files import jobs_of_folder
from warpline.ranks.job import Job, open_job
from warpline.ranks.read import Engine
from warpline.reports.console import spinner
from warpline.reports.job import report


class JobChoice(Struct, frozen=True):
    """Which job of a folder, and how its ranks are read."""

    job: str | None = None
    workers: int | None = None
    engine: Engine = "pool"

    def is_asked(self, path: Path) -> bool:
        """Whether the path is a folder with several ranks of a job, or a URL."""
        if _url(path):
            return True
        if not path.is_dir():
            return False
        return self.job is not None or bool(jobs_of_folder(path))

    def open(self, folder: Path, selection: StepSelection) -> Job:
        """The job; its steps are those that all ranks recorded."""
        if selection.words:
            hint = "name the file of one rank"
            raise UsageError("steps-of-job", "steps can be chosen for one rank only", hint)
        with spinner(f"reading the ranks of {folder.name} …"):
            return open_job(
                _url(folder) or folder,
                job=self.job,
                workers=self.workers,
                cache=not selection.no_cache,
                engine=self.engine,
            )


def _url(path: Path) -> str:
    """The URL that was typed, which a path has lost a slash of; empty if it was none."""
    scheme, mark, rest = str(path).partition(":/")
    root = "/" if scheme == "file" else ""
    return f"{scheme}://{root}{rest}" if mark and scheme.isalnum() and len(scheme) > 1 else ""


job_options = bundle(
    "ranks",
    JobChoice,
    click.option("--job", metavar="NAME", help="Of several jobs in a folder of ranks, take this one, not the newest."),
    click.option(
        "--workers", type=click.IntRange(min=1), metavar="N", help="Read the ranks of a job with N processes."
    ),
    click.option(
        "--engine",
        type=click.Choice(["pool", "ray"]),
        default="pool",
        help="Read the ranks with processes here, or on the Ray cluster of RAY_ADDRESS.",
    ),
)


def put_job(job: Job, output: ReportOutput, full: bool, again: str) -> None:
    """Print or write the answer about a job; `full` shows all ranks and groups."""
    output.put(lambda: report(job, full, again), job.to_dict)
