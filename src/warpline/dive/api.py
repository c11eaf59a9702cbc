"""`warpline.dive`: the kernels of a report of Nsight Compute, explained."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warpline.dive.compare import DiveComparison
    from warpline.dive.model import Dive
    from warpline.trace.trace import Trace


def dive(report: str | Path, trace: str | Path | Trace | None = None) -> Dive:
    """Say why each kernel of a report of Nsight Compute (.ncu-rep or a CSV page) is slow inside.

    With a trace, the gains are carried to its step.

    >>> warpline.dive("report.ncu-rep").kernels.select("name", "reason", "gain")
    """
    from warpline.dive.answer import dive_files  # noqa: PLC0415 - loaded when used
    from warpline.trace.open import open_trace  # noqa: PLC0415

    if trace is None:
        return dive_files([report])
    opened = open_trace(trace) if isinstance(trace, str | Path) else trace
    return dive_files([report], opened)


def compare(before: str | Path, after: str | Path) -> DiveComparison:
    """What changed between two reports of Nsight Compute, and which change explains the time.

    >>> warpline.dive.compared("before.ncu-rep", "after.ncu-rep").kernels[0].sentence
    """
    from warpline.dive.compare import compare as compare_reports  # noqa: PLC0415
    from warpline.sources.ncu import read_report  # noqa: PLC0415

    return compare_reports(read_report(before), read_report(after))
