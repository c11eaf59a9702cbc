"""The dispatch path as sections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpline.reports.sections import Column, Report, Section, Table, Text

if TYPE_CHECKING:
    import polars as pl

_COLUMNS = (
    Column("per_step", "per step", "count", priority=2),
    Column("python_ns", "Python", "ns"),
    Column("framework_ns", "framework", "ns"),
    Column("api_ns", "API", "ns"),
    Column("queue_ns", "queue", "ns", priority=2),
    Column("kernel_ns", "kernels", "ns"),
    Column("launches", "launches", "count", priority=3),
    Column("depth", "depth", "count", priority=4),
    Column("hidden_share", "hidden", "share", priority=3),
    Column("name", "op", key=True),
)


def path_report(table: pl.DataFrame, title: str) -> Report:
    """One line per op: mean time in each layer."""
    rows = tuple(
        (
            *(row[column.name] for column in _COLUMNS[:-1]),
            row["name"] + (f" {row['file']}:{row['line']} {row['function']}" if row["file"] else ""),
        )
        for row in table.rows(named=True)
    )
    note = (
        "Means per op. framework: the op and the ops it calls, without API calls; queue: from the call's return to the "
        "kernel; hidden: share of its CPU time while the GPU is busy."
    )
    return Report(title, (Section("ops", "Dispatch path", (Table(_COLUMNS, rows), Text(note, "quiet"))),))
