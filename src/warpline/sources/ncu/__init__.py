"""Reports of Nsight Compute: ``.ncu-rep`` through NVIDIA's own reader, and ncu's CSV pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from warpline.errors import UnreadableFile
from warpline.sources.detect import NCU_KINDS, Kind, detect

if TYPE_CHECKING:
    from warpline.sources.ncu.model import NcuReport

REPORT_KINDS = frozenset({Kind.NCU_REP, Kind.NCU_REP_GZ, Kind.NCU_REP_XZ})
CSV_KINDS = NCU_KINDS - REPORT_KINDS


def is_ncu(kind: Kind) -> bool:
    """Whether a file of this kind is one that :func:`read_report` reads."""
    return kind in NCU_KINDS


def read_report(path: str | Path) -> NcuReport:
    """Read a report of Nsight Compute: ``.ncu-rep`` or a CSV page, plain, gzipped or xz."""
    file = Path(path)
    kind = detect(file)
    if kind in CSV_KINDS:
        from warpline.sources.ncu.csv_file import read_csv  # noqa: PLC0415 - only what the kind needs

        return read_csv(file)
    if kind in REPORT_KINDS:
        from warpline.sources.ncu.report_file import read_report_file  # noqa: PLC0415

        return read_report_file(file)
    raise UnreadableFile(
        "not-an-ncu-report",
        f"{file} is a file of kind {kind.value}, not a report of Nsight Compute",
        "give a .ncu-rep file, or its page: ncu --import REPORT.ncu-rep --csv --page raw",
    )
