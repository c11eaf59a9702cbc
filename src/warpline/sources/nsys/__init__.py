"""Nsight Systems: SQLite exports read as rows, reports exported with the nsys at hand."""

from __future__ import annotations

from warpline.sources.nsys.read import read_nsys
from warpline.sources.nsys.report_file import export_report, report_version

__all__ = ["export_report", "read_nsys", "report_version"]
