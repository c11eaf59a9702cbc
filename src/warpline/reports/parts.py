"""The step in parts as sections."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

import polars as pl

from warpline.analyses.parts.labels import NO_PART
from warpline.analyses.parts.table import GAPS, PartsTable
from warpline.compare.parts import short
from warpline.reports.roofline_plot import shape_label
from warpline.reports.sections import Column, Command, Report, Section, Table, Text, Value, next_section
from warpline.units import duration, several, share

LISTED_SHAPES = 12
CHOSEN_BY_SIZES = ("gemm", "conv", "attention")
"""Classes of kernels that a library chooses by the sizes, types and layouts of the operands."""
SHAPES_HINT = (
    "A torch.profiler trace of the same program, or of the capture of its graphs, has the shapes of the others: "
    "--shapes-from TRACE; one beside this file is found without it."
)
NAMED_BY = {
    "module": "the modules of most of the work are not recorded; warpline run --stacks records them",
    "range": "most of the work is in no named range; warpline.region or NVTX names one",
}
"""How the program gives parts a name."""
_COLUMNS = (
    Column("gpu_ns", "GPU time", "ns"),
    Column("share", "share", "share"),
    Column("per_step_ns", "per step", "ns"),
    Column("calls", "calls", "count", priority=2),
    Column("mean_ns", "mean", "ns", priority=3),
    Column("idle_inside_ns", "idle inside", "ns", priority=4),
    Column("launches", "launches", "count", priority=3),
    Column("roof_pct", "% roof", "number", priority=2),
)
_VERDICT = Column("verdict", "verdict")
_KERNEL_SHARE = Column("kernel_share", "of kernels", "share")


def parts_report(table: PartsTable, title: str, path: str, top: int) -> Report:
    """The parts, the classes of kernels, and which kernel ran for which shapes."""
    sections = [
        Section("parts", f"By {table.by}", (_table(table.frame, _COLUMNS, table.by, top), _note(table)), is_lead=True)
    ]
    if table.by != "class":
        columns = (_COLUMNS[0], _KERNEL_SHARE, *_COLUMNS[1:])
        sections.append(Section("classes", "By class of kernels", (_table(table.classes, columns, "class", top),)))
    if len(table.shapes):
        sections.append(Section("shapes", "Kernels by shape", tuple(_shapes(table))))
    sections.append(next_section(_next(table, path)))
    return Report(title, tuple(sections))


def _table(frame: pl.DataFrame, columns: tuple[Column, ...], key: str, top: int) -> Table:
    shown = [column for column in columns if frame[column.name].null_count() < len(frame)]
    parts, rest = frame.filter(pl.col("verdict").is_not_null()), frame.filter(pl.col("verdict").is_null())
    listed = pl.concat([parts.head(top), rest])
    rows = tuple(
        (*(_cell(row, column.name) for column in shown), row["part"], row["verdict"]) for row in listed.to_dicts()
    )
    hidden = len(parts) - min(top, len(parts))
    note = f"{hidden:,} more, {duration(int(parts[top:]['gpu_ns'].sum()))}: --top {len(parts)}" if hidden else ""
    return Table((*shown, Column("part", key, key=True), _VERDICT), rows, hidden, note)


def _cell(row: dict[str, Any], name: str) -> Value:
    value: Value = row[name]
    if name == "kernel_share" and not row["kernel_ns"]:
        return None
    return f"{value:.1f}" if name == "roof_pct" and isinstance(value, float) else value


def _note(table: PartsTable) -> Text:
    busy = int(table.frame.filter(pl.col("verdict").is_not_null())["gpu_ns"].sum())
    known = share(table.known_ns, table.operations_ns)
    text = (
        f"The rows sum to {duration(table.window_ns)}. Overlapping operations count once. idle inside: gaps within a "
        f"part, included in the row {GAPS}. FLOPs and bytes are known for {known} of GPU time."
    )
    unnamed = int(table.frame.filter(pl.col("part") == NO_PART)["gpu_ns"].sum())
    if 2 * unnamed > busy and table.by in NAMED_BY:
        text += f" {NO_PART}: {NAMED_BY[table.by]}."
    inferred = int(table.frame["inferred_ns"].sum())
    if inferred:
        text += (
            f" The {table.by} of {share(inferred, busy)} is inferred, not recorded: from the capture of its graph, or "
            "from the same sequence of kernels where ops are recorded."
        )
    lacks_shapes = table.is_pytorch and 2 * table.known_ns <= table.operations_ns
    return Text(f"{text} {SHAPES_HINT}" if lacks_shapes else text, "quiet")


def _shapes(table: PartsTable) -> list[Text | Table]:
    columns = (
        Column("time_ns", "time", "ns"),
        Column("share", "share", "share", priority=2),
        Column("count", "count", "count", priority=2),
        Column("mean_ns", "mean", "ns", priority=3),
        Column("roof_pct", "% roof", "number", priority=3),
        Column("op", "op and shapes", key=True),
        Column("kernel", "kernel"),
        Column("role", "role"),
        Column("grid", "grid", priority=4),
    )
    whole_ns = max(int(table.shapes["time_ns"].sum()), 1)
    rows = tuple(
        (
            row["time_ns"],
            row["time_ns"] / whole_ns,
            row["count"],
            row["mean_ns"],
            _cell(row, "roof_pct"),
            " ".join(filter(None, (row["op"] or "(no op)", shape_label(row["shapes"] or "")))),
            short(row["kernel"])[:60],
            row["role"],
            row["grid"],
        )
        for row in table.shapes.head(LISTED_SHAPES).to_dicts()
    )
    hidden = len(table.shapes) - len(rows)
    content: list[Text | Table] = [
        Table(columns, rows, hidden, f"{hidden:,} more: --json lists them" if hidden else "")
    ]
    known = table.shapes.filter(pl.col("shapes").is_not_null() & pl.col("class").is_in(CHOSEN_BY_SIZES))
    by_op = (
        known.group_by("op").agg(pl.col("shapes").n_unique(), pl.col("kernel").n_unique()).filter(pl.col("kernel") > 1)
    )
    for op, shapes, kernels in by_op.sort("shapes", "op", descending=[True, False]).head(1).iter_rows():
        content.append(
            Text(f"The library chooses by shape: {kernels} kernels for {several(shapes, 'shape')} of {op}.", "quiet")
        )
    return content


def _next(table: PartsTable, path: str) -> Iterator[Command]:
    quoted = shlex.quote(path)
    other = "role" if table.by != "role" else "class"
    yield Command(f"warpline parts {quoted} --by {other}", f"the same by {other}")
    if table.shapes["shapes"].is_not_null().any():
        yield Command(f"warpline ops {quoted} --group shape", "each op with each shape")
