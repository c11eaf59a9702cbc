"""The waterfall of a comparison: from the step of A to that of B, one bar for each part of the difference."""

from __future__ import annotations

from warpline.compare.comparison import Comparison
from warpline.compare.parts import Part
from warpline.units import duration

BARS, LABEL = 32, 32
SHOWN = 8
SHORTEST = 0.005
"""Parts that change by a smaller share of the longer step are summed up in one bar."""
WHOLE, LONGER, SHORTER = "█", "▓", "░"


def waterfall(comparison: Comparison) -> str:
    """The drawing, in monospaced characters."""
    a_ns, b_ns = comparison.a.step_ns, comparison.b.step_ns
    least = SHORTEST * max(a_ns, b_ns)
    large = [part for part in comparison.parts if abs(part.change_ns) >= least][:SHOWN]
    changes = [(_label(part), part.change_ns) for part in large]
    rest = comparison.change_ns - sum(change for _, change in changes)
    if rest:
        changes.append(("everything else", rest))
    totals = [a_ns]
    for _, change in changes:
        totals.append(totals[-1] + change)
    scale = BARS / max(*totals, 1)
    lines = [_line("A", 0, a_ns, WHOLE, duration(a_ns), scale)]
    for (label, change), before in zip(changes, totals, strict=False):
        mark, sign = (LONGER, "+") if change > 0 else (SHORTER, "−")
        low, high = sorted((before, before + change))
        lines.append(_line(label, low, high, mark, f"{sign}{duration(abs(change))}", scale))
    lines.append(_line("B", 0, b_ns, WHOLE, duration(b_ns), scale))
    return "\n".join(lines)


def _line(label: str, low: float, high: float, mark: str, text: str, scale: float) -> str:
    first, last = round(max(low, 0) * scale), round(max(high, 0) * scale)
    bar = " " * first + mark * max(last - first, 1)
    short = label if len(label) <= LABEL else f"{label[: LABEL - 1]}…"
    return f"{short:<{LABEL}} {bar:<{BARS + 1}} {text:>10}"


def _label(part: Part) -> str:
    if part.kind == "idle":
        return f"idle: {part.name.replace('_', ' ')}"
    counts = f"{part.a_count} → {part.b_count}: " if part.a_count != part.b_count else ""
    return f"{counts}{part.name}"
