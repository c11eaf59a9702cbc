"""How far the present replay's own range spreads, for each prediction of the table of blind errors.

    python -m faults.spreads

writes faults/spreads.csv. The errors of the table stay as they are. The spread that goes with them is this version's,
because this version's spreads are what the ranges are made from. A spread needs no stopwatch: to find it again after a
change of the costs tells nothing about the errors.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

from faults.blind_errors import judgement_of, read_table
from faults.recorded import recorded_cases

SPREADS = Path(__file__).with_name("spreads.csv")
COLUMNS = ("suite", "case", "fix", "spread")
Spreads = dict[tuple[str, str, str], float]


def read_spreads(path: Path = SPREADS) -> Spreads:
    """High over low of the replay by suite, case and fix."""
    with path.open(encoding="utf-8", newline="") as file:
        return {(row["suite"], row["case"], row["fix"]): float(row["spread"]) for row in csv.DictReader(file)}


def main() -> int:
    """Replays every case of the table with the fixes that the table has; fixes that now change nothing are left out.
    A case whose recording is not kept has the spread of the version that scored it."""
    wanted: dict[tuple[str, str], list[str]] = {}
    for row in read_table():
        wanted.setdefault((row.suite, row.case), []).extend([row.fix] if row.fix else [])
    before, lines = read_spreads(), []
    for case in recorded_cases(*dict.fromkeys(suite for suite, _ in wanted)):
        if not case.is_kept:
            lines += [
                (case.suite, case.name, fix, f"{before[case.suite, case.name, fix]:.4f}")
                for fix in wanted.get((case.suite, case.name), [])
                if (case.suite, case.name, fix) in before
            ]
            continue
        judgement = judgement_of(case) if wanted.get((case.suite, case.name)) else None
        if judgement is None:
            continue
        question = judgement.evidence.question
        for fix in wanted[case.suite, case.name]:
            if any(question.trial(fix).changed):
                lines.append((case.suite, case.name, fix, f"{question.ask(fix).spread:.4f}"))
        print(f"{case.suite} {case.name}", file=sys.stderr, flush=True)
    with SPREADS.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *lines])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
