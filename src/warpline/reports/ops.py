"""The table of ops as sections."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from warpline.analyses.ops import OpsTable
from warpline.analyses.user_frames import site_of
from warpline.reports.diagnosis_tables import compact_name
from warpline.reports.roofline_plot import shape_label
from warpline.reports.sections import Column, Command, Content, Report, Section, Table, Text, Value, next_section
from warpline.units import duration, flops, share

_COLUMNS = (
    Column("gpu_self_ns", "GPU self", "ns"),
    Column("gpu_total_ns", "GPU total", "ns"),
    Column("cpu_self_ns", "CPU self", "ns"),
    Column("cpu_total_ns", "CPU total", "ns", priority=2),
    Column("share", "share", "share"),
    Column("calls", "calls", "count"),
    Column("gpu_mean_ns", "GPU mean", "ns", priority=5),
    Column("cpu_mean_ns", "CPU mean", "ns", priority=5),
    Column("launches", "launches", "count", priority=3),
    Column("flops", "FLOPs", "number", priority=6),
    Column("bytes", "bytes", "bytes", priority=6),
    Column("roof_pct", "% roof", "number", priority=3),
)
_WHERE = Column("where", "where", priority=4)
ALONE = ("kernel", "memcpy", "memset", "graph")
"""Kinds of rows that no op launched."""


def ops_report(table: OpsTable, title: str, path: str, top: int) -> Report:
    """The costliest rows, and what the columns mean."""
    on_device = table.device is not None
    columns = tuple(column for column in _COLUMNS if on_device or not _of_device(column.name))
    key = Column("name", "op" if table.group is None else f"op and {table.group}", key=True)
    shown = table.frame.head(top).to_dicts()
    rows = tuple((*(_cell(row, column.name) for column in columns), _label(row), _place(row)) for row in shown)
    hidden = len(table.frame) - len(rows)
    note = f"{hidden:,} more: --top {len(table.frame)}" if hidden else ""
    of = "GPU self time" if on_device else "CPU self time"
    text = (
        "self: without ops and CUDA calls inside; total: with them. Ops of one name inside each other count each, "
        f"as in torch's key_averages(). share: {of} of {duration(table.window_ns)}"
        f"{'' if on_device else ', in which several threads may run'}."
    )
    listed = Table((*columns, key, _WHERE), rows, hidden, note).without_empty(_WHERE.name)
    content: list[Content] = [listed, Text(text, "quiet")]
    if table.without_op_ns:
        content.append(
            Text(
                f"(no op): launched outside any op, as kernels of Triton or of one's own are: "
                f"{share(table.without_op_ns, table.gpu_ns)} of GPU time.",
                "quiet",
            )
        )
    if table.inferred_ns:
        content.append(
            Text(
                f"The op of {share(table.inferred_ns, table.gpu_ns)} of GPU time is inferred, not recorded: from the "
                "capture of its graph, or from the same sequence of kernels where ops are recorded.",
                "quiet",
            )
        )
    sections = (Section("ops", "Ops", tuple(content), is_lead=True), next_section(_next(table, path)))
    return Report(title, sections)


def _of_device(name: str) -> bool:
    return name.startswith("gpu_") or name in {"launches", "roof_pct"}


def _cell(row: dict[str, Any], name: str) -> Value:
    value: Value
    if name == "flops":
        value = flops(row[name]) if row[name] else None
    elif name == "roof_pct":
        value = f"{row[name]:.1f}" if row[name] is not None else None
    else:
        value = row[name]
    return value


def _label(row: dict[str, Any]) -> str:
    group = row.get("group") or ""
    if row["kind"] in ALONE:
        return f"{compact_name(row['name']) or row['kind']} (no op)"
    return " ".join(filter(None, (row["name"], shape_label(group) if group.startswith("[") else group)))


def _place(row: dict[str, Any]) -> str | None:
    """The line of the costliest call, unless the group names it already."""
    site = site_of(row)
    return site.spot if site and site.file not in (row.get("group") or "") else None


def _next(table: OpsTable, path: str) -> Iterator[Command]:
    quoted = shlex.quote(path)
    if table.group != "shape":
        yield Command(f"warpline ops {quoted} --group shape", "a row for each shape")
    if table.device is None:  # the others are about the GPU
        yield Command(f"warpline diagnose {quoted}", "what takes the time")
    else:
        yield Command(f"warpline parts {quoted}", "the step by module, range or role")
        yield Command(f"warpline roofline {quoted}", "how far each op is from the roofline")
