"""Scores the diagnosis on the recorded faults: the right cause, and the step time that a stopwatch confirms.

    python -m faults.score [SUITE ...] [--stacks] [--all] [--json] [--against FILE]

Each faulty recording is diagnosed; the verdict is held against the true cause, the bare step against the stopwatch's,
and the predicted step against the stopwatch's of the fixed program. Without suites, all are scored.
"""

from __future__ import annotations

import argparse
import datetime
import json
import multiprocessing
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from faults.jobs import FAULTY
from faults.programs import SUITES
from faults.recorded import RecordedCase, recorded_cases, recorded_suites
from faults.scoreboard import Answer, comparison, from_dict, ranges_by_fix, scores, table, to_dict

PROCESSES = 2
REPORTED_EVERY = 20
"""Cases between two lines of progress."""


def answer_to(case: RecordedCase, *, stacks: bool = False) -> Answer:
    """Diagnoses one recording and holds the answer against what was measured."""
    from warpline.findings.diagnosis import diagnose  # noqa: PLC0415 - only the processes that diagnose load it
    from warpline.trace.open import open_trace  # noqa: PLC0415

    path = case.recording(FAULTY if stacks else case.scored_variant)
    return compare(case, diagnose(open_trace(path, cache=False), why=True).to_dict())


def compare(case: RecordedCase, said: dict[str, Any]) -> Answer:
    """Holds a diagnosis, as its JSON object, against what was measured."""
    entry, verdict, replay = case.entry, said["verdict"], said["replay"]
    healthy = entry["cause"] == "healthy"
    bare_ns = entry["bare_step_ns"]["faulty"]["step_ns"]
    timed = {fix: time["step_ns"] for fix, time in case.timed_fixes.items()}
    named: str | None = verdict["fix"] if verdict else None
    named_ns = timed.get(named) if named else None
    target_ns = bare_ns if healthy else named_ns or timed[entry["fix"]]
    return Answer(
        suite=case.suite,
        case=case.name,
        cause=entry["cause"],
        said_cause=_named_cause(verdict, entry["cause"]) if verdict else None,
        fix=entry["fix"],
        said_fix=named,
        gain=entry["gain"],
        said_gain=verdict["gain"]["expected"] if verdict else None,
        step_error=round(verdict["new_step_ns"]["expected"] / target_ns - 1, 4) if verdict else None,
        bare_error=round(replay["bare_step_ns"] / bare_ns - 1, 4) if replay else None,
        replay_error_pct=replay["error_pct"] if replay else None,
        gain_in_range=_within(verdict["gain"], bare_ns / named_ns) if named_ns else None,
        step_in_range=_within(verdict["new_step_ns"], named_ns) if named_ns else None,
        bare_in_range=_within(replay["bare_step_range_ns"], bare_ns) if replay else None,
        high_on_healthy=healthy and any(finding["confidence"] == "high" for finding in said["findings"]),
    )


def _named_cause(verdict: dict[str, Any], true_cause: str) -> str:
    """The cause that the verdict names; of two that are as good an answer, the true one."""
    return true_cause if verdict.get("also") == true_cause else str(verdict["cause"])


def _within(bounds: dict[str, float], value: float) -> bool:
    return bounds["low"] <= value <= bounds["high"]


def answers_to(cases: Sequence[RecordedCase], *, stacks: bool = False, processes: int = PROCESSES) -> Iterator[Answer]:
    """Diagnoses the cases on some processes; the answers come in the order of the cases."""
    os.environ.setdefault("POLARS_MAX_THREADS", "1")  # the processes share the cores
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        yield from pool.imap(_with_stacks if stacks else answer_to, cases)


def _with_stacks(case: RecordedCase) -> Answer:
    return answer_to(case, stacks=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the scoreboard."""
    parser = argparse.ArgumentParser(
        prog="python -m faults.score", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"one of {', '.join(SUITES)}")
    parser.add_argument("--stacks", action="store_true", help="diagnose the recordings with Python stacks, where kept")
    parser.add_argument("--all", action="store_true", help="list every case, not only the misses")
    parser.add_argument("--json", action="store_true", help="print scores and answers as JSON")
    parser.add_argument("--against", type=Path, metavar="FILE", help="compare with an earlier score (from --json)")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.suites) - set(SUITES))
    if unknown:
        parser.error(f"no suite {', '.join(unknown)}; there are {', '.join(SUITES)}")
    waiting = sorted(set(options.suites) - set(recorded_suites()))
    if waiting:
        parser.error(f"not recorded yet: {', '.join(waiting)}")
    kept = [case for case in recorded_cases(*options.suites) if case.is_kept]
    wanted = [case for case in kept if not options.stacks or case.kept_with_stacks]
    if not wanted:
        parser.error("no recording of these suites has Python stacks")
    answers = []
    for answer in answers_to(wanted, stacks=options.stacks):
        answers.append(answer)
        if len(answers) % REPORTED_EVERY == 0 or len(answers) == len(wanted):
            print(f"{len(answers)} of {len(wanted)} cases", file=sys.stderr, flush=True)
    if options.json:
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        print(json.dumps(to_dict(answers, stacks=options.stacks, date=today), indent=1))
        return 0
    for answer in answers:
        if options.all or not answer.right_cause or not answer.right_step:
            print(answer.line())
    print(table(scores(answers)), end="")
    print(f"\n{ranges_by_fix(answers)}", end="")
    if options.against:
        before = from_dict(json.loads(options.against.read_text(encoding="utf-8")))
        print(f"\nAgainst {options.against}:\n\n{comparison(before, answers)}", end="")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
