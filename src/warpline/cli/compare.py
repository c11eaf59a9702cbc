"""``warpline compare``: whether B is faster than A, and where the difference comes from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from msgspec import Struct

from warpline.cli.job import JobChoice
from warpline.cli.options import PATH, anyway_option, bundle, least_effect_option, verbose_option
from warpline.cli.output import ReportFormat, ReportOutput, output_options
from warpline.cli.selection import StepSelection, selection_options
from warpline.cli.write import say, write_text
from warpline.compare.comparison import compare as compare_traces
from warpline.compare.prediction import Outcome, remember_outcome
from warpline.errors import EXIT_INCONCLUSIVE, UsageError, WarplineError
from warpline.exports.pages import comparison_page
from warpline.ranks.comparison import compare_jobs
from warpline.ranks.job import Job
from warpline.reports.compare import report
from warpline.reports.compare_jobs import report as job_report
from warpline.sources.record_files import outcomes_file
from warpline.trace.trace import Trace


class RunFiles(Struct, frozen=True):
    """The recordings of A and B."""

    traces: tuple[Path, ...]
    more_a: tuple[Path, ...]
    more_b: tuple[Path, ...]

    def sides(self) -> tuple[list[Path], list[Path]]:
        """Those of A, and those of B."""
        if len(self.traces) not in {0, 2}:
            what = f"compare takes two recordings, not {len(self.traces)}"
            again = "warpline compare A B; more runs of each with --before and --after"
            raise UsageError("two-traces", what, again)
        sides = [*self.traces[:1], *self.more_a], [*self.traces[1:], *self.more_b]
        if not all(sides):
            raise UsageError("two-traces", "compare needs a recording of A and one of B", "warpline compare A B")
        return sides


@click.command()
@bundle(
    "runs",
    RunFiles,
    click.argument("traces", nargs=-1, type=PATH, metavar="[A B]", help="The recording before and the one after."),
    click.option(
        "--before", "more_a", multiple=True, type=PATH, metavar="TRACE", help="Take this as a run of A; repeat."
    ),
    click.option(
        "--after", "more_b", multiple=True, type=PATH, metavar="TRACE", help="Take this as a run of B; repeat."
    ),
)
@least_effect_option
@anyway_option
@click.option("--no-history", is_flag=True, help="Do not record which prediction came true.")
@output_options
@verbose_option
@selection_options
def compare(
    runs: RunFiles,
    least_effect: float,
    anyway: bool,
    no_history: bool,
    output: ReportOutput,
    verbose: bool,
    selection: StepSelection,
) -> int:
    """Compare two recordings: is B faster, by how much, and what changed.

    Kernels are aligned in order, so fused, split, renamed and moved ones are recognised. The parts sum to the
    difference of the step. Of two folders with several ranks each it says which ranks, process groups and kernels
    changed. Different programs, devices or numbers of ranks are not compared, except with --anyway. Exit code: 0 with
    an answer, 4 if it is inconclusive or the two cannot be compared.

    Examples:

      warpline compare before.json.gz after.json.gz

      warpline compare --before before1.json.gz --before before2.json.gz --after after1.json.gz --after after2.json.gz

      warpline compare before.json.gz after.json.gz -o change.md

      warpline compare before.json.gz after.json.gz -o change.html

      warpline compare profile_traces/iteration_10 profile_traces/iteration_20
    """
    a, b = runs.sides()
    found_at = {path: JobChoice().open(path, selection) for path in dict.fromkeys([*a, *b])}
    opened = {path: found for path, found in found_at.items() if isinstance(found, Trace)}
    if len(opened) < len(found_at):
        before, after = ([found_at[path] for path in side] for side in (a, b))
        return _compare_jobs(before, after, least_effect / 100, anyway, output, verbose)
    sides = [opened[path] for path in a], [opened[path] for path in b]
    found = compare_traces(*sides, least_effect / 100, anyway=anyway)
    if found.outcome is not None and not no_history:
        _remember(opened[a[0]], opened[b[0]], found.outcome)
    if output.file is not None and output.format is ReportFormat.HTML:
        write_text(output.file, comparison_page(report(found, verbose=True), opened[a[0]], opened[b[0]]))
        say(f"wrote {output.file}; open it in a browser", err=True)
    else:
        output.put(lambda: report(found, verbose), found.to_dict)
    return EXIT_INCONCLUSIVE if found.verdict in {"inconclusive", "not_comparable"} else 0


def _compare_jobs(
    a: Sequence[Job | Trace],
    b: Sequence[Job | Trace],
    least_effect: float,
    anyway: bool,
    output: ReportOutput,
    verbose: bool,
) -> int:
    """Compare two jobs of several ranks."""
    if len(a) != 1 or len(b) != 1:
        raise UsageError("two-jobs", "jobs of several ranks are compared two at a time", "warpline compare A B")
    first, second = a[0], b[0]
    if isinstance(first, Trace) or isinstance(second, Trace):
        raise UsageError("job-and-rank", "one side holds one rank, and the other several", "give two folders")
    found = compare_jobs(first, second, least_effect, anyway=anyway)
    output.put(lambda: job_report(found, verbose), found.to_dict)
    return EXIT_INCONCLUSIVE if found.verdict in {"inconclusive", "not_comparable"} else 0


def _remember(a: Trace, b: Trace, outcome: Outcome) -> None:
    """Append to the local record. That it cannot be written changes no answer."""
    try:
        remember_outcome(outcomes_file(), a, b, outcome)
    except WarplineError as error:
        say(f"warpline: not recorded: {error.line()}", err=True)
