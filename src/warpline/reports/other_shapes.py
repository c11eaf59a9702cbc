"""The GPU time of a trace with another size of a dimension, as sections."""

from __future__ import annotations

import shlex

from warpline.analyses.roofline.other_shapes import OtherShapes, ScaledOp
from warpline.estimate import Estimate
from warpline.reports.roofline_plot import shape_label
from warpline.reports.sections import Column, Command, Report, Section, Table, Text, Value, next_section
from warpline.units import duration, share

_COLUMNS = (
    Column("time_ns", "now", "ns"),
    Column("share", "share", "share", priority=2),
    Column("new_time_ns", "then", "ns"),
    Column("new_share", "share then", "share"),
    Column("growth", "growth", "gain"),
    Column("range_ns", "range", "ns", priority=3),
    Column("name", "op", key=True),
)


def scaled_report(answer: OtherShapes, path: str, top: int) -> Report:
    """The total, the ops, and what is assumed."""
    times = f"{duration(answer.time_ns)} of GPU time become {duration(answer.expected_ns)}"
    span = f"{duration(answer.low_ns)} to {duration(answer.high_ns)}"
    found = f" ({answer.inferred})" if answer.inferred else ""
    title = f"{answer.old:,}{found} to {answer.new:,} on {answer.device}: {times}, {span}"
    hidden = len(answer.rows) - top
    note = f"{hidden:,} more: --top {len(answer.rows)}" if hidden > 0 else ""
    table = Table(_COLUMNS, tuple(_row(row, answer) for row in answer.rows[:top]), max(0, hidden), note)
    texts = (
        Text(
            "Assumed: each op keeps its share of the roofline; other end of the range: only its minimum time grows.",
            "quiet",
        ),
        Text("Not predicted: launches and gaps, memory limits, other kernels for other shapes.", "quiet"),
    )
    part = share(answer.unscaled_ns, answer.time_ns)
    kept = f"{duration(answer.unscaled_ns)} without a work model ({part}) stay as they are."
    content = (table, *texts, Text(kept, "quiet")) if answer.unscaled_ns else (table, *texts)
    command = Command(f"warpline roofline {shlex.quote(path)}", "the roofline at the recorded sizes")
    sections = (Section("ops", "Ops", content), next_section([command]))
    return Report(title, sections)


def _row(row: ScaledOp, answer: OtherShapes) -> tuple[Value, ...]:
    return (
        row.time_ns,
        row.time_ns / answer.time_ns if answer.time_ns else None,
        row.expected_ns,
        row.expected_ns / answer.expected_ns if answer.expected_ns else None,
        row.expected_ns / row.time_ns if row.time_ns else None,
        Estimate(row.low_ns, row.expected_ns, row.high_ns),
        f"{row.name} {shape_label(row.new_shapes)}",
    )
