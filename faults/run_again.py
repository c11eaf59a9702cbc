"""Records some cases with `warpline run` itself, faulty and fixed: what its stopwatch says beside the profiler.

    python -m faults.run_again -o DIR --runs 5 --minutes 3 held_out/metrics_of_every_batch clinic/NAME

Needs torch and a CUDA device, and for some suites also transformers. Each run is a process of its own. The processes of
a round are built at once, on calm cores; then they run one at a time, each from a calm moment of the host on. Run
number N is the folder `DIR/SUITE/N/NAME.VARIANT`. A run that fails costs only itself.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import warpline
from faults.calm_host import Pulse, keep_to_calm_cores
from faults.jobs import CAPTURE, FAULTY, FIXED, Job
from faults.repeat import Named, named_case
from faults.rounds import WAIT_S
from faults.stopwatch import wake

STEPS = 20
"""What `warpline run` needs at most besides the bare steps: 2 to warm the profiler up, 6 recorded ones and 8 after."""
BARE_STEPS = 27
"""As many as it looks at to find the step, and then times by default, at most."""
BUILD_LIMIT_S, RUN_LIMIT_S, PAUSE_S = 60, 30, 0.01
READY, GO = "ready", "go"


class Run:
    """A case under `warpline run` that is built at once, and runs when it is told to."""

    def __init__(self, named: Named, variant: str, folder: Path, skip: int | None) -> None:
        suite, case = named
        self._turn = folder / f"{case.name}.{variant}.turn"
        self._turn.mkdir(parents=True)
        self.folder = folder / f"{case.name}.{variant}"
        bare = ["--skip", skip] if skip is not None else []
        turn = ["--turn", self._turn, "--variant", variant, *bare]
        program = ["-m", "faults.run_again", *turn, f"{suite}/{case.name}"]
        limits = ["--after", BUILD_LIMIT_S + RUN_LIMIT_S, *bare]
        options = ["--no-diagnose", "--no-lines", "--no-dataflow", *limits, "-o", self.folder]
        command = [sys.executable, "-m", "warpline", "run", *options, *program]
        self._process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL)

    def is_built(self) -> bool:
        """Waits until it is."""
        return _appears(self._turn / READY, BUILD_LIMIT_S, self._process)

    def go(self) -> bool:
        """Runs it to its end, and says whether it recorded."""
        (self._turn / GO).touch()
        try:
            self._process.wait(RUN_LIMIT_S)
        except subprocess.TimeoutExpired:
            return False
        return (self.folder / "manifest.json").exists()

    def end(self) -> None:
        """Ends it, whatever it is doing, and removes what is no part of the run."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        for file in self._turn.iterdir():
            file.unlink()
        self._turn.rmdir()


def main(arguments: Sequence[str] | None = None) -> int:
    """Records the runs asked for; returns 1 if one is missing."""
    parser = argparse.ArgumentParser(prog="python -m faults.run_again", description="Record cases with warpline run.")
    parser.add_argument("cases", nargs="+", type=named_case, metavar="SUITE/NAME", help="a case to record")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="folder to write to")
    parser.add_argument("--runs", type=int, default=5, help="runs of each case, faulty and fixed (5)")
    parser.add_argument("--minutes", type=float, default=3, help="begin nothing that would end after this time (3)")
    parser.add_argument("--skip", type=int, help="time so many bare steps (as many as `warpline run` does by default)")
    parser.add_argument("--turn", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--variant", default=FAULTY, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.turn is not None:
        run_in_turn(options.cases[0], options.variant, options.turn, STEPS + (options.skip or BARE_STEPS))
        return 0
    if options.output is None:
        parser.error("-o DIR is needed")
    began, longest, recorded, pulse = time.monotonic(), 0.0, 0, Pulse()
    for number in range(options.runs):
        start = time.monotonic()
        if start - began + longest > 60 * options.minutes:
            break
        recorded += record_round(options.cases, number, options.output, pulse, options.skip)
        longest = max(longest, time.monotonic() - start)
        print(f"{time.monotonic() - began:6.1f} s: run {number}, {recorded} recordings", file=sys.stderr, flush=True)
    return 0 if recorded == 2 * options.runs * len(options.cases) else 1


def record_round(cases: Sequence[Named], number: int, folder: Path, pulse: Pulse, skip: int | None) -> int:
    """Records one run of each case, faulty and fixed, in the other order every other time; returns how many worked."""
    keep_to_calm_cores(pulse.cores)
    variants = (FAULTY, FIXED) if number % 2 else (FIXED, FAULTY)
    runs = [Run(named, variant, folder / named[0] / str(number), skip) for named in cases for variant in variants]
    done = 0
    try:
        for run in [run for run in runs if run.is_built()]:
            pulse.wait_for_calm(WAIT_S)
            done += run.go()
    finally:
        for run in runs:
            run.end()
    return done


def run_in_turn(named: Named, variant: str, turn: Path, steps: int) -> None:
    """Builds the case, waits for its turn, and runs so many steps."""
    torch = importlib.import_module("torch")
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    step = Job(named[1], CAPTURE, variant).build()
    (turn / READY).touch()
    if not _appears(turn / GO, BUILD_LIMIT_S + RUN_LIMIT_S):
        return
    if torch.cuda.is_available():
        wake(torch)
    for _ in range(steps):
        step()
        warpline.step()


def _appears(file: Path, limit_s: float, process: subprocess.Popen[bytes] | None = None) -> bool:
    until = time.monotonic() + limit_s
    while not file.exists():
        if time.monotonic() > until or (process is not None and process.poll() is not None):
            return False
        time.sleep(PAUSE_S)
    return True


if __name__ == "__main__":
    raise SystemExit(main())
