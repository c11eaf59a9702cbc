"""Whether as many more runs as `warpline compare` asks for settle what one run of each side leaves open.

    python -m faults.more_runs DIR [--draws 40]

DIR has what `python -m faults.repeat` or `faults.run_again` recorded. For each case, one run of the faulty and one of
the fixed program are drawn and compared. Where that is inconclusive and says how many more runs would settle it, so
many are drawn besides, and all are compared, until there is a verdict or too few runs are left. The stopwatch of the
checkout says whether it is right.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from faults.jobs import FAULTY, FIXED
from faults.pairs import rated, true_ratio
from faults.recorded import RecordedCase, recorded_cases
from warpline.compare.comparison import compare_measurements
from warpline.compare.measurement import RunMeasurement, measure
from warpline.estimate import LEAST_EFFECT
from warpline.trace.open import open_trace

Runs = tuple[RunMeasurement, ...]


def repeated(folder: Path) -> Iterator[tuple[RecordedCase, Runs, Runs]]:
    """Each case that was recorded again, with its faulty and its fixed runs."""
    for case in recorded_cases():
        places = sorted(folder.glob(f"{case.suite}/*/"), key=lambda place: int(place.name))
        again = [RecordedCase(case.suite, place, case.entry) for place in places]
        sides = [
            tuple(
                measure(open_trace(path))
                for one, place in zip(again, places, strict=True)
                for path in (one.recording(variant), place / f"{case.name}.{run_as}")
                if path.exists()
            )
            for variant, run_as in ((case.scored_variant, FAULTY), (FIXED, FIXED))
        ]
        if all(sides):
            yield case, sides[0], sides[1]


def looks(
    a: Sequence[RunMeasurement], b: Sequence[RunMeasurement], chance: random.Random
) -> Iterator[tuple[int, str, int | None]]:
    """One look after the other at runs in any order: with how many, the verdict, and how many more are asked for."""
    left, right = (chance.sample(side, len(side)) for side in (a, b))
    count = 1
    while count <= min(len(left), len(right)):
        found = compare_measurements(left[:count], right[:count], LEAST_EFFECT)
        yield count, found.verdict, found.more_runs
        if found.verdict != "inconclusive" or not found.more_runs:
            return
        count += found.more_runs


def outcome(seen: Sequence[tuple[int, str, int | None]], truth: float) -> str:
    """What came of the looks at one order of the runs."""
    _, verdict, more = seen[-1]
    answer = rated(verdict, truth)
    if answer == "open":
        return "more runs than recorded asked for" if more else "no number of runs would settle it"
    return f"{answer} at {['once', 'the number asked for', 'a later number'][min(len(seen), 3) - 1]}"


def main() -> int:
    """Print what came of each case, and the sums."""
    parser = argparse.ArgumentParser(description="Whether the runs that compare asks for settle a comparison")
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--draws", type=int, default=40, help="orders of the runs of each case (40)")
    options = parser.parse_args()
    sums: Counter[str] = Counter()
    for case, a, b in repeated(options.folder):
        chance, truth = random.Random(1), true_ratio(case)
        found = [list(looks(a, b, chance)) for _ in range(options.draws)]
        outcomes = Counter(outcome(seen, truth) for seen in found)
        sums += outcomes
        whole = compare_measurements(a, b, LEAST_EFFECT)
        print(
            f"{case.suite}/{case.name} ({case.entry['cause']}): {len(a)} and {len(b)} runs, true {truth:.3f}; all of "
            f"them: {rated(whole.verdict, truth)}, {whole.verdict} by {whole.judged_by}, {whole.ratio.low:.3f} to "
            f"{whole.ratio.high:.3f}; " + ", ".join(f"{name}: {count}" for name, count in outcomes.most_common()),
            flush=True,
        )
    print("; ".join(f"{name}: {count}" for name, count in sums.most_common()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
