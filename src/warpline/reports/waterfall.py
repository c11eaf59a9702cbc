"""A waterfall in monospaced characters: how a step time becomes another one, change by change."""

from __future__ import annotations

from collections.abc import Sequence

from warpline.reports.text import cut
from warpline.units import duration

BARS, LABEL = 32, 32
WHOLE, LONGER, SHORTER = "█", "▓", "░"


def draw_waterfall(before: tuple[str, float], changes: Sequence[tuple[str, float]], after: str) -> str:
    """A line for the step before (its label and nanoseconds), for each change, and for the step after."""
    totals = [before[1]]
    for _, change in changes:
        totals.append(totals[-1] + change)
    scale = BARS / max(*totals, 1)
    lines = [_line(before[0], 0, before[1], WHOLE, duration(before[1]), scale)]
    for (label, change), start in zip(changes, totals, strict=False):
        mark, sign = (LONGER, "+") if change > 0 else (SHORTER, "−")
        low, high = sorted((start, start + change))
        lines.append(_line(label, low, high, mark, f"{sign}{duration(abs(change))}", scale))
    lines.append(_line(after, 0, totals[-1], WHOLE, duration(totals[-1]), scale))
    return "\n".join(lines)


def _line(label: str, low: float, high: float, mark: str, text: str, scale: float) -> str:
    first, last = round(max(low, 0) * scale), round(max(high, 0) * scale)
    bar = " " * first + mark * max(last - first, 1)
    return f"{cut(label, LABEL):<{LABEL}} {bar:<{BARS + 1}} {text:>10}"
