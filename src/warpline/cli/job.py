"""A folder with several ranks of one job: opened as one, and its answer printed."""

from __future__ import annotations

from pathlib import Path

import click
from msgspec import Struct

from warpline.cli.options import bundle
from warpline.cli.output import ReportOutput
from warpline.cli.selection import StepSelection
from warpline.errors import CannotAnswer, UsageError
from warpline.ranks.files import job_of_folder, jobs_of_folder
from warpline.ranks.job import Job, job_of_trace, open_job
from warpline.ranks.merged_file import may_be_merged, take_apart
from warpline.ranks.processes import ranks_of_trace
from warpline.ranks.read import Engine
from warpline.ranks.words import shown_ranks
from warpline.reports.console import spinner
from warpline.reports.job import report
from warpline.sources.private_files import folder_until_exit
from warpline.trace.open import profiles_in
from warpline.trace.trace import Trace


class JobChoice(Struct, frozen=True):
    """Which job of a folder, and how its ranks are read; or one of its ranks."""

    job: str | None = None
    rank: int | None = None
    workers: int | None = None
    engine: Engine = "pool"

    def open(self, path: Path, selection: StepSelection) -> Job | Trace:
        """The job of a folder, a URL or a file with several ranks; a trace if there is one rank, or one was chosen."""
        if self.rank is not None:
            return self._open_rank(path, selection)
        is_job = self.job is not None or _is_job(path)
        job = self._open_job(path, selection) if is_job else None
        if job is None:
            trace = selection.open(self._first_rank(path) if is_job else path)
            job = job_of_trace(trace)
            if job is None:
                return trace
        if selection.words:
            raise UsageError("steps-of-job", "steps can be chosen for one rank only", "name its file, or add --rank N")
        return job

    def _open_job(self, path: Path, selection: StepSelection) -> Job | None:
        """The job; None if the file looked merged, but holds one rank, or if no rank has GPU operations."""
        with spinner(f"reading the ranks of {path.name} …"):
            try:
                return open_job(
                    _url(path) or path,
                    job=self.job,
                    workers=self.workers,
                    cache=not selection.no_cache,
                    engine=self.engine,
                )
            except CannotAnswer as error:
                if error.code not in {"one-rank", "cpu-ranks"}:
                    raise
                return None

    def _first_rank(self, path: Path) -> Path:
        """Of ranks that recorded the CPU alone, the first; else what was named."""
        if not path.is_dir() or not jobs_of_folder(path):
            return path
        chosen, _ = job_of_folder(path, self.job)
        return min(chosen.files, key=lambda file: (file.rank is None, file.rank)).path

    def _open_rank(self, path: Path, selection: StepSelection) -> Trace:
        """The rank that was chosen, alone."""
        if path.is_dir() and (only := _only(path)):
            path = only[0]
        if path.is_dir():
            chosen, _ = job_of_folder(path, self.job)
            files = {file.rank: file.path for file in chosen.files if file.rank is not None}
        else:
            files = _spooled(path) if may_be_merged(path) else {}
        if self.rank in files:
            return selection.open(files[self.rank])
        parts = {} if files else ranks_of_trace(selection.open(path))
        if self.rank in parts:
            return parts[self.rank]
        known = shown_ranks([*files, *parts]) if files or parts else "one rank"
        raise UsageError("no-such-rank", f"{path} has no rank {self.rank}", f"it holds {known}")


def _is_job(path: Path) -> bool:
    """Whether the path is a URL, a folder with several ranks, or a file that may be several ranks merged."""
    if path.is_dir():
        return bool(jobs_of_folder(path)) or any(map(may_be_merged, _only(path)))
    return bool(_url(path)) or may_be_merged(path)


def _only(folder: Path) -> list[Path]:
    """The profile of a folder that has only one."""
    files = profiles_in(folder)
    return files if len(files) == 1 else []


def _spooled(path: Path) -> dict[int, Path]:
    """The ranks of a merged file as files that stay until the process ends, since readers seek in them."""
    return take_apart(path, folder_until_exit())


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
        "--rank", type=click.IntRange(min=0), metavar="N", help="Of a job with several ranks, look at this one alone."
    ),
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


def put_job(job: Job, output: ReportOutput, full: bool, folder: Path) -> None:
    """Print or write the answer about a job; `full` shows all ranks and groups."""
    output.put(lambda: report(job, full, folder), job.to_dict)
