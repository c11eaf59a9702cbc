"""The history as SVG: a point for each run, a line for each level, and a mark where the level changed."""

from __future__ import annotations

from html import escape

from warpline.compare.history import NumberHistory
from warpline.compare.words import percent
from warpline.sanitise import sanitise

WIDTH, HEIGHT = 840, 300
LEFT, RIGHT, TOP, BOTTOM = 76, 20, 44, 40
COLOURS = {"passed": "#2e7d32", "regression": "#c62828", "inconclusive": "#8a6d00"}
# Texts and axes take the page's colour, so that the picture reads well on a light and on a dark page.
STYLE = (
    "text{font:12px sans-serif;fill:#444}.axis{stroke:#888;stroke-width:1}.level{stroke:#1769aa;stroke-width:2}"
    ".change{stroke:#c62828;stroke-width:1;stroke-dasharray:4 3}"
    "@media (prefers-color-scheme:dark){text{fill:#ccc}.level{stroke:#6db3f2}}"
)


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
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>{_safe(title)}</title><style>{STYLE}</style>",
        f'<text x="{LEFT}" y="18" font-weight="bold">{_safe(title)}</text>',
        f'<path class="axis" fill="none" d="M{LEFT},{TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>',
    ]
    for place in range(5):
        value = low + (high - low) * place / 4
        parts.append(f'<text x="{LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.4g}</text>')
    for level, before in zip(history.levels, (None, *history.levels), strict=False):
        ends = x(level.start - 0.4), x(level.stop - 0.6)
        parts.append(f'<line class="level" x1="{ends[0]:.1f}" x2="{ends[1]:.1f}" {_at(y(level.median))}/>')
        if before is None:
            continue
        border = x(level.start - 0.5)
        change = percent(level.median / before.median) if before.median else f"{level.median:.4g}"
        parts.append(f'<line class="change" x1="{border:.1f}" x2="{border:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        label = f"{change} {history.runs[level.start].label}".strip()
        parts.append(f'<text x="{border + 4:.1f}" y="{TOP - 8}">{_safe(label)}</text>')
    for place, run in enumerate(history.runs):
        told = f"{run.at[:19]} {run.label} {run.outcome}: {values[place]:.6g}"
        parts.append(
            f'<circle cx="{x(place):.1f}" cy="{y(values[place]):.1f}" r="3.5" '
            f'fill="{COLOURS.get(run.outcome, "#777777")}"><title>{_safe(told)}</title></circle>'
        )
    for place, anchor in ((0, "start"), (len(values) - 1, "end")):
        if values:
            day = _safe(history.runs[place].at[:10])
            parts.append(f'<text x="{x(place):.1f}" y="{HEIGHT - 14}" text-anchor="{anchor}">{day}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _at(height: float) -> str:
    return f'y1="{height:.1f}" y2="{height:.1f}"'


def _safe(text: str) -> str:
    return escape(sanitise(text))
