"""How far the present replay's own range spreads, and how long the GPU is idle, for each prediction of the table of
blind errors.

    python -m faults.spreads

writes faults/spreads.csv. The errors of the table stay as they are. The spread and the idle shares that go with them
are this version's, because those are what the ranges are made from. They need no stopwatch: to find them again after a
change of the costs tells nothing about the errors.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from faults.blind_errors import read_table
from faults.recorded import RecordedCase, recorded_cases
from warpline.fixes.registry import question_about
from warpline.replay.ranges import Idle
from warpline.replay.representative_steps import steps_to_judge
from warpline.trace.open import open_trace

SPREADS = Path(__file__).with_name("spreads.csv")
COLUMNS = ("suite", "case", "fix", "spread", "idle", "idle_after")
Key = tuple[str, str, str]
"""Suite, case and fix."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a range is made from, beside the predicted gain."""

    spread: float
    """High over low of the replay."""
    idle: Idle


Spreads = dict[Key, Replayed]


def read_spreads(path: Path = SPREADS) -> Spreads:
    """What the replay finds, by suite, case and fix."""
    with path.open(encoding="utf-8", newline="") as file:
        return {
            (row["suite"], row["case"], row["fix"]): Replayed(
                float(row["spread"]), Idle(float(row["idle"]), float(row["idle_after"]))
            )
            for row in csv.DictReader(file)
        }


def write_spreads(found: Spreads, path: Path = SPREADS) -> None:
    """Writes the file."""
    rows = [
        (*key, *(f"{value:.4f}" for value in (one.spread, one.idle.old, one.idle.new))) for key, one in found.items()
    ]
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])


def replayed_of(case: RecordedCase, fixes: Sequence[str]) -> Iterator[tuple[Key, Replayed]]:
    """What the present replay finds for fixes of a case; those that now change nothing are left out."""
    question = question_about(steps_to_judge(open_trace(case.recording(case.scored_variant), cache=False)))
    for fix in fixes:
        trial = question.trial(fix)
        if any(trial.changed):
            yield (case.suite, case.name, fix), Replayed(question.ask(fix).spread, question.idle_shares(trial))


def main() -> int:
    """Replays every case of the table with the fixes that the table has. A case whose recording is not kept has what an
    earlier version found."""
    wanted: dict[tuple[str, str], list[str]] = {}
    for row in read_table():
        wanted.setdefault((row.suite, row.case), []).extend([row.fix] if row.fix else [])
    before, found = read_spreads(), Spreads()
    for case in recorded_cases(*dict.fromkeys(suite for suite, _ in wanted)):
        fixes = wanted.get((case.suite, case.name), [])
        if case.is_kept:
            found.update(replayed_of(case, fixes) if fixes else ())
        else:
            keys = [(case.suite, case.name, fix) for fix in fixes]
            found.update({key: before[key] for key in keys if key in before})
        print(f"{case.suite} {case.name}", file=sys.stderr, flush=True)
    write_spreads(found)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
