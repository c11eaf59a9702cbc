"""Nsight Systems: read SQLite and Parquet exports as rows, and export reports with the installed nsys."""

from __future__ import annotations

from warpline.sources.nsys.parquet_folder import NSYS_PARQUET
from warpline.sources.nsys.read import read_nsys, read_nsys_parquet, read_nsys_report
from warpline.sources.nsys.report_file import export_report, report_version

__all__ = [
    "NSYS_PARQUET",
    "export_report",
    "read_nsys",
    "read_nsys_parquet",
    "read_nsys_report",
    "report_version",
]
