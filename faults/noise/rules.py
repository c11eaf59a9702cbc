"""Three rules that say whether B is slower than A, and a picture of how often they do.

`warpline gate`'s; the median step of one run against one at 5 %, as nsys-ai's `diff` judges (STEP_TIME_REGRESSION_PCT =
5.0); and `current / baseline < 0.95`, a rule often written for metrics in which more is better, applied to a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from warpline.compare.spread import Side

RULES = ("warpline", "one against one, 5 %", "ratio < 0.95")
COLOURS = dict(zip(RULES, ("#1769aa", "#c62828", "#8a6d00"), strict=True))
Found = dict[tuple[str, int], tuple[float, float]]
"""By rule and number of runs: the share of identical pairs and of slower ones that is called slower."""


def says_slower(rule: str, a: Side, b: Side, verdict: Callable[[], str]) -> bool:
    """Whether the rule calls B slower; `verdict` asks warpline."""
    if rule == RULES[0]:
        return verdict() == "slower"
    ratio = float(np.median(b[0].lengths_ns) / np.median(a[0].lengths_ns))
    return ratio > 1.05 if rule == RULES[1] else ratio < 0.95


def drawing(panels: dict[str, Found], runs: Sequence[int], how: str) -> str:
    """False alarms and finds by the number of runs, a row of two charts for each group of programs."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 820 {60 + 240 * len(panels)}" role="img">',
        "<style>text{font:12px sans-serif;fill:#444}@media (prefers-color-scheme:dark){text{fill:#ccc}}</style>",
    ]
    for place, rule in enumerate(RULES):
        parts.append(f'<circle cx="{60 + 200 * place}" cy="20" r="5" fill="{COLOURS[rule]}"/>')
        name = rule.replace("<", "&lt;")
        parts.append(f'<text x="{72 + 200 * place}" y="24">{name}</text>')
    gap = 320 / len(runs)
    for row, (group, shares) in enumerate(panels.items()):
        for column, title in enumerate(("called slower: identical runs", "called slower: B is slower")):
            left, top = 60 + 400 * column, 80 + 240 * row
            parts.append(f'<text x="{left}" y="{top - 16}">{group}: {title} ({how})</text>')
            parts.append(f'<path d="M{left},{top}v150h320" fill="none" stroke="#888"/>')
            for tick in (0, 50, 100):
                parts.append(f'<text x="{left - 6}" y="{top + 154 - 1.5 * tick}" text-anchor="end">{tick} %</text>')
            places = [left + gap / 2 + gap * place for place in range(len(runs))]
            for rule in RULES:
                points = [
                    (x, top + 150 - 150 * shares[rule, count][column]) for x, count in zip(places, runs, strict=True)
                ]
                line = " ".join(f"{x:.0f},{y:.1f}" for x, y in points)
                parts.append(f'<polyline points="{line}" fill="none" stroke="{COLOURS[rule]}" stroke-width="2"/>')
                parts += [f'<circle cx="{x:.0f}" cy="{y:.1f}" r="4" fill="{COLOURS[rule]}"/>' for x, y in points]
            for x, count in zip(places, runs, strict=True):
                parts.append(f'<text x="{x:.0f}" y="{top + 168}" text-anchor="middle">{count}</text>')
            parts.append(f'<text x="{left + 160}" y="{top + 186}" text-anchor="middle">runs on each side</text>')
    return "\n".join([*parts, "</svg>", ""])
