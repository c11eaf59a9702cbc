"""The memory curve: as text, and as SVG."""

from __future__ import annotations

import numpy as np

from warpline.analyses.memory import DeviceMemory, MemoryCurve
from warpline.reports.svg import document, label, stroke
from warpline.trace.arrays import Int64s
from warpline.units import duration, size

COLUMNS, LINES = 66, 10
WIDTH, HEIGHT = 960, 420
LEFT, RIGHT, TOP, BOTTOM = 90, 24, 56, 48
MOST_STEPS = 200
"""Steps that are marked."""
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


def _largest(curve: MemoryCurve, columns: int) -> Int64s:
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
    """The curve as SVG text: allocated as an area, reserved as a line, a dashed line at the start of each step."""
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
    scale = [top * part / 4 for part in range(5)]
    body = [
        *(stroke(LEFT, y(value), WIDTH - RIGHT, y(value)) for value in scale),
        *(label(LEFT - 8, y(value) + 4, size(value), "", "end") for value in scale),
        *(stroke(x(time), TOP, x(time), floor, "mark") for time in marks[:MOST_STEPS]),
        f'<path class="area" d="{steps_of(curve.allocated_bytes)}V{floor:.1f}H{LEFT}Z"/>',
    ]
    legend = "area: allocated"
    if curve.reserved_bytes is not None:
        body.append(f'<path class="curve" d="{steps_of(curve.reserved_bytes)}"/>')
        legend += "; line: reserved"
    if marks:
        legend += "; dashed: start of a step"
    head = f"{title}: {memory.device}, peak {size(memory.peak.allocated_bytes)}"
    body += [
        label(LEFT, HEIGHT - 16, "0"),
        label(WIDTH - RIGHT, HEIGHT - 16, duration(span), "", "end"),
        label(WIDTH / 2, HEIGHT - 16, legend, "", "middle"),
        label(LEFT, 30, head, "title"),
    ]
    return document(WIDTH, HEIGHT, head, f"Memory over {duration(span)}; {legend}.", body)
