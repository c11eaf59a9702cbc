"""The history as SVG: a point for each run, a line for each level, and a mark where the level changed."""

from __future__ import annotations

from warpline.compare.history import NumberHistory
from warpline.compare.words import percent
from warpline.reports.svg import document, label, stroke, xml

WIDTH, HEIGHT = 840, 300
LEFT, RIGHT, TOP, BOTTOM = 76, 20, 44, 40
COLOURS = {
    "passed": "#2e7d32",
    "regression": "#c62828",
    "budget_exceeded": "#c62828",
    "inconclusive": "#8a6d00",
    "not_comparable": "#8a6d00",
}


def history_svg(history: NumberHistory) -> str:
    """The picture."""
    values = history.values
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    margin = (high - low) * 0.1 or abs(high) * 0.1 or 1.0
    low, high = low - margin, high + margin

    def x(place: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (place + 0.5) / max(len(values), 1)

    def y(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - value) / (high - low)

    title = f"{history.name}: {history.number} over {len(values)} runs"
    parts = [
        label(LEFT, 24, title, "title"),
        f'<path class="rule" fill="none" d="M{LEFT},{TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>',
    ]
    for place in range(5):
        value = low + (high - low) * place / 4
        parts.append(label(LEFT - 8, y(value) + 4, f"{value:.4g}", "", "end"))
    for level, before in zip(history.levels, (None, *history.levels), strict=False):
        parts.append(stroke(x(level.start - 0.4), y(level.median), x(level.stop - 0.6), y(level.median), "level"))
        if before is None:
            continue
        border = x(level.start - 0.5)
        change = percent(level.median / before.median) if before.median else f"{level.median:.4g}"
        parts.append(stroke(border, TOP, border, HEIGHT - BOTTOM, "mark"))
        parts.append(label(border + 4, TOP - 6, f"{change} {history.runs[level.start].label}".strip()))
    for place, run in enumerate(history.runs):
        words = f"{run.at[:19]} {run.label} {run.outcome}: {values[place]:.6g}"
        parts.append(
            f'<circle cx="{x(place):.1f}" cy="{y(values[place]):.1f}" r="3.5" '
            f'fill="{COLOURS.get(run.outcome, "#777777")}"><title>{xml(words)}</title></circle>'
        )
    for place, anchor in ((0, "start"), (len(values) - 1, "end")):
        if values:
            parts.append(label(x(place), HEIGHT - 14, history.runs[place].at[:10], "", anchor))
    return document(WIDTH, HEIGHT, title, "A point for each run, a line for each level.", parts)
