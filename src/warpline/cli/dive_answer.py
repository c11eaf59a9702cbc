"""Shows what reports of Nsight Compute say: the reason inside each kernel, or what changed between two reports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from warpline.cli.output import format_of, put_answer
from warpline.sources.health import HealthEntry

if TYPE_CHECKING:
    from warpline.dive.inside_kernels import InsideKernel
    from warpline.dive.model import Dive
    from warpline.reports.sections import Report
    from warpline.trace.trace import Trace


def explain_reports(
    reports: Sequence[Path],
    trace: Trace | None,
    verbose: bool,
    as_json: bool,
    output: Path | None,
    wanted: Sequence[InsideKernel] = (),
) -> None:
    """The reason inside each kernel; with a timeline, the gain of a step. Says which wanted kernel was not profiled."""
    from warpline.dive.answer import dive_files  # noqa: PLC0415 - loaded when used
    from warpline.reports.dive import report  # noqa: PLC0415

    found = dive_files(reports, trace)
    missed = _missed(found, wanted)
    if missed:
        found = replace(found, health=(*found.health, missed))
    _put(found.to_dict(), report(found, verbose=verbose), as_json, output)


def _missed(found: Dive, wanted: Sequence[InsideKernel]) -> HealthEntry | None:
    """An entry for the kernels that should have been profiled and were not: the launches were counted wrongly."""
    held = {(one.kernel.function, one.kernel.grid, one.kernel.block) for one in found.found}
    names = [
        f"{kernel.function} with grid {kernel.grid}"
        for kernel in wanted
        if (kernel.function, kernel.grid, kernel.block) not in held
    ]
    if not names:
        return None
    message = f"ncu met other launches than the timeline: {', '.join(names)} was not profiled."
    return HealthEntry("other-launches", "warning", message)


def compare_reports(before: Path, after: Path, verbose: bool, as_json: bool, output: Path | None) -> None:
    """What changed between two reports, and which change explains the time."""
    from warpline.dive.compare import compare  # noqa: PLC0415 - loaded when used
    from warpline.reports.dive_compare import report  # noqa: PLC0415
    from warpline.sources.ncu import read_report  # noqa: PLC0415

    found = compare(read_report(before), read_report(after))
    _put(found.to_dict(), report(found, verbose=verbose), as_json, output)


def _put(document: dict[str, Any], report: Report, as_json: bool, output: Path | None) -> None:
    chosen = format_of(output, as_json)
    put_answer(document, report, chosen, output)
