"""Shows what a report of Nsight Compute says, or what two of them differ in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpline.cli.output import ReportFormat, format_of, json_text, put_report, put_text

if TYPE_CHECKING:
    from warpline.reports.sections import Report
    from warpline.trace.trace import Trace


def explain_reports(
    reports: Sequence[Path], trace: Trace | None, verbose: bool, as_json: bool, output: Path | None
) -> None:
    """The reason of each kernel."""
    from warpline.dive.answer import dive_files  # noqa: PLC0415 - loaded when used, so that --help stays quick
    from warpline.reports.dive import report  # noqa: PLC0415

    answer = dive_files(reports, trace)
    _put(answer.to_dict(), report(answer, verbose=verbose), as_json, output)


def compare_reports(before: Path, after: Path, verbose: bool, as_json: bool, output: Path | None) -> None:
    """What changed between two reports."""
    from warpline.dive.compare import compare  # noqa: PLC0415
    from warpline.reports.dive_compare import report  # noqa: PLC0415
    from warpline.sources.ncu import read_report  # noqa: PLC0415

    answer = compare(read_report(before), read_report(after))
    _put(answer.to_dict(), report(answer, verbose=verbose), as_json, output)


def _put(document: dict[str, Any], shown: Report, as_json: bool, output: Path | None) -> None:
    chosen = format_of(output, as_json)
    if chosen is ReportFormat.JSON:
        put_text(json_text(document), output)
    else:
        put_report(shown, chosen, output)
