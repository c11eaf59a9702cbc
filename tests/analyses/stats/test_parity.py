"""What ``nsys stats`` printed, reproduced to the digit, the row and the order.

The recorded outputs hold several reports each, one after the other, as ``nsys stats --format csv`` prints them.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import paths
import pytest
from paths import DATA

from warpline.analyses.stats import REPORTS, report
from warpline.errors import CannotAnswer
from warpline.reports.frame_text import to_csv
from warpline.trace.open import open_trace

OWN = DATA / "nsys"
SHARED = paths.SHARED / "h200" / "nsys"
SUFFIX = ".nsys-stats.csv"


@dataclass(frozen=True, slots=True)
class Recorded:
    """One report as nsys printed it."""

    report: str
    rows: tuple[tuple[str, ...], ...]
    """Header and rows; empty where nsys found the data but no rows."""
    skipped: bool


def outputs(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"*{SUFFIX}"))


def recorded(file: Path) -> Iterator[Recorded]:
    """Every report of a recorded output."""
    for part in re.split(r"(?m)^Processing ", file.read_text(encoding="utf-8"))[1:]:
        head, _, body = part.partition("\n")
        name = re.search(r"(\w+)\.py\]", head)
        assert name, head
        rows = tuple(tuple(row) for row in csv.reader(io.StringIO(body)) if row)
        skipped = bool(rows) and rows[0][0].startswith("SKIPPED")
        yield Recorded(name.group(1), () if skipped else rows, skipped)


def assert_same(file: Path) -> None:
    trace = open_trace(file.with_name(file.name.removesuffix(SUFFIX) + ".sqlite.gz"), cache=False)
    for wanted in recorded(file):
        if wanted.skipped:
            with pytest.raises(CannotAnswer):
                report(trace, wanted.report)
            continue
        printed = to_csv(report(trace, wanted.report))
        rows = tuple(tuple(row) for row in csv.reader(io.StringIO(printed)))
        # Where nsys finds no rows it prints no header either.
        assert (rows if wanted.rows else rows[1:]) == wanted.rows, wanted.report


@pytest.mark.parametrize("file", outputs(OWN), ids=lambda file: file.name.split(".")[0])
def test_project_recordings_are_reproduced(file: Path) -> None:
    assert_same(file)


def test_project_recordings_hold_every_report() -> None:
    assert {wanted.report for file in outputs(OWN) for wanted in recorded(file) if wanted.rows} == set(REPORTS)


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared recordings are not beside this checkout")
@pytest.mark.parametrize("file", outputs(SHARED), ids=lambda file: file.name.split(".")[0])
def test_shared_recordings_are_reproduced(file: Path) -> None:
    assert_same(file)
