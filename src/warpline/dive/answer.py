"""A dive from its files: reads the reports, walks the tree for each kernel, and carries the gains to a trace's step."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from warpline.dive.model import Dive
from warpline.dive.tree import explain
from warpline.sources.health import HealthEntry
from warpline.sources.ncu import read_report
from warpline.sources.ncu.model import NcuReport
from warpline.trace.trace import Trace


def dive_into(report: NcuReport, trace: Trace | None = None) -> Dive:
    """The answer for one report that has been read."""
    if trace is None:
        found = tuple(map(explain, report.kernels))
    else:
        from warpline.dive.match_launches import join  # noqa: PLC0415 - the replay loads only with a trace
        from warpline.dive.needs import needed_bytes  # noqa: PLC0415
        from warpline.dive.step import with_step  # noqa: PLC0415

        matches = join(report, trace)
        found = with_step(tuple(map(explain, report.kernels, needed_bytes(trace, matches))), matches, trace)
    return Dive(str(report.path), found, (*report.health, *_doubts(report)))


def dive_files(paths: Sequence[str | Path], trace: Trace | None = None) -> Dive:
    """The answer for one or several reports together."""
    dives = [dive_into(read_report(path), trace) for path in paths]
    return Dive(
        ", ".join(one.path for one in dives),
        tuple(found for one in dives for found in one.found),
        tuple(entry for one in dives for entry in one.health),
    )


def _doubts(report: NcuReport) -> list[HealthEntry]:
    """What qualifies the answer: kernels that ncu replayed cold, counters that are missing."""
    blind = sum(not kernel.metrics for kernel in report.kernels)
    if not blind:
        return []
    message = f"Kernels without any counter: {blind:,} of {len(report.kernels):,}. Their reason cannot be told."
    return [HealthEntry("no-counters", "warning", message)]
