"""A simulation of false alarms and misses: identical pairs of runs, and pairs with a 3 % slowdown, under three rules.

    python benchmarks/noise.py [--pairs 200] [--svg docs/pictures/noise.svg]

Programs are drawn from the recorded ones (`faults/`): the share of idle time, and how much repeats of the bare step
differed on the H200. Nothing is measured here. The rules: `warpline gate`'s; the median step of one run against one
at 5 %, as nsys-ai's `diff` judges (STEP_TIME_REGRESSION_PCT = 5.0); and `current / baseline < 0.95`, a rule often
written for metrics in which more is better, applied to a time.
"""

from __future__ import annotations

import argparse
import math
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from faults.blind_errors import read_table
from faults.recorded import recorded_cases
from warpline.compare import spread
from warpline.compare.comparison import LEAST_EFFECT
from warpline.compare.spread import RunTime, Side

RUNS = (1, 3, 5, 20)
STEPS = 30
WITHIN, STRAY, LONGER = 0.01, 0.03, 1.3
"""Within a run: spread of the steps, share of stray ones, and how much longer these are. Assumed, not measured."""
SLOWDOWN = 1.03
GPU_PACED = 0.1
RANGE_OF = {2: 1.13, 3: 1.69, 4: 2.06, 5: 2.33, 6: 2.53, 7: 2.70, 8: 2.85, 9: 2.97, 10: 3.08, 12: 3.26}
"""Expected range of so many normal values, in standard deviations."""
RULES = ("warpline", "one against one, 5 %", "ratio < 0.95")
COLOURS = dict(zip(RULES, ("#1769aa", "#c62828", "#8a6d00"), strict=True))


@dataclass(frozen=True)
class Program:
    """How a program's runs differ."""

    step_ns: float
    idle_share: float
    busy_spread: float
    idle_spread: float


def programs() -> list[Program]:
    """The recorded programs whose idle share is known and that were timed at least three times."""
    shares = {(row.suite, row.case): row.idle_share for row in read_table()}
    known = []
    for case in recorded_cases():
        timed = case.entry["bare_step_ns"].get("faulty") or {}
        share = shares.get((case.suite, case.name))
        if share is None or timed.get("repeats", 0) < 3:
            continue
        width = RANGE_OF[max(count for count in RANGE_OF if count <= timed["repeats"])]
        known.append((timed["median_ns"], min(share, 0.99), math.log(timed["max_ns"] / timed["min_ns"]) / width))
    steady = sorted(total for _, share, total in known if share < GPU_PACED)
    busy = steady[len(steady) // 2]
    found = []
    for step_ns, share, total in known:
        if share < GPU_PACED:
            found.append(Program(step_ns, share, total, total))
        else:
            rest = max(total**2 - ((1 - share) * busy) ** 2, 0.0)
            found.append(Program(step_ns, share, busy, math.sqrt(rest) / share))
    return found


def runs_of(program: Program, count: int, factor: float, draw: np.random.Generator) -> Side:
    """Simulated runs."""
    found = []
    for _ in range(count):
        busy = program.step_ns * (1 - program.idle_share) * factor * math.exp(program.busy_spread * draw.normal())
        idle = program.step_ns * program.idle_share * factor * math.exp(program.idle_spread * draw.normal())
        lengths = (busy + idle) * np.exp(WITHIN * draw.normal(size=STEPS))
        lengths[draw.random(STEPS) < STRAY] *= LONGER
        found.append(RunTime(busy, idle, lengths.astype(np.int64)))
    return tuple(found)


def says_slower(rule: str, a: Side, b: Side) -> bool:
    """Whether the rule calls B slower."""
    if rule == RULES[0]:
        return spread.difference(a, b, LEAST_EFFECT).verdict == "slower"
    ratio = float(np.median(b[0].lengths_ns) / np.median(a[0].lengths_ns))
    return ratio > 1.05 if rule == RULES[1] else ratio < 0.95


def simulate(known: list[Program], pairs: int) -> dict[tuple[str, int], tuple[float, float]]:
    """By rule and number of runs: the share of identical pairs and of slower ones that is called slower."""
    chance, draw = random.Random(1), np.random.default_rng(1)
    found = {}
    for count in RUNS:
        drawn = [chance.choice(known) for _ in range(pairs)]
        for column, factor in enumerate((1.0, SLOWDOWN)):
            sides = [(runs_of(one, count, 1.0, draw), runs_of(one, count, factor, draw)) for one in drawn]
            for rule in RULES:
                share = sum(says_slower(rule, *pair) for pair in sides) / pairs
                before = found.get((rule, count), (0.0, 0.0))
                found[rule, count] = (share, before[1]) if column == 0 else (before[0], share)
    return found


def drawing(panels: dict[str, dict[tuple[str, int], tuple[float, float]]]) -> str:
    """False alarms and finds by the number of runs, a row of two charts for each group of programs."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 820 {60 + 240 * len(panels)}" role="img">',
        "<style>text{font:12px sans-serif;fill:#444}@media (prefers-color-scheme:dark){text{fill:#ccc}}</style>",
    ]
    for place, rule in enumerate(RULES):
        parts.append(f'<circle cx="{60 + 200 * place}" cy="20" r="5" fill="{COLOURS[rule]}"/>')
        name = rule.replace("<", "&lt;")
        parts.append(f'<text x="{72 + 200 * place}" y="24">{name}</text>')
    for row, (group, shares) in enumerate(panels.items()):
        for column, title in enumerate(("called slower: identical runs", "called slower: 3 % slower runs")):
            left, top = 60 + 400 * column, 80 + 240 * row
            parts.append(f'<text x="{left}" y="{top - 16}">{group}: {title} (simulation)</text>')
            parts.append(f'<path d="M{left},{top}v150h320" fill="none" stroke="#888"/>')
            for tick in (0, 50, 100):
                parts.append(f'<text x="{left - 6}" y="{top + 154 - 1.5 * tick}" text-anchor="end">{tick} %</text>')
            for rule in RULES:
                points = [
                    (left + 40 + 80 * place, top + 150 - 150 * shares[rule, count][column])
                    for place, count in enumerate(RUNS)
                ]
                line = " ".join(f"{x:.0f},{y:.1f}" for x, y in points)
                parts.append(f'<polyline points="{line}" fill="none" stroke="{COLOURS[rule]}" stroke-width="2"/>')
                parts += [f'<circle cx="{x:.0f}" cy="{y:.1f}" r="4" fill="{COLOURS[rule]}"/>' for x, y in points]
            for place, count in enumerate(RUNS):
                parts.append(f'<text x="{left + 40 + 80 * place}" y="{top + 168}" text-anchor="middle">{count}</text>')
            parts.append(f'<text x="{left + 160}" y="{top + 186}" text-anchor="middle">runs on each side</text>')
    return "\n".join([*parts, "</svg>", ""])


def main() -> int:
    """Simulate, print a table, and draw."""
    parser = argparse.ArgumentParser(description="Simulated false alarms and misses of three rules")
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--svg", type=Path)
    options = parser.parse_args()
    spread.MORE_RUNS = ()  # how many more runs would help is not asked here, and takes most of the time
    known = programs()
    groups = {
        "GPU sets the pace": [one for one in known if one.idle_share < GPU_PACED],
        "host has a part": [one for one in known if one.idle_share >= GPU_PACED],
    }
    panels = {}
    for group, members in groups.items():
        spreads = sorted(
            math.hypot(one.busy_spread * (1 - one.idle_share), one.idle_spread * one.idle_share) for one in members
        )
        middle = 100 * spreads[len(spreads) // 2]
        print(f"{group}: {len(members)} programs, spread of the step between runs {middle:.1f} % (median)")
        panels[group] = simulate(members, options.pairs)
        for (rule, count), (false, hit) in panels[group].items():
            print(
                f"  {rule:22} {count:3} runs: identical {100 * false:5.1f} %, 3 % slower {100 * hit:5.1f} %", flush=True
            )
    if options.svg:
        options.svg.write_text(drawing(panels), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
