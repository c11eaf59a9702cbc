"""The roofline plot: as SVG, and as text. Both axes are logarithmic."""

from __future__ import annotations

import math
from typing import Any

from msgspec import Struct

from warpline.analyses.roofline.entry import RooflineEntry, RooflineTable
from warpline.hardware import CitedFigure, Roof
from warpline.reports.svg import document, label, stroke, xml
from warpline.reports.text import cut
from warpline.work.parse import json_list

WIDTH, HEIGHT = 960, 600
LEFT, RIGHT, TOP, BOTTOM = 80, 270, 56, 64
DEEPEST_LIST = 8
"""Lists within lists that a label shows: shapes of tensors have two levels."""
LABELLED = 12
LONGEST_NAME = 34
HUNDREDS = 100.0
"""From this number on, three digits show no fraction."""
LEAST_SHARE = 0.001
"""Entries with a smaller share of the GPU time are not drawn."""
COLOURS = {"compute": "#1b7f3b", "memory": "#1769aa", "latency": "#8a3fa0", "": "#777777"}
DESCRIPTION = (
    "Rate over arithmetic intensity of each op or kernel, below the device's ceilings; both axes are logarithmic."
)
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_MARKS = "123456789abcdefghijklmnopqrstuvwxyz"


class Axes(Struct, frozen=True):
    """Limits in powers of ten."""

    x_low: int
    x_high: int
    y_low: int
    y_high: int

    def at(self, intensity: float, rate: float) -> tuple[float, float]:
        """Position from 0 to 1, from the lower left."""
        x = (math.log10(intensity) - self.x_low) / (self.x_high - self.x_low)
        y = (math.log10(rate) - self.y_low) / (self.y_high - self.y_low)
        return x, y


def drawable(table: RooflineTable) -> list[RooflineEntry]:
    """Entries that have both arithmetic and memory traffic and enough time to be seen, longest first."""
    least_ns = LEAST_SHARE * table.total_ns
    return [
        entry
        for entry in table.entries
        if entry.intensity and entry.flops_per_second > 0 and entry.link == "dram" and entry.time_ns >= least_ns
    ]


def marked(table: RooflineTable) -> list[tuple[str, RooflineEntry]]:
    """The longest entries, each with the character that stands for it in the terminal's plot."""
    return list(zip(_MARKS, drawable(table), strict=False))


def shape_label(shapes: str) -> str:
    """Shapes as text: 2048×4096 · 4096×12288. Scalars are omitted, lists are in brackets."""
    found = [_one_shape(item) for item in json_list(shapes) if isinstance(item, list) and item]
    return " · ".join(found) if shapes.startswith("[") else shapes


def _one_shape(shape: Any, depth: int = 0) -> str:
    if not isinstance(shape, list) or depth > DEEPEST_LIST:
        return "…"
    if shape and isinstance(shape[0], list):
        inner = [_one_shape(item, depth + 1) for item in shape[:3]]
        return "[" + ", ".join(inner) + (", …]" if len(shape) > 3 else "]")
    return "×".join(map(str, shape))


def ceilings(table: RooflineTable, roof: Roof) -> list[tuple[str, CitedFigure]]:
    """Horizontal ceilings of the types in use, highest first."""
    names = dict.fromkeys(entry.math for entry in drawable(table) if entry.math)
    found = []
    for name in names:
        dtype, unit = name.split(" ", 1)
        figure = roof.compute(dtype, unit)
        if figure is not None:
            found.append((name, figure))
    return sorted(found, key=lambda item: -item[1].value)


def _roofs(table: RooflineTable, roof: Roof) -> list[tuple[str, float]]:
    return [(name, figure.value) for name, figure in ceilings(table, roof)]


def _axes(entries: list[RooflineEntry], roofs: list[tuple[str, float]], bandwidth: float) -> Axes:
    xs = [entry.intensity or 1.0 for entry in entries] + [value / bandwidth for _, value in roofs]
    ys = [entry.flops_per_second for entry in entries] + [value for _, value in roofs]
    return Axes(
        math.floor(math.log10(min(xs)) - 0.3),
        math.ceil(math.log10(max(xs)) + 0.3),
        math.floor(math.log10(min(ys))),
        math.ceil(math.log10(max(ys)) + 0.05),
    )


def svg(table: RooflineTable, title: str) -> str:
    """The plot as SVG text; only axes and a remark if nothing can be drawn."""
    entries = drawable(table)
    memory = table.roof.bandwidth("dram") if table.roof else None
    if table.roof is None or memory is None or not entries:
        reason = "no peaks are known for this device" if table.roof is None else "no entry has both FLOPs and bytes"
        return _document([label(40, 80, reason)], title)
    roofs = _roofs(table, table.roof)
    axes = _axes(entries, roofs, memory.value)
    parts = _grid(axes)
    parts += _roof_lines(axes, roofs, memory.value)
    largest = max(entry.time_ns for entry in entries)
    numbered: list[tuple[float, float]] = []
    # Draw small circles last, so that large ones do not cover them.
    for rank, entry in enumerate(entries):
        x, y = _pixel(axes, entry.intensity or 1.0, entry.flops_per_second)
        free = all(abs(x - at_x) > 12 or abs(y - at_y) > 10 for at_x, at_y in numbered)
        if rank < LABELLED and free:
            numbered.append((x, y))
        parts.append(_point(axes, entry, largest, rank + 1 if rank < LABELLED and free else None, table.total_ns))
    parts += _legend(entries, table)
    return _document(parts, title)


def _document(parts: list[str], title: str) -> str:
    return document(WIDTH, HEIGHT, f"Roofline: {title}", DESCRIPTION, [label(LEFT, 28, title, "title"), *parts])


def _pixel(axes: Axes, intensity: float, rate: float) -> tuple[float, float]:
    x, y = axes.at(intensity, rate)
    return LEFT + x * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - y * (HEIGHT - TOP - BOTTOM)


def _grid(axes: Axes) -> list[str]:
    parts = []
    for power in range(axes.x_low, axes.x_high + 1):
        x, low = _pixel(axes, 10.0**power, 10.0**axes.y_low)
        _, high = _pixel(axes, 10.0**power, 10.0**axes.y_high)
        parts.append(stroke(x, low, x, high))
        parts.append(label(x, low + 18, _power(power), "", "middle"))
    for power in range(axes.y_low, axes.y_high + 1):
        left, y = _pixel(axes, 10.0**axes.x_low, 10.0**power)
        right, _ = _pixel(axes, 10.0**axes.x_high, 10.0**power)
        parts.append(stroke(left, y, right, y))
        parts.append(label(left - 8, y + 4, _tera(power), "", "end"))
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(label(middle, HEIGHT - 18, "arithmetic intensity (FLOP per byte)", "", "middle"))
    parts.append(label(20, HEIGHT / 2, "TFLOP/s", "", "middle", turn=-90))
    return parts


def _roof_lines(axes: Axes, roofs: list[tuple[str, float]], bandwidth: float) -> list[str]:
    parts = []
    highest = roofs[0][1] if roofs else 10.0**axes.y_high
    start = max(10.0**axes.x_low, 10.0**axes.y_low / bandwidth)
    x1, y1 = _pixel(axes, start, start * bandwidth)
    x2, y2 = _pixel(axes, highest / bandwidth, highest)
    parts.append(stroke(x1, y1, x2, y2, "roof"))
    angle = -math.degrees(math.atan2(y1 - y2, x2 - x1))
    at_x, at_y = x1 + 0.03 * (x2 - x1), y1 + 0.03 * (y2 - y1) - 6
    parts.append(label(at_x, at_y, f"memory {bandwidth / 1e12:.4g} TB/s", "roof", turn=angle))
    for name, value in roofs:
        x1, y = _pixel(axes, value / bandwidth, value)
        x2, _ = _pixel(axes, 10.0**axes.x_high, value)
        parts.append(stroke(x1, y, x2, y, "roof"))
        parts.append(label(x2, y - 5, f"{name} {value / 1e12:,.4g} TFLOP/s", "roof", "end"))
    return parts


def _point(axes: Axes, entry: RooflineEntry, largest: float, rank: int | None, total_ns: float) -> str:
    x, y = _pixel(axes, entry.intensity or 1.0, entry.flops_per_second)
    radius = 3 + 13 * math.sqrt(entry.time_ns / largest)
    colour = COLOURS.get(entry.bound, COLOURS[""])
    roof = f", {entry.roof_pct:.1f} % of the roof" if entry.roof_pct is not None else ""
    share = f"{100 * entry.time_ns / total_ns:.1f} % of GPU time"
    tip = f"{entry.name} {shape_label(entry.shapes)}: {share}{roof}, {entry.bound}-bound"
    number = label(x, y + 4, str(rank), "small bold", "middle") if rank is not None else ""
    return (
        f'<g><title>{xml(tip)}</title><circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{colour}" '
        f'fill-opacity="0.45" stroke="{colour}"/>{number}</g>'
    )


def _legend(entries: list[RooflineEntry], table: RooflineTable) -> list[str]:
    x, y = WIDTH - RIGHT + 16, TOP + 4
    parts = []
    for bound in ("compute", "memory", "latency"):
        parts.append(f'<circle cx="{x + 5}" cy="{y - 4}" r="5" fill="{COLOURS[bound]}" fill-opacity="0.6"/>')
        parts.append(label(x + 16, y, f"{bound}-bound"))
        y += 18
    y += 8
    for rank, entry in enumerate(entries[:LABELLED]):
        name = " ".join(filter(None, (entry.name.removeprefix("aten::"), shape_label(entry.shapes))))
        roof = f", {entry.roof_pct:.0f} % of roof" if entry.roof_pct is not None else ""
        parts.append(label(x, y, str(rank + 1), "bold"))
        parts.append(label(x + 18, y, cut(name, LONGEST_NAME)))
        detail = f"{100 * entry.time_ns / table.total_ns:.1f} % of time{roof}"
        parts.append(label(x + 18, y + 13, detail, "dim"))
        y += 32
    left_out = len(table.entries) - len(entries)
    if left_out:
        remark = f"{left_out} small or without arithmetic not drawn"
        parts.append(label(x, HEIGHT - 18, remark, "dim"))
    return parts


def _power(power: int) -> str:
    return "1" if power == 0 else "10" if power == 1 else f"10{str(power).translate(_SUPERSCRIPTS)}"


def _tera(power: int) -> str:
    """A power of ten FLOP/s in TFLOP/s."""
    return _power(power - 12)


def character_plot(table: RooflineTable, width: int = 76, height: int = 18) -> str:
    """The same as text: the roofline in dots, and a mark for each of the longest entries."""
    entries = drawable(table)
    memory = table.roof.bandwidth("dram") if table.roof else None
    if table.roof is None or memory is None or not entries:
        return f"not drawn: no op with both FLOPs and bytes takes {LEAST_SHARE:.1%} of the time".replace("%", " %")
    roofs = _roofs(table, table.roof)
    axes = _axes(entries, roofs, memory.value)
    columns = max(30, width - 10)
    cells = [[" "] * columns for _ in range(height)]
    highest = roofs[0][1] if roofs else 10.0**axes.y_high
    for column in range(columns):
        intensity = 10 ** (axes.x_low + (axes.x_high - axes.x_low) * (column + 0.5) / columns)
        slope = intensity * memory.value
        for value in [slope] if slope < highest else [value for _, value in roofs]:
            _put(cells, axes, intensity, min(value, slope), "·")
        for _, value in roofs:
            if slope >= value:
                _put(cells, axes, intensity, value, "·")
    for mark, entry in reversed(marked(table)):
        _put(cells, axes, entry.intensity or 1.0, entry.flops_per_second, mark)
    lines = []
    for line, row in enumerate(cells):
        power = axes.y_high - (axes.y_high - axes.y_low) * line / (height - 1)
        rate = 10 ** (power - 12)
        scale = f" {rate:8,.0f} " if rate >= HUNDREDS else f" {rate:8.3g} " if line % 4 == 0 else " " * 10
        lines.append((scale + "".join(row)).rstrip())
    left, right = f"{10.0**axes.x_low:g}", f"{10.0**axes.x_high:,.0f} FLOP/B"
    lines.append(" " * 10 + left + right.rjust(columns - len(left)))
    return "\n".join(lines)


def _put(cells: list[list[str]], axes: Axes, intensity: float, rate: float, mark: str) -> None:
    if intensity <= 0 or rate <= 0:
        return
    x, y = axes.at(intensity, rate)
    column, line = round(x * (len(cells[0]) - 1)), round((1 - y) * (len(cells) - 1))
    if 0 <= column < len(cells[0]) and 0 <= line < len(cells):
        cells[line][column] = mark
