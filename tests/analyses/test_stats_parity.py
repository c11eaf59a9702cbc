"""What ``nsys stats`` printed, reproduced to the digit, the row and the order.

The recorded outputs hold several reports each, one after the other, as ``nsys stats --format csv`` prints them.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import paths
import pytest
from paths import DATA

from warpline.analyses.stats import REPORTS, report
from warpline.errors import CannotAnswer
from warpline.reports.tabular import to_csv
from warpline.trace.open import open_trace
from warpline.trace.trace import Trace

OWN = DATA / "nsys"
SHARED = paths.SHARED / "h200" / "nsys"
SUFFIX = ".nsys-stats.csv"


@dataclass(frozen=True, slots=True)
class Recorded:
    """One report as nsys printed it."""

    file: Path
    report: str
    rows: tuple[tuple[str, ...], ...]
    """Header and rows; empty where nsys found the data but no rows."""
    skipped: bool

    def __str__(self) -> str:
        return f"{self.file.name.split('.')[0]}-{self.report}"


def recorded(*folders: Path) -> list[Recorded]:
    """Every report in the recorded outputs of some folders."""
    found = []
    for file in sorted(file for folder in folders for file in folder.glob(f"*{SUFFIX}")):
        for part in re.split(r"(?m)^Processing ", file.read_text(encoding="utf-8"))[1:]:
            head, _, body = part.partition("\n")
            name = re.search(r"(\w+)\.py\]", head)
            assert name, head
            rows = tuple(tuple(row) for row in csv.reader(io.StringIO(body)) if row)
            skipped = bool(rows) and rows[0][0].startswith("SKIPPED")
            found.append(Recorded(file, name.group(1), () if skipped else rows, skipped))
    return found


@cache
def trace_of(file: Path) -> Trace:
    return open_trace(file.with_name(file.name.removesuffix(SUFFIX) + ".sqlite.gz"), cache=False)


def assert_same(wanted: Recorded) -> None:
    if wanted.skipped:
        with pytest.raises(CannotAnswer):
            report(trace_of(wanted.file), wanted.report)
        return
    printed = to_csv(report(trace_of(wanted.file), wanted.report))
    rows = tuple(tuple(row) for row in csv.reader(io.StringIO(printed)))
    # Where nsys finds no rows it prints no header either.
    assert (rows if wanted.rows else rows[1:]) == wanted.rows


@pytest.mark.parametrize("wanted", recorded(OWN), ids=str)
def test_project_recordings_are_reproduced(wanted: Recorded) -> None:
    assert_same(wanted)


def test_project_recordings_hold_every_report() -> None:
    assert {wanted.report for wanted in recorded(OWN) if wanted.rows} == set(REPORTS)


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared recordings are not beside this checkout")
@pytest.mark.parametrize("wanted", recorded(SHARED), ids=str)
def test_shared_recordings_are_reproduced(wanted: Recorded) -> None:
    assert_same(wanted)
