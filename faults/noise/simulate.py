"""A simulation of false alarms and misses: identical pairs of runs, and pairs with a 3 % slowdown, under three rules.

    python -m faults.noise.simulate [--pairs 200] [--svg FILE]

Programs are drawn from the recorded ones (`faults/`): the share of idle time, and how much repeats of the bare step
differed on the H200. Nothing is measured here; `study.py` judges measured runs by the same rules.
"""

from __future__ import annotations

import argparse
import math
import random
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from faults.blind_errors import read_table
from faults.noise.rules import RULES, Found, drawing, says_slower
from faults.recorded import recorded_cases
from warpline.compare import spread
from warpline.compare.spread import RunTime, Side
from warpline.estimate import LEAST_EFFECT

RUNS = (1, 3, 5, 20)
STEPS = 30
WITHIN, STRAY, LONGER = 0.01, 0.03, 1.3
"""Within a run: spread of the steps, share of stray ones, and how much longer these are. Assumed, not measured."""
SLOWDOWN = 1.03
GPU_PACED = 0.1
RANGE_OF = {2: 1.13, 3: 1.69, 4: 2.06, 5: 2.33, 6: 2.53, 7: 2.70, 8: 2.85, 9: 2.97, 10: 3.08, 12: 3.26}
"""Expected range of so many normal values, in standard deviations."""


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


def simulate(known: list[Program], pairs: int) -> Found:
    """By rule and number of runs: the share of identical pairs and of slower ones that is called slower."""
    chance, draw = random.Random(1), np.random.default_rng(1)
    found: Found = {}
    for count in RUNS:
        drawn = [chance.choice(known) for _ in range(pairs)]
        for column, factor in enumerate((1.0, SLOWDOWN)):
            sides = [(runs_of(one, count, 1.0, draw), runs_of(one, count, factor, draw)) for one in drawn]
            for rule in RULES:
                share = sum(says_slower(rule, a, b, partial(_verdict, a, b)) for a, b in sides) / pairs
                before = found.get((rule, count), (0.0, 0.0))
                found[rule, count] = (share, before[1]) if column == 0 else (before[0], share)
    return found


def _verdict(a: Side, b: Side) -> str:
    return spread.difference(a, b, LEAST_EFFECT).verdict


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
        options.svg.write_text(drawing(panels, RUNS, "simulation"), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
