"""False alarms and misses on recorded runs: pairs of identical runs, and pairs in which B is really 3 % slower.

    python -m faults.noise.study DIR [--pairs 200] [--half odd] [--svg docs/pictures/noise.svg]

DIR has what `python -m faults.noise` recorded. Groups of runs are drawn from all runs of a program: for an identical
pair both sides from one form (in turn as it is and slowed), for a slower pair one side from each. An identical pair is
judged in both directions. Runs that were timed before they were recorded are judged by these times.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from faults.noise.__main__ import ARCHIVE, LIST
from faults.noise.rules import RULES, Found, drawing, says_slower
from warpline.capture.run_folder import MANIFEST
from warpline.compare import changed_work, spread
from warpline.compare.measurement import RunMeasurement, measure, side_of
from warpline.estimate import LEAST_EFFECT
from warpline.trace.open import open_trace

Runs = tuple[RunMeasurement, ...]

RUNS = (1, 3, 5, 10, 20)
LEAST_HALF = 0.9
"""An identical pair needs two different runs for each that is wanted on a side, or nearly so many."""
HALVES = {"all": (0, 1), "even": (0,), "odd": (1,)}
"""Which batches count."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """The runs of one program: as it is (a) and slowed (b)."""

    pace: str
    true_ratios: tuple[float, ...]
    """Time of a step of B over that of A without a profiler, in some processes."""
    a: Runs
    b: Runs

    @property
    def recorded_ratio(self) -> float:
        """The same while it is recorded, over all runs."""
        medians = (statistics.median(run.step.step_ns for run in runs) for runs in (self.b, self.a))
        return next(medians) / next(medians)


def read_study(folder: Path, half: str = "all") -> dict[str, Recorded]:
    """The recorded runs by program."""
    listed = json.loads((folder / LIST).read_text(encoding="utf-8"))
    chosen = [run for run in listed["runs"] if run.get("file") and run["batch"] % 2 in HALVES[half]]
    sides: dict[tuple[str, str], list[Any]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as scratch, tarfile.open(folder / ARCHIVE) as tar:
        for run in chosen:
            tar.extract(run["file"], scratch, filter="data")
            if run.get("bare_step_ns"):
                entry = {"file": run["file"], "bare_step_ns": run["bare_step_ns"]}
                Path(scratch, MANIFEST).write_text(json.dumps({"traces": [entry]}), encoding="utf-8")
            sides[run["program"], run["form"]].append(measure(open_trace(Path(scratch, run["file"]))))
            Path(scratch, run["file"]).unlink()
    return {
        name: Recorded(
            program["pace"],
            tuple(truth["ratio"] for truth in program["truth"]),
            tuple(sides[name, "a"]),
            tuple(sides[name, "b"]),
        )
        for name, program in listed["programs"].items()
        if sides[name, "a"] and sides[name, "b"]
    }


def judge(recorded: Recorded, pairs: int, runs: Sequence[int] = RUNS) -> Found:
    """How often each rule calls B slower, of identical pairs and of slower ones."""
    chance = random.Random(1)
    found: Found = {}
    for count in runs:
        half = min(count, len(recorded.a) // 2, len(recorded.b) // 2)
        if half < LEAST_HALF * count:
            continue
        identical = []
        for number in range(pairs):
            drawn = chance.sample(recorded.b if number % 2 else recorded.a, 2 * half)
            identical.append((tuple(drawn[:half]), tuple(drawn[half:])))
        slower = [
            (tuple(chance.sample(recorded.a, count)), tuple(chance.sample(recorded.b, count))) for _ in range(pairs)
        ]
        for rule in RULES:
            shares = [
                sum(says_slower(rule, side_of(a), side_of(b), partial(_verdict, a, b)) for a, b in some) / len(some)
                for some in ([*identical, *((b, a) for a, b in identical)], slower)
            ]
            found[rule, count] = (shares[0], shares[1])
    return found


def _verdict(a: Runs, b: Runs) -> str:
    return changed_work.judge(a, b, LEAST_EFFECT)[0].verdict


def describe(name: str, recorded: Recorded) -> str:
    """A line about the runs of a program."""
    truths = ", ".join(f"{100 * (ratio - 1):+.2f} %" for ratio in recorded.true_ratios)

    def apart(values: list[float]) -> float:
        return 100 * statistics.stdev(values) / statistics.mean(values)

    side = side_of(recorded.a)
    steps = [run.step.step_ns for run in recorded.a]
    return (
        f"{name} ({recorded.pace}): {len(recorded.a)} and {len(recorded.b)} runs; without a profiler {truths}; "
        f"recorded {100 * (recorded.recorded_ratio - 1):+.2f} %; step {statistics.median(steps) / 1e3:.0f} µs, "
        f"runs differ by {apart(steps):.2f} %, GPU work by {apart([run.work_ns for run in side]):.2f} %, idle "
        f"{100 * statistics.median(run.idle_ns / step for run, step in zip(side, steps, strict=True)):.0f} % and "
        f"differs by {apart([run.idle_ns for run in side]):.0f} %"
    )


def main() -> int:
    """Judge the runs, print a table, and draw."""
    parser = argparse.ArgumentParser(description="False alarms and misses of three rules on recorded runs")
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--half", choices=HALVES, default="all", help="judge only every other batch")
    parser.add_argument("--svg", type=Path)
    options = parser.parse_args()
    spread.MORE_RUNS = ()  # how many more runs would help is not asked here, and takes most of the time
    panels = {}
    for name, recorded in read_study(options.folder, options.half).items():
        print(describe(name, recorded), flush=True)
        found = panels[name.replace("_", " ")] = judge(recorded, options.pairs)
        for (rule, count), (false, hit) in found.items():
            print(f"  {rule:22} {count:3} runs: identical {100 * false:5.1f} %, slower {100 * hit:5.1f} %", flush=True)
    if options.svg:
        counts = sorted({count for found in panels.values() for _, count in found})
        options.svg.write_text(drawing(panels, counts, "NVIDIA H200"), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
