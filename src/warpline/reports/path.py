"""The dispatch path as sections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warpline.analyses.user_frames import site_of
from warpline.reports.diagnosis_tables import compact_name
from warpline.reports.sections import Column, Report, Section, Table, Text

if TYPE_CHECKING:
    import polars as pl

LONGEST_KERNEL = 48
_COLUMNS = (
    Column("per_step", "per step", "count", priority=2),
    Column("python_ns", "Python", "ns"),
    Column("boundary_ns", "boundary", "ns", priority=3),
    Column("native_ns", "C++", "ns", priority=3),
    Column("autograd_ns", "autograd", "ns", priority=2),
    Column("dispatcher_ns", "dispatcher", "ns", priority=2),
    Column("backend_ns", "backend", "ns", priority=2),
    Column("api_ns", "API", "ns"),
    Column("queue_ns", "queue", "ns", priority=2),
    Column("kernel_ns", "kernels", "ns"),
    Column("launches", "launches", "count", priority=3),
    Column("depth", "depth", "count", priority=4),
    Column("hidden_share", "hidden", "share", priority=3),
    Column("name", "op", key=True),
)
_WHERE = Column("where", "where", priority=3)


def path_report(table: pl.DataFrame, title: str) -> Report:
    """One line per op: mean time in each layer, its main kernel, and its place."""
    shown = table.rows(named=True)
    where = [_WHERE] if any(row["file"] for row in shown) else []
    rows = tuple(
        (*(row[column.name] for column in _COLUMNS[:-1]), _named(row), *([_place(row)] if where else []))
        for row in shown
    )
    note = (
        "Means per op. boundary: in the built-in function around the op, known with stacks; C++: before ops that the "
        "autograd engine calls, where others have Python; autograd, dispatcher, backend: the op and the ops it calls, "
        "without API calls; queue: from the call's return to the kernel; hidden: share of its CPU time while the GPU "
        "is busy."
    )
    return Report(title, (Section("ops", "Dispatch path", (Table((*_COLUMNS, *where), rows), Text(note, "quiet"))),))


def _named(row: dict[str, Any]) -> str:
    kernel = f" → {kernel_text(row['kernel'])}" if row["kernel"] else ""
    return f"{row['name']}{kernel}"


def _place(row: dict[str, Any]) -> str | None:
    site = site_of(row)
    return site.with_function if site else None


def kernel_text(name: str) -> str:
    """A kernel's name, short enough for a table."""
    plain = compact_name(name)
    return plain if len(plain) <= LONGEST_KERNEL else plain[: LONGEST_KERNEL - 1] + "…"
