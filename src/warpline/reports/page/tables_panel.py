"""Tables to sort, filter and group: ops, parts of the step and kernels."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import polars as pl

from warpline.analyses.kernels import top_kernels
from warpline.analyses.ops import ops_table
from warpline.analyses.parts.table import PartsTable, parts_table
from warpline.analyses.roofline.pieces import GpuWork
from warpline.analyses.user_frames import site_of
from warpline.errors import CannotAnswer
from warpline.findings.diagnosis import Diagnosis
from warpline.replay.representative_steps import in_warm_steps
from warpline.reports.page.contract import DataTable, DataTables, TableColumn

MOST_ROWS = 500


def tables_panel(diagnosis: Diagnosis) -> DataTables | None:
    """Every table with rows, of the warm steps where there are some; None without any."""
    found = list(_tables(diagnosis))
    return DataTables(found) if found else None


def _tables(diagnosis: Diagnosis) -> Iterator[DataTable]:
    trace = in_warm_steps(diagnosis.trace)
    work = GpuWork(trace)
    if len(trace.ops):
        yield _ops(ops_table(trace, known_work=work).frame)
    if diagnosis.devices:
        with contextlib.suppress(CannotAnswer):
            yield _parts(parts_table(trace, known_work=work), len(diagnosis.devices))
    kernels = top_kernels(trace)
    if len(kernels):
        yield _kernels(kernels)


def _ops(ops: pl.DataFrame) -> DataTable:
    columns = {
        "name": TableColumn("op", "text"),
        "kind": TableColumn("kind", "text", group=True),
        "calls": TableColumn("calls", "count", sums=True),
        "gpu_self_ns": TableColumn("GPU self", "ns", sums=True),
        "gpu_total_ns": TableColumn("GPU total", "ns"),
        "cpu_self_ns": TableColumn("CPU self", "ns", sums=True),
        "cpu_total_ns": TableColumn("CPU total", "ns"),
        "launches": TableColumn("launches", "count"),
        "roof": TableColumn("of the roof", "share"),
        "line": TableColumn("line", "text", group=True),
    }
    sites = map(site_of, ops.iter_rows(named=True))
    line = pl.Series([site.brief if site else None for site in sites], dtype=pl.String)
    # Only what ran on a device has a GPU time: a table without one sorts by CPU time.
    present = [name for name in columns if not name.startswith("gpu") or ops["gpu_total_ns"].is_not_null().any()]
    shown = ops.with_columns(roof=pl.col("roof_pct") / 100, line=line)
    return data_table("Ops", shown, {name: columns[name] for name in present})


def _parts(parts: PartsTable, devices: int) -> DataTable:
    columns = {
        "part": TableColumn(f"part, by {parts.by}", "text"),
        "gpu_ns": TableColumn("GPU time", "ns", sums=True),
        "share": TableColumn("share", "share", sums=True),
        "launches": TableColumn("launches", "count", sums=True),
        "mean_ns": TableColumn("mean", "ns"),
        "idle_inside_ns": TableColumn("idle inside", "ns"),
        "roof": TableColumn("of the roof", "share"),
        "headroom_ns": TableColumn("headroom", "ns"),
        "verdict": TableColumn("verdict", "text", group=True),
    }
    title = f"Parts, GPU {parts.device_index}" if devices > 1 else "Parts"
    return data_table(title, parts.frame.with_columns(roof=pl.col("roof_pct") / 100), columns)


def _kernels(kernels: pl.DataFrame) -> DataTable:
    columns = {
        "name": TableColumn("kernel", "text"),
        "class": TableColumn("class", "text", group=True),
        "dtype": TableColumn("type", "text", group=True),
        "count": TableColumn("calls", "count", sums=True),
        "total_ns": TableColumn("total", "ns", sums=True),
        "share": TableColumn("share", "share", sums=True),
        "mean_ns": TableColumn("mean", "ns"),
        "min_ns": TableColumn("shortest", "ns"),
        "max_ns": TableColumn("longest", "ns"),
    }
    return data_table("Kernels", kernels, columns)


def data_table(title: str, frame: pl.DataFrame, columns: dict[str, TableColumn]) -> DataTable:
    """The frame's first rows with those of these columns that have a value, the first of which names a row."""
    shown = frame.select(*columns).head(MOST_ROWS)
    shown = shown.select([name for name in columns if name == next(iter(columns)) or shown[name].is_not_null().any()])
    kept = [columns[name] for name in shown.columns]
    return DataTable(title, kept, [list(row) for row in shown.iter_rows()], len(frame) - len(shown))
