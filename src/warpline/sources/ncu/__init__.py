"""Reports of Nsight Compute: ``.ncu-rep`` through NVIDIA's own reader, and ncu's CSV pages."""

from __future__ import annotations

from pathlib import Path

from warpline.errors import UnreadableFile
from warpline.sources.detect import detect
from warpline.sources.kinds import NCU_CSV, NCU_REPORT
from warpline.sources.ncu.csv_file import read_csv
from warpline.sources.ncu.model import NcuReport
from warpline.sources.ncu.report_file import read_report_file


def read_report(path: str | Path) -> NcuReport:
    """Read a report of Nsight Compute: ``.ncu-rep`` or a CSV page, plain, gzipped or xz."""
    file = Path(path)
    kind = detect(file)
    if kind is NCU_CSV:
        return read_csv(file)
    if kind is NCU_REPORT:
        return read_report_file(file)
    raise UnreadableFile(
        "not-an-ncu-report",
        f"{file} is a file of kind {kind.name}, not a report of Nsight Compute",
        "give a .ncu-rep file, or its page: ncu --import REPORT.ncu-rep --csv --page raw",
    )
