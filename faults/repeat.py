"""Records some cases again and again, faulty and fixed, each run in a process of its own: what several runs would say.

    python -m faults.repeat -o DIR --runs 9 --minutes 7 held_out/metrics_of_every_batch ward/NAME

Needs torch and a CUDA device, and for some suites also transformers. Nothing is timed and no stacks are recorded. The
first run of every case comes before the second of any. A few cases are built at once, on calm cores; then they record
one at a time, faulty and fixed in turn, each in a calm moment of the host. Run number N of a case is in `DIR/SUITE/N`,
where `python -m faults.more_runs DIR` finds it. A recording that fails costs only itself.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from faults.actor import Actor
from faults.calm_host import Pulse, keep_to_calm_cores
from faults.jobs import CAPTURE, FAULTY, FIXED, PLAIN, Job
from faults.programs import SUITES, Case
from faults.record import import_once
from faults.rounds import HOLD, KEEP, MEASURE, WAIT_S, actor_of

TOGETHER = 4
"""Cases whose programs are held at once."""
Named = tuple[str, Case]
"""A suite and a case of it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Records the runs asked for; returns 1 if one is missing."""
    parser = argparse.ArgumentParser(prog="python -m faults.repeat", description="Record cases again and again.")
    parser.add_argument("cases", nargs="+", type=named_case, metavar="SUITE/NAME", help="a case to record")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", required=True, help="folder to write to")
    parser.add_argument("--runs", type=int, default=9, help="runs of each case, faulty and fixed (9)")
    parser.add_argument("--minutes", type=float, default=7, help="begin nothing that would end after this time (7)")
    options = parser.parse_args(arguments)
    began, longest, recorded = time.monotonic(), 0.0, 0
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache
        os.environ["TRITON_CACHE_DIR"] = str(Path(cache, "triton"))
        os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
        for suite in sorted({suite for suite, _ in options.cases}):
            import_once(suite)
        pulse = Pulse()
        for number in range(options.runs):
            for first in range(0, len(options.cases), TOGETHER):
                start = time.monotonic()
                if start - began + longest > 60 * options.minutes:
                    break
                some = options.cases[first : first + TOGETHER]
                recorded += record_together(some, number, options.output, pulse)
                longest = max(longest, time.monotonic() - start)
            print(
                f"{time.monotonic() - began:6.1f} s: run {number}, {recorded} recordings", file=sys.stderr, flush=True
            )
    return 0 if recorded == 2 * options.runs * len(options.cases) else 1


def record_together(cases: Sequence[Named], number: int, folder: Path, pulse: Pulse) -> int:
    """Records one run of each case, faulty and fixed, in the other order every other time; returns how many worked."""
    keep_to_calm_cores(pulse.cores)
    actors: list[Actor] = []
    try:
        for suite, case in cases:
            where = folder / suite / str(number)
            where.mkdir(parents=True, exist_ok=True)
            variants = (PLAIN if case.stacks else FAULTY, FIXED)
            for variant in variants if number % 2 else variants[::-1]:
                actors.append(actor_of(Job(case, CAPTURE, variant), where))
        for actor in actors:
            actor.answer()
        for actor in actors:
            if not actor.failed:
                pulse.wait_for_calm(WAIT_S)
                actor.ask(MEASURE)
                actor.ask(HOLD)
        for actor in actors:
            actor.tell(KEEP)
        return sum("error" not in actor.answer() for actor in actors)
    finally:
        for actor in actors:
            actor.tell(None)
        for actor in actors:
            actor.end()


def named_case(text: str) -> Named:
    """The case of a name as SUITE/NAME."""
    suite, _, name = text.partition("/")
    for case in SUITES.get(suite, ()):
        if case.name == name:
            return suite, case
    raise argparse.ArgumentTypeError(f"there is no case {text}")


if __name__ == "__main__":
    raise SystemExit(main())
