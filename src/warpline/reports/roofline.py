"""The roofline as sections and as JSON, and the figures of a chip."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from warpline.analyses.roofline.entry import FINE, IMPOSSIBLE, RooflineEntry, RooflineTable, ceilings_of
from warpline.hardware import Roof
from warpline.reports.roofline_plot import character_plot, marked, shape_label
from warpline.reports.sections import (
    Column,
    Command,
    Content,
    Figure,
    Note,
    Notes,
    Report,
    Section,
    Table,
    Text,
    Value,
    next_section,
)
from warpline.units import duration, share, size

LISTED_NOTES = 5
MIN_OVERLAP = 0.05
"""A smaller share of the time in which operations overlap changes no row that a reader would look at."""
_COLUMNS = (
    Column("mark", "#", priority=0),
    Column("time_ns", "time", "ns"),
    Column("share", "share", "share"),
    Column("count", "calls", "count", priority=5),
    Column("tflops_per_second", "TFLOP/s", "number", priority=3),
    Column("tbytes_per_second", "TB/s", "number", priority=3),
    Column("intensity", "FLOP/B", "number", priority=3),
    Column("ceiling_tflops_per_second", "ceiling", "number", priority=6),
    Column("roof", "% roof", "number"),
    Column("bound", "bound"),
    Column("headroom_ns", "headroom", "ns", priority=4),
)


def report(table: RooflineTable, title: str, path: str, top: int = 20) -> Report:
    """The table, its impossible and unknown rows, and the plot."""
    head: tuple[Content, ...] = (*_ceilings(table), _coverage(table), *_overlap(table))
    sections = [Section("ceilings", "Ceilings", head, is_lead=True)]
    sections.append(Section("entries", "Ops" if table.by == "op" else "Kernels", tuple(_rows(table, top))))
    notes = [entry for entry in table.entries if entry.note and entry.state != FINE]
    if notes:
        listed = Notes(tuple(map(_note, notes[:LISTED_NOTES])))
        sections.append(Section("impossible", "Faster than the roofline", (listed,)))
    if table.unmodelled:
        sections.append(Section("unmodelled", "Without a model", (_unmodelled(table),)))
    if table.roof is not None:
        caption = "TFLOP/s by FLOP per byte; marks are those of the rows above"
        sections.append(Section("plot", "Roofline", (Figure(character_plot(table), caption),)))
    sections.append(next_section(_next(table, path)))
    return Report(title, tuple(sections))


def to_dict(table: RooflineTable, path: str) -> dict[str, Any]:
    """The document of schema `warpline.roofline/1`, with the name of the file."""
    answer = table.to_dict()
    return {**answer, "trace": {"path": path, **answer["trace"]}}


def _ceilings(table: RooflineTable) -> Iterator[Text]:
    if table.roof is None:
        yield Text(f"No peaks are known for {table.device}: rates only. Name a chip with --device.", "strong")
        return
    ceilings = ceilings_of(table.roof)
    used = {entry.math for entry in table.entries if entry.math}
    shown = [name for name in ceilings if name in used or name == "dram"]
    words = []
    for name in shown:
        figure = ceilings[name]
        rate = f"{figure.value / 1e12:,.4g} {'TB/s' if name == 'dram' else 'TFLOP/s'}"
        words.append(f"{name} {rate}{'' if figure.measured else f' ({figure.origin})'}")
    yield Text("Ceilings: " + ", ".join(words))
    yield from (Text(source, "quiet") for source in sorted({ceilings[name].source for name in shown}))


def _coverage(table: RooflineTable) -> Text:
    line = f"FLOPs and bytes are known for {table.modelled_pct:.1f} % of GPU time"
    if table.estimated_ns:
        line += f" (for {share(table.estimated_ns, table.total_ns)} they are estimated: ~)"
    if table.roof is not None and table.bounded_ns:
        rest = " without collectives and the like" if table.bounded_ns < table.modelled_ns else ""
        times = f"{duration(table.floor_ns)} instead of {duration(table.bounded_ns)}"
        line += f"; at the roofline of each op's own precision it would take {times}{rest}"
    return Text(line)


def _overlap(table: RooflineTable) -> Iterator[Text]:
    """What operations of several streams at once mean for the rows."""
    if table.total_ns - table.busy_ns >= MIN_OVERLAP * table.total_ns:
        times = f"{duration(table.total_ns)} of operations within {duration(table.busy_ns)} of busy GPU"
        shared = "operations that run together share the chip, so that each is nearer to the roofline than its row says"
        yield Text(f"Streams overlap: {times}; {shared}.")


def _rows(table: RooflineTable, top: int) -> Iterator[Content]:
    marks = {id(entry): mark for mark, entry in marked(table)}
    key = Column("name", "op" if table.by == "op" else "kernel", key=True)
    rows = tuple(_row(entry, table, marks.get(id(entry), "")) for entry in table.entries[:top])
    hidden, note = len(table.entries) - len(rows), ""
    if hidden:
        rest = sum(entry.time_ns for entry in table.entries[top:])
        note = f"{hidden:,} more, {share(rest, table.total_ns)} of GPU time: --top {len(table.entries)}"
    yield Table((*_COLUMNS, key), rows, hidden, note)
    unit = "per step" if table.steps else "in total"
    yield Text(
        f"#: its mark in the plot; ceiling: TFLOP/s at this intensity; headroom {unit}; ~ estimated FLOPs and bytes",
        "quiet",
    )


def _row(entry: RooflineEntry, table: RooflineTable, mark: str) -> tuple[Value, ...]:
    headroom = entry.headroom_per_step_ns(table.steps)
    return (
        mark,
        entry.time_ns,
        entry.time_ns / table.total_ns if table.total_ns else None,
        entry.count,
        _rate(entry.flops_per_second),
        _rate(entry.bytes_per_second),
        f"{entry.intensity:,.4g}" if entry.intensity else None,
        _rate(entry.ceiling_flops_per_second),
        _percent(entry),
        entry.bound or "?",
        headroom if headroom is not None else entry.headroom_ns,
        _label(entry),
    )


def _label(entry: RooflineEntry) -> str:
    return " ".join(filter(None, (entry.name, shape_label(entry.shapes))))


def _rate(value: float | None) -> str | None:
    if not value:
        return None
    tera = value / 1e12
    return f"{tera:,.0f}" if tera >= 100 else f"{tera:.3g}" if tera >= 0.001 else "<0.001"


def _percent(entry: RooflineEntry) -> str | None:
    if entry.roof_pct is None:
        return None
    return f"{'~' if entry.estimate else ''}{entry.roof_pct:.1f}{'!' if entry.state != FINE else ''}"


def _note(entry: RooflineEntry) -> Note:
    return Note("error" if entry.state == IMPOSSIBLE else "warning", entry.state, f"{_label(entry)}: {entry.note}")


def _unmodelled(table: RooflineTable) -> Table:
    columns = (Column("share", "share", "share"), Column("name", "name", key=True), Column("why", "why"))
    whole = table.total_ns
    rows = tuple(
        (item.time_ns / whole if whole else None, item.name, item.why) for item in table.unmodelled[:LISTED_NOTES]
    )
    hidden = len(table.unmodelled) - len(rows)
    return Table(columns, rows, hidden, f"{hidden:,} more: --json lists them" if hidden else "")


def _next(table: RooflineTable, path: str) -> Iterator[Command]:
    quoted, other = shlex.quote(path), "kernel" if table.by == "op" else "op"
    yield Command(f"warpline roofline {quoted} --by {other}", f"one row per {other}")
    yield Command(f"warpline roofline {quoted} --plot roofline.svg", "draw it")
    if table.roof is None or table.roof.ceilings is None:
        yield Command("warpline device measure", "measure the ceilings of this GPU, and use them from then on")


def device_report(roof: Roof) -> Report:
    """One chip: every figure with its source."""
    chip = roof.chip
    columns = (
        Column("what", "what", key=True),
        Column("data_sheet", "data sheet", "number"),
        Column("measured", "measured", "number"),
        Column("source", "source"),
    )
    rows: list[tuple[Value, ...]] = []
    for unit, figures in (("tensor", chip.tensor), ("vector", chip.vector)):
        for dtype, figure in figures.items():
            best = roof.compute(dtype, unit)
            measured = f"{best.value / 1e12:,.4g}" if best and best.measured else None
            rows.append((f"{dtype} {unit} (TFLOP/s)", f"{figure.value / 1e12:,.4g}", measured, figure.source))
    for dtype, figure in chip.reported.items():
        rows.append((f"{dtype} tensor (TFLOP/s)", None, f"{figure.value / 1e12:,.4g}", figure.source))
    for link, figure in chip.bandwidth.items():
        best = roof.bandwidth("h2d" if link == "pcie" else link)
        measured = f"{best.value / 1e9:,.4g}" if best and best.measured else None
        rows.append((f"{link} (GB/s)", f"{figure.value / 1e9:,.4g}", measured, figure.source))
    content: list[Content] = [Table(columns, tuple(rows))]
    if roof.ceilings is not None:
        content.append(Text(f"measured: {roof.ceilings.origin}, {roof.ceilings.date}; {roof.ceilings.path}", "quiet"))
    title = (
        f"{chip.name} · compute {chip.compute[0]}.{chip.compute[1]} · {chip.sm_count} SMs · L2 {size(chip.l2_bytes)}"
    )
    return Report(title, (Section("figures", "Figures", tuple(content), is_lead=True),))
