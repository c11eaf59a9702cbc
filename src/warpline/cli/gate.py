"""``warpline gate``: whether recordings keep their budgets and are as fast as their baseline."""

from __future__ import annotations

from pathlib import Path

import click
from msgspec import Struct

from warpline.cli.baseline import folder_option, traces_argument
from warpline.cli.options import PATH, WORDS, anyway_option, bundle, least_effect_option, verbose_option
from warpline.cli.output import ReportOutput, output_options
from warpline.cli.selection import StepSelection, selection_options
from warpline.cli.write import refuse_existing, say, write_text
from warpline.compare.baseline import path_of, read_baseline
from warpline.compare.budgets import Budget, is_budget
from warpline.compare.comparison import Metric
from warpline.compare.counter_gate import check_report
from warpline.compare.gate import EXIT_CODES, Gate, GateLimits, check
from warpline.compare.history import remember
from warpline.errors import UsageError, WarplineError
from warpline.reports import gate_files
from warpline.reports.compare import gate_report
from warpline.sources.detect import detect
from warpline.sources.kinds import NCU_KINDS
from warpline.sources.ncu import read_report
from warpline.sources.record_files import record_file


class GateChecks(Struct, frozen=True):
    """What the recordings must keep."""

    baseline: str | None
    budgets: tuple[str, ...]
    metric: Metric
    least_effect: float
    ncu_reports: tuple[Path, ...]
    anyway: bool


class GateFiles(Struct, frozen=True):
    """Files for a CI system."""

    junit: Path | None
    comment: Path | None

    def write(self, found: Gate, title: str) -> None:
        """Write those that were asked for."""
        for path, text in ((self.junit, gate_files.junit), (self.comment, gate_files.comment)):
            if path is not None:
                write_text(path, text(found, title))


class GateRecord(Struct, frozen=True):
    """How the run is recorded in the history."""

    series: str | None
    label: str | None
    no_history: bool
    folder: Path


@click.command()
@traces_argument
@bundle(
    "checks",
    GateChecks,
    click.option(
        "--baseline",
        type=WORDS,
        metavar="NAME",
        help="Compare with this baseline, or this older report of Nsight Compute.",
    ),
    click.option(
        "--budget",
        "budgets",
        multiple=True,
        metavar="NUMBER<=LIMIT",
        help="Check this limit, for example step_ms<=12, syncs<=0 or idle_pct<=10; repeat.",
    ),
    click.option(
        "--metric",
        type=click.Choice(["step", "busy"]),
        default="step",
        help="Compare the step with the baseline's, or only the time in which the GPU is busy.",
    ),
    least_effect_option,
    click.option(
        "--ncu",
        "ncu_reports",
        multiple=True,
        type=PATH,
        metavar="REPORT",
        help="Take counters for budgets (ncu:KERNEL:METRIC) from this Nsight Compute report; repeat.",
    ),
    anyway_option,
)
@bundle(
    "files",
    GateFiles,
    click.option("--junit", type=PATH, metavar="FILE", help="Also write a JUnit XML file."),
    click.option("--comment", type=PATH, metavar="FILE", help="Also write a pull-request comment (Markdown)."),
)
@bundle(
    "record",
    GateRecord,
    click.option("--name", "series", metavar="NAME", help="Record the run under this name; default: the baseline's."),
    click.option(
        "--label", metavar="TEXT", help="Record the run with this label; default: the commit that the CI system names."
    ),
    click.option("--no-history", is_flag=True, help="Do not record this run."),
    folder_option,
)
@output_options
@verbose_option
@selection_options
def gate(
    traces: tuple[Path, ...],
    checks: GateChecks,
    files: GateFiles,
    record: GateRecord,
    output: ReportOutput,
    verbose: bool,
    selection: StepSelection,
) -> int:
    """Check recordings against a baseline, budgets, or both.

    A report of Nsight Compute is checked against an older report: the time of each kernel, and what it does.

    Exit code: 0 if they pass, 3 if they are slower or exceed a budget, 4 if the answer is inconclusive, 1 if they are
    of another program, device or number of ranks than the baseline.

    Examples:

      warpline gate run1.json.gz run2.json.gz run3.json.gz --baseline train

      warpline gate trace.json.gz --budget "step_ms<=12" --budget "syncs<=0"

      warpline gate new.ncu-rep --baseline good.ncu-rep
    """
    for file in (files.junit, files.comment):
        refuse_existing(file, output.force)
    # `--budget A B` is one option with A, and B among the traces.
    more = [path for path in traces if is_budget(str(path)) and not path.exists()]
    traces = tuple(path for path in traces if path not in more)
    if not traces:
        raise UsageError("no-trace", "there is no recording to check", "warpline gate TRACE --budget NUMBER<=LIMIT")
    budgets = [Budget.parse(text) for text in (*checks.budgets, *map(str, more))]
    is_report = len(traces) == 1 and detect(traces[0]) in NCU_KINDS
    if is_report:
        older = None if checks.baseline is None else read_report(checks.baseline)
        found = check_report(read_report(traces[0]), older, budgets, anyway=checks.anyway)
    else:
        known = None if checks.baseline is None else read_baseline(path_of(checks.baseline, record.folder))
        limits = GateLimits(known, budgets, checks.metric, checks.least_effect / 100, checks.anyway)
        found = check([selection.open(path) for path in traces], limits, checks.ncu_reports)
    title = record.series or (Path(checks.baseline).stem if checks.baseline else "gate")
    files.write(found, title)
    if not record.no_history and not is_report:
        _remember(found, title, record, checks.metric)
    output.put(lambda: gate_report(found, verbose), found.to_dict)
    return EXIT_CODES[found.outcome]


def _remember(found: Gate, title: str, record: GateRecord, metric: str) -> None:
    """Append to the history. That it cannot be written changes no outcome."""
    try:
        remember(record_file(), found, record.folder.resolve().parent, title, record.label, metric)
    except WarplineError as error:
        say(f"warpline: not recorded: {error.line()}", err=True)
