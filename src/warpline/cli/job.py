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
from warpline.reports.console import spinner
from warpline.reports.job import report


class JobChoice(Struct, frozen=True):
    """Which job of a folder, and how its ranks are read."""

    job: str | None = None
    workers: int | None = None

    def is_asked(self, path: Path) -> bool:
        """Whether the path is a folder with several ranks of a job."""
        if not path.is_dir():
            return False
        return self.job is not None or bool(jobs_of_folder(path))

    def open(self, folder: Path, selection: StepSelection) -> Job:
        """The job; its steps are those that all ranks recorded."""
        if selection.words:
            hint = "name the file of one rank"
            raise UsageError("steps-of-job", "steps can be chosen for one rank only", hint)
        with spinner(f"reading the ranks of {folder.name} …"):
            return open_job(folder, job=self.job, workers=self.workers, cache=not selection.no_cache)


job_options = bundle(
    "ranks",
    JobChoice,
    click.option("--job", metavar="NAME", help="Of several jobs in a folder of ranks, take this one, not the newest."),
    click.option(
        "--workers", type=click.IntRange(min=1), metavar="N", help="Read the ranks of a job with N processes."
    ),
)


def put_job(job: Job, output: ReportOutput, full: bool, again: str) -> None:
    """Print or write the answer about a job; `full` shows all ranks and groups."""
    output.put(lambda: report(job, full, again), job.to_dict)
