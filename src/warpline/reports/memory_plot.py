"""The memory curve: as text, and as SVG that follows the reader's light or dark theme."""

from __future__ import annotations

from html import escape

import numpy as np

from warpline.analyses.memory import Curve, DeviceMemory
from warpline.sanitise import sanitise
from warpline.trace.columns import Int64s
from warpline.units import duration, size

COLUMNS, LINES = 66, 10
WIDTH, HEIGHT = 960, 420
LEFT, RIGHT, TOP, BOTTOM = 90, 24, 56, 48
STYLE = """<style>
svg{background:#fff;color:#222;font:12px sans-serif}
text{fill:currentColor}.grid{stroke:currentColor;stroke-opacity:.15}
.step{stroke:currentColor;stroke-opacity:.3;stroke-dasharray:2 4}
.allocated{fill:#1769aa;fill-opacity:.35;stroke:#1769aa}.reserved{fill:none;stroke:#c0392b;stroke-width:1.5}
@media (prefers-color-scheme: dark){svg{background:#16181c;color:#ddd}
.allocated{fill:#5aa9e6;stroke:#5aa9e6}.reserved{stroke:#ff8a75}}
</style>"""
_EIGHTHS = " ▁▂▃▄▅▆▇█"


def character_plot(memory: DeviceMemory, columns: int = COLUMNS, lines: int = LINES) -> str:
    """Allocated memory over time as bars of characters, below a scale in bytes."""
    curve = memory.curve
    heights = _largest(curve, columns)
    top = max(int(heights.max()), 1)
    eighths = np.rint(heights / top * lines * 8).astype(int)
    rows = []
    for line in range(lines - 1, -1, -1):
        label = size(top * (line + 1) / lines) if line in {lines - 1, lines // 2 - 1} else ""
        cells = "".join(_EIGHTHS[min(max(value - 8 * line, 0), 8)] for value in eighths)
        rows.append(f"{label:>9} {cells}".rstrip())
    span = int(curve.time_ns[-1] - curve.time_ns[0])
    rows.append(" " * 10 + "0" + duration(span).rjust(columns - 1))
    return "\n".join(rows)


def _largest(curve: Curve, columns: int) -> Int64s:
    """The largest value in each of so many equal parts of the time; a part without events has the value before it."""
    first, last = int(curve.time_ns[0]), int(curve.time_ns[-1])
    place = (curve.time_ns - first) * columns // max(last - first + 1, 1)
    heights = np.full(columns, -1, np.int64)
    np.maximum.at(heights, place, curve.allocated_bytes)
    at_end = np.full(columns, -1, np.int64)
    at_end[place] = curve.allocated_bytes
    known = np.maximum.accumulate(np.where(at_end >= 0, np.arange(columns), 0))
    return np.where(heights >= 0, heights, at_end[known])


def svg(memory: DeviceMemory, title: str) -> str:
    """The curve as SVG text: allocated as an area, reserved as a line, a dashed line at the begin of each step."""
    curve = memory.curve
    top = max(
        int(curve.allocated_bytes.max()), int(curve.reserved_bytes.max()) if curve.reserved_bytes is not None else 0, 1
    )
    first, span = int(curve.time_ns[0]), max(int(curve.time_ns[-1] - curve.time_ns[0]), 1)

    def x(time_ns: int) -> float:
        return LEFT + (time_ns - first) / span * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM)

    def steps_of(values: Int64s) -> str:
        """A line that keeps each value until the next."""
        parts = [f"M{x(first):.1f} {y(int(values[0])):.1f}"]
        parts += [
            f"H{x(time):.1f}V{y(value):.1f}"
            for time, value in zip(curve.time_ns.tolist(), values.tolist(), strict=True)
        ]
        return "".join(parts)

    floor = y(0)
    marks = [time for time in memory.steps_ns if first <= time <= first + span]
    body = [
        *(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}"/>'
            f'<text x="{LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{size(value)}</text>'
            for value in (top * part / 4 for part in range(5))
        ),
        *(
            f'<line class="step" x1="{x(time):.1f}" x2="{x(time):.1f}" y1="{TOP}" y2="{floor:.1f}"/>'
            for time in marks[:200]
        ),
        f'<path class="allocated" d="{steps_of(curve.allocated_bytes)}V{floor:.1f}H{LEFT}Z"/>',
    ]
    legend = "area: allocated"
    if curve.reserved_bytes is not None:
        body.append(f'<path class="reserved" d="{steps_of(curve.reserved_bytes)}"/>')
        legend += "; line: reserved"
    if marks:
        legend += "; dashed: begin of a step"
    peak = f"peak {size(memory.peak.allocated_bytes)}"
    body += [
        f'<text x="{LEFT}" y="{HEIGHT - 16}">0</text>',
        f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 16}" text-anchor="end">{duration(span)}</text>',
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 16}" text-anchor="middle">{escape(legend)}</text>',
    ]
    head = escape(sanitise(f"{title}: {memory.device}, {peak}"))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">',
            STYLE,
            f'<text x="{LEFT}" y="30" font-size="16" font-weight="bold">{head}</text>',
            *body,
            "</svg>\n",
        ]
    )
