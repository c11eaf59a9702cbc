"""``warpline compare``: whether B is faster than A, and where the difference comes from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from warpline.cli.options import (
    force_option,
    json_option,
    no_cache_option,
    open_with_progress,
    step_range_option,
    steps_option,
    verbose_option,
)
from warpline.cli.output import ReportFormat, format_of, put_answer, refuse_existing, say, write_text
from warpline.errors import EXIT_INCONCLUSIVE, UsageError, WarplineError

if TYPE_CHECKING:
    from warpline.compare.prediction import Outcome
    from warpline.trace.trace import Trace


@click.command()
@click.argument("traces", nargs=-1, type=click.Path(path_type=Path), metavar="A B")
@click.option(
    "--before",
    "more_a",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="TRACE",
    help="Add a run of A; repeat.",
)
@click.option(
    "--after", "more_b", multiple=True, type=click.Path(path_type=Path), metavar="TRACE", help="Add a run of B; repeat."
)
@click.option("--least-effect", type=float, default=2.0, metavar="PERCENT", help="Ignore smaller changes of the step.")
@click.option("--no-history", is_flag=True, help="Do not record which prediction came true.")
@json_option
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write to this file: .md, .txt, .json or .html.",
)
@force_option
@verbose_option
@steps_option
@step_range_option
@no_cache_option
def compare(
    traces: tuple[Path, ...],
    more_a: tuple[Path, ...],
    more_b: tuple[Path, ...],
    least_effect: float,
    no_history: bool,
    as_json: bool,
    output: Path | None,
    force: bool,
    verbose: bool,
    steps: str | None,
    step_range: str | None,
    no_cache: bool,
) -> int:
    """Compare two recordings: is B faster, by how much, and what changed.

    Kernels are aligned in order, so fused, split, renamed and moved ones are recognised. The parts sum to the
    difference of the step. Exit code: 0 with an answer, 4 if it is inconclusive or the two cannot be compared.

    Examples:

      warpline compare before.json.gz after.json.gz

      warpline compare --before before1.json.gz --before before2.json.gz --after after1.json.gz --after after2.json.gz

      warpline compare before.json.gz after.json.gz -o change.md

      warpline compare before.json.gz after.json.gz -o change.html
    """
    from warpline.compare.comparison import compare as explain  # noqa: PLC0415 - polars loads only when it is used
    from warpline.reports.compare import report  # noqa: PLC0415

    refuse_existing(output, force)
    as_page = output is not None and output.suffix.lower() == ".html" and not as_json
    chosen = ReportFormat.TERMINAL if as_page else format_of(output, as_json)
    a, b = _sides(traces, more_a, more_b)
    opened = {path: open_with_progress(path, steps, step_range, no_cache) for path in dict.fromkeys([*a, *b])}
    found = explain([opened[path] for path in a], [opened[path] for path in b], least_effect / 100)
    if found.outcome is not None and not no_history:
        _remember(opened[a[0]], opened[b[0]], found.outcome)
    if as_page and output is not None:
        from warpline.exports.comparison_page import comparison_page  # noqa: PLC0415

        write_text(output, comparison_page(report(found, verbose=True), opened[a[0]], opened[b[0]]))
        say(f"wrote {output}; open it in a browser", err=True)
    else:
        put_answer(found.to_dict(), report(found, verbose), chosen, output)
    return EXIT_INCONCLUSIVE if found.verdict in {"inconclusive", "not_comparable"} else 0


def _remember(a: Trace, b: Trace, outcome: Outcome) -> None:
    """Append to the local record. That it cannot be written changes no answer."""
    from warpline.compare.prediction import remember_outcome  # noqa: PLC0415
    from warpline.sources.record_files import outcomes_file  # noqa: PLC0415

    try:
        remember_outcome(outcomes_file(), a, b, outcome)
    except WarplineError as error:
        say(f"warpline: not recorded: {error.line()}", err=True)


def _sides(traces: tuple[Path, ...], a: tuple[Path, ...], b: tuple[Path, ...]) -> tuple[list[Path], list[Path]]:
    if len(traces) not in {0, 2}:
        raise UsageError(
            "two-traces",
            f"compare takes two recordings, not {len(traces)}",
            "give more runs with --before and --after",
        )
    sides = [*traces[:1], *a], [*traces[1:], *b]
    if not all(sides):
        raise UsageError("two-traces", "compare needs a recording of A and one of B", "warpline compare A B")
    return sides
