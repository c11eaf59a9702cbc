"""The roofline as a terminal report and as JSON."""

from __future__ import annotations

import shlex
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from warpline.analyses.roofline import FINE, IMPOSSIBLE, Entry, RooflineTable
from warpline.analyses.roofline_json import ceilings_dict, step_headroom_ns
from warpline.hardware import Roof
from warpline.reports.roofline_plot import marked, shape_label, terminal_plot
from warpline.reports.tabular import shorten
from warpline.units import duration, share, size

BOUND_COLOURS = {"compute": "green", "memory": "cyan", "link": "yellow", "latency": "magenta", "": "bright_black"}
NARROWEST_NAME = 20
LISTED_UNMODELLED = 5
_COLUMNS = {
    "": (0, 3),
    "time": (0, 9),
    "share": (0, 8),
    "calls": (120, 8),
    "TFLOP/s": (0, 9),
    "TB/s": (0, 9),
    "FLOP/B": (130, 8),
    "ceiling": (130, 9),
    "% roof": (0, 9),
    "bound": (0, 9),
    "headroom": (0, 10),
}
"""Each column, the width of the terminal from which on it is shown, and the room it takes."""


def render(table: RooflineTable, path: str, top: int = 20, width: int = 140) -> RenderableType:
    """The report, no wider than `width`."""
    parts: list[RenderableType] = [_head(table, path), *_ceilings(table), *_coverage(table)]
    parts.append(_rows(table, top, width))
    if len(table.entries) > top:
        rest = sum(entry.time_ns for entry in table.entries[top:])
        line = f"and {len(table.entries) - top} more, {share(rest, table.total_ns)} of GPU time"
        parts.append(Text(line, "bright_black"))
    notes = [entry for entry in table.entries if entry.note and entry.state != FINE]
    if notes:
        parts += [_title("Faster than the roof"), *(_note(entry, width) for entry in notes[:LISTED_UNMODELLED])]
    if table.unmodelled:
        parts += [_title("Without a model"), _unmodelled(table, width)]
    if table.roof is not None:
        parts += [_title("Roofline"), terminal_plot(table, min(width, 100))]
    parts += [_title("Next"), _next(table, path)]
    return Group(*parts)


def to_dict(table: RooflineTable, path: str) -> dict[str, Any]:
    """The document of schema `warpline.roofline/1`, with the name of the file."""
    answer = table.to_dict()
    return {**answer, "trace": {"path": path, **answer["trace"]}}


def _title(text: str) -> Text:
    return Text(f"\n{text}", style="bold")


def _head(table: RooflineTable, path: str) -> Text:
    steps = f"{table.steps} steps" if table.steps else "no steps"
    return Text(f"{path} · {table.device} · {steps} · {duration(table.total_ns)} of GPU time", style="bold blue")


def _ceilings(table: RooflineTable) -> list[Text]:
    if table.roof is None:
        return [Text(f"No peaks are known for {table.device}: rates only. Name a chip with --device.", "yellow")]
    ceilings = ceilings_dict(table.roof)
    used = {entry.math for entry in table.entries if entry.math}
    shown = [name for name in ceilings if name in used or name == "dram"]
    words = []
    for name in shown:
        figure = ceilings[name]
        rate = f"{figure['value'] / 1e12:.4g} {'TB/s' if name == 'dram' else 'TFLOP/s'}"
        words.append(f"{name} {rate}{'' if figure['measured'] else ' (data sheet)'}")
    sources = sorted({ceilings[name]["source"] for name in shown})
    return [Text("Ceilings: " + ", ".join(words)), *(Text(f"  {source}", "bright_black") for source in sources)]


def _coverage(table: RooflineTable) -> list[Text]:
    line = f"Work is known for {table.modelled_pct:.1f} % of GPU time"
    if table.estimated_ns:
        line += f", {share(table.estimated_ns, table.total_ns)} of it estimated (~)"
    if table.roof is not None:
        line += f"; at the roof it would take {duration(table.floor_ns)} instead of {duration(table.modelled_ns)}"
    return [Text(line)]


def _rows(table: RooflineTable, top: int, width: int) -> Table:
    view = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    marks = {id(entry): mark for mark, entry in marked(table)}
    titles = [title for title, (least, _) in _COLUMNS.items() if width >= least]
    for title in titles:
        view.add_column(title, justify="left" if title == "bound" else "right", no_wrap=True)
    view.add_column("op" if table.by == "op" else "kernel", no_wrap=True)
    room = max(NARROWEST_NAME, width - 2 - sum(_COLUMNS[title][1] for title in titles))
    for entry in table.entries[:top]:
        headroom = step_headroom_ns(entry, table)
        headroom = headroom if headroom is not None else entry.headroom_ns
        label = " ".join(filter(None, (entry.name, shape_label(entry.shapes))))
        cells: dict[str, str | Text] = {
            "": Text(marks.get(id(entry), ""), "bold"),
            "time": duration(entry.time_ns),
            "share": share(entry.time_ns, table.total_ns),
            "calls": f"{entry.count:,}",
            "TFLOP/s": _rate(entry.flops_per_second),
            "TB/s": _rate(entry.bytes_per_second),
            "FLOP/B": _plain(entry.intensity),
            "ceiling": _rate(entry.ceiling_flops_per_second),
            "% roof": _percent(entry),
            "bound": Text(entry.bound or "?", BOUND_COLOURS[entry.bound]),
            "headroom": duration(headroom) if headroom is not None else "–",
        }
        view.add_row(*(cells[title] for title in titles), Text(shorten(label, room)))
    unit = "per step" if table.steps else "in all"
    ceiling = "ceiling: TFLOP/s that the roof allows at this intensity; " if "ceiling" in titles else ""
    view.caption = f"{ceiling}headroom {unit}; ~ estimated work"
    view.caption_justify = "left"
    return view


def _rate(value: float | None) -> str:
    if not value:
        return "–"
    tera = value / 1e12
    return f"{tera:,.0f}" if tera >= 100 else f"{tera:.3g}" if tera >= 0.001 else "<0.001"


def _plain(value: float | None) -> str:
    return f"{value:,.4g}" if value else "–"


def _percent(entry: Entry) -> Text:
    if entry.roof_pct is None:
        return Text("–")
    style = "red" if entry.state == IMPOSSIBLE else "" if entry.state == FINE else "yellow"
    return Text(f"{'~' if entry.estimate else ''}{entry.roof_pct:.1f}{'!' if entry.state != FINE else ''}", style)


def _note(entry: Entry, width: int) -> Text:
    label = shorten(" ".join(filter(None, (entry.name, shape_label(entry.shapes)))), max(NARROWEST_NAME, width // 2))
    colour = "red" if entry.state == IMPOSSIBLE else "yellow"
    return Text.assemble((f" {entry.state}", colour), f"  {label}: {entry.note}")


def _unmodelled(table: RooflineTable, width: int) -> Table:
    view = Table.grid(padding=(0, 2))
    for item in table.unmodelled[:LISTED_UNMODELLED]:
        name = shorten(item.name, max(NARROWEST_NAME, width // 2))
        view.add_row(f" {share(item.time_ns, table.total_ns)}", Text(name), item.why)
    return view


def _next(table: RooflineTable, path: str) -> Text:
    quoted = shlex.quote(path)
    lines = [f" warpline roofline {quoted} --by {'kernel' if table.by == 'op' else 'op'}"]
    lines.append(f" warpline roofline {quoted} --plot roofline.svg")
    if table.roof is None or table.roof.ceilings is None:
        lines.append(" warpline device measure     measure the ceilings of the GPU at hand, and use them from then on")
    return Text("\n".join(lines))


def device_text(roof: Roof) -> Group:
    """One chip: every figure with its source."""
    chip = roof.chip
    head = f"{chip.name} · compute {chip.compute[0]}.{chip.compute[1]} · {chip.sm_count} SMs · L2 {size(chip.l2_bytes)}"
    view = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for title in ("what", "data sheet", "measured", "source of the data sheet's"):
        view.add_column(title, justify="right" if title in {"data sheet", "measured"} else "left")
    for unit, figures in (("tensor", chip.tensor), ("vector", chip.vector)):
        for dtype, figure in figures.items():
            best = roof.compute(dtype, unit)
            measured = f"{best.value / 1e12:,.4g}" if best and best.measured else "–"
            view.add_row(f"{dtype} {unit} (TFLOP/s)", f"{figure.value / 1e12:,.4g}", measured, figure.source)
    for link, figure in chip.bandwidth.items():
        best = roof.bandwidth("h2d" if link == "pcie" else link)
        measured = f"{best.value / 1e9:,.4g}" if best and best.measured else "–"
        view.add_row(f"{link} (GB/s)", f"{figure.value / 1e9:,.4g}", measured, figure.source)
    parts: list[RenderableType] = [Text(head, "bold blue"), view]
    if roof.ceilings is not None:
        parts.append(Text(f"measured: {roof.ceilings.origin}, {roof.ceilings.date}; {roof.ceilings.path}"))
    return Group(*parts)
