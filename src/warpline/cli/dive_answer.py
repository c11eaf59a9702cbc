"""Shows what reports of Nsight Compute say: the reason inside each kernel, or what changed between two reports."""

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
    """The reason inside each kernel; with a timeline, the gain of a step."""
    from warpline.dive.answer import dive_files  # noqa: PLC0415 - loaded when used
    from warpline.reports.dive import report  # noqa: PLC0415

    found = dive_files(reports, trace)
    _put(found.to_dict(), report(found, verbose=verbose), as_json, output)


def compare_reports(before: Path, after: Path, verbose: bool, as_json: bool, output: Path | None) -> None:
    """What changed between two reports, and which change explains the time."""
    from warpline.dive.compare import compare  # noqa: PLC0415 - loaded when used
    from warpline.reports.dive_compare import report  # noqa: PLC0415
    from warpline.sources.ncu import read_report  # noqa: PLC0415

    found = compare(read_report(before), read_report(after))
    _put(found.to_dict(), report(found, verbose=verbose), as_json, output)


def _put(document: dict[str, Any], report: Report, as_json: bool, output: Path | None) -> None:
    chosen = format_of(output, as_json)
    if chosen is ReportFormat.JSON:
        put_text(json_text(document), output)
    else:
        put_report(report, chosen, output)
