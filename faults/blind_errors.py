"""The table of blind errors: what each suite's first diagnosis predicted, and what a stopwatch then showed.

    python -m faults.blind_errors SUITE ...

appends the rows of suites that are not in the table yet. Do this before anything is changed for a new suite: an error
of a version that was corrected with the suite in view says nothing about programs that nobody has seen. Rows are added,
never changed. The ranges of every prediction are computed from this table (`python -m faults.ranges`).
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from faults.programs import SUITES
from faults.recorded import RecordedCase, recorded_cases

if TYPE_CHECKING:
    from warpline.findings.judge import Judgement

TABLE = Path(__file__).with_name("blind_errors.csv")
WHATIF = "whatif"
"""Evidence of a fix that was timed and that no finding named."""


@dataclass(frozen=True, slots=True)
class BlindError:
    """One prediction, and what a stopwatch showed. Without a fix, a row has the bare step alone."""

    commit: str
    """The version that made the prediction, and had not seen the suite."""
    suite: str
    case: str
    fix: str
    evidence: str
    """The rule whose finding named the fix, or `whatif`."""
    low_ns: int
    expected_ns: int
    """The predicted step with the fix; 0 without one."""
    high_ns: int
    gain: float
    spread: float
    """High over low of the replay itself: costs and recording at their best, and at their worst."""
    bare_ns: int
    """The estimated step without a profiler."""
    idle_share: float
    """Share of the bare step in which the GPU is idle."""
    before_fastest_ns: int
    before_median_ns: int
    before_slowest_ns: int
    after_fastest_ns: int
    after_median_ns: int
    after_slowest_ns: int

    @property
    def before_ns(self) -> tuple[int, int, int]:
        """What the stopwatch showed of the faulty step: the fastest calm time, the median and the slowest. A user may
        see any of them."""
        return self.before_fastest_ns, self.before_median_ns, self.before_slowest_ns

    @property
    def after_ns(self) -> tuple[int, int, int]:
        """What it showed with the fix."""
        return self.after_fastest_ns, self.after_median_ns, self.after_slowest_ns


def read_table(path: Path = TABLE) -> list[BlindError]:
    """The rows of the table, in the order in which they were added."""
    kinds = {field.name: {"int": int, "float": float}.get(str(field.type), str) for field in fields(BlindError)}
    with path.open(encoding="utf-8", newline="") as file:
        return [BlindError(**{name: kinds[name](text) for name, text in row.items()}) for row in csv.DictReader(file)]


def write_rows(rows: Iterable[BlindError], path: Path = TABLE) -> None:
    """Appends rows; a new table gets its header first."""
    is_new = not path.exists()
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(BlindError)], lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def rows_of(commit: str, case: RecordedCase, judgement: Judgement) -> Iterator[BlindError]:
    """What this version predicts for each fix that was timed; without any, one row for the bare step."""
    entry, question = case.entry, judgement.evidence.question
    if entry["cold"] and judgement.evidence.trace.cold is not None:
        # The answer counts from the warm steps, and the stopwatch's step is the mean of cold ones.
        return
    before, timed = entry["bare_step_ns"]["faulty"], case.timed_fixes
    named = {finding.fix: finding.rule for finding in reversed(judgement.findings)}
    bare, idle = round(question.bare.expected_ns), round(question.bare.idle_share, 4)
    known = [fix for fix in timed if any(question.trial(fix).changed)]
    for fix in known:
        said, after = question.ask(fix), timed[fix]
        step = said.new_step_ns.rounded()
        yield BlindError(
            commit,
            case.suite,
            case.name,
            fix,
            named.get(fix, WHATIF),
            *(int(step.low), int(step.expected), int(step.high)),
            *(round(said.gain.expected, 4), round(said.spread, 4)),
            *(bare, idle),
            *_readings(before),
            *_readings(after),
        )
    if not known:
        nothing = (0, 0, 0, 0.0, 0.0)
        yield BlindError(commit, case.suite, case.name, "", "", *nothing, bare, idle, *_readings(before), 0, 0, 0)


def _readings(times: dict[str, int]) -> tuple[int, int, int]:
    return times["step_ns"], times["median_ns"], times["max_ns"]


def judgement_of(case: RecordedCase) -> Judgement | None:
    """The findings of a recorded case, with the replay behind them; None if nothing can be replayed."""
    from warpline.findings.diagnosis import diagnose  # noqa: PLC0415 - only what diagnoses loads it
    from warpline.trace.open import open_trace  # noqa: PLC0415

    return diagnose(open_trace(case.recording(case.scored_variant), cache=False), why=True).judgement


def main(arguments: Sequence[str] | None = None) -> int:
    """Appends the errors of new suites."""
    parser = argparse.ArgumentParser(
        prog="python -m faults.blind_errors", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suites", nargs="+", metavar="SUITE", choices=SUITES)
    parser.add_argument("--table", type=Path, default=TABLE)
    options = parser.parse_args(arguments)
    seen = {row.suite for row in read_table(options.table)} if options.table.exists() else set()
    again = sorted(seen & set(options.suites))
    if again:
        parser.error(f"{', '.join(again)}: in the table already, and its rows are never changed")
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], check=True, capture_output=True, text=True)
    for case in recorded_cases(*options.suites):
        judgement = judgement_of(case)
        rows = list(rows_of(commit.stdout.strip(), case, judgement)) if judgement else []
        write_rows(rows, options.table)
        print(f"{case.suite} {case.name}: {len(rows)}", file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
