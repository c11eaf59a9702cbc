"""A ladder as SVG: a bar for each rung, with the spread of its steps and what was predicted for it."""

from __future__ import annotations

from warpline.compare.ladder import Ladder, Rung
from warpline.reports.svg import document, fitted, label, legend, stroke
from warpline.units import duration, share

WIDTH, ROW, TOP = 840, 30, 52
LEFT, RIGHT = 220, 150
BAR, PREDICTED = "#6695d0", "#b4372a"


def ladder_svg(ladder: Ladder) -> str:
    """The picture."""
    ends = [rung.predicted_ns.high if rung.predicted_ns is not None else 0 for rung in ladder.rungs]
    first = ladder.rungs[0].step_ns
    # A prediction whose range says "measure it" must not squeeze the bars.
    longest = max(*(rung.high_ns for rung in ladder.rungs), min(max(ends), 1.5 * first), 1)
    scale = (WIDTH - LEFT - RIGHT) / longest
    height = TOP + ROW * len(ladder.rungs) + 40
    parts = [label(16, 26, f"Ladder on {ladder.device}", "title")]
    for place, rung in enumerate(ladder.rungs):
        parts += _bar(rung, TOP + ROW * place, scale, longest)
    entries = [("a step", BAR), ("predicted from the rung before", PREDICTED)]
    parts += legend(LEFT, height - 16, WIDTH - LEFT, entries)[0]
    return document(WIDTH, height, "Ladder", "A bar for each rung; its line spans the middle half of the steps.", parts)


def _bar(rung: Rung, y: float, scale: float, longest: float) -> list[str]:
    middle = y + 9
    parts = [
        label(LEFT - 10, middle + 4, fitted(rung.name, LEFT - 20), "", "end"),
        f'<rect x="{LEFT}" y="{y:g}" width="{max(rung.step_ns * scale, 1):.1f}" height="18" rx="2" fill="{BAR}"/>',
        stroke(LEFT + rung.low_ns * scale, middle, LEFT + rung.high_ns * scale, middle, "rule"),
        label(WIDTH - RIGHT + 10, middle + 4, f"{duration(rung.step_ns)}  {share(rung.share, 1)}"),
    ]
    promised = rung.predicted_ns
    if promised is not None:
        low, high = (LEFT + min(end, longest) * scale for end in (promised.low, promised.high))
        at = LEFT + min(promised.expected, longest) * scale
        parts += [stroke(low, y + 22, high, y + 22, "roof"), stroke(at, y - 2, at, y + 24, "roof")]
    return parts
