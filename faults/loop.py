"""Runs some steps of a case's faulty program, each in an NVTX range, for a recorder that watches from outside.

    python -m faults.loop --suite sealed --case NAME --steps 15

The steps lie between `cudaProfilerStart` and `cudaProfilerStop`, so that a recorder can leave out the warm-up.
"""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Sequence
from typing import Any

from faults.programs import SUITES, Case
from faults.stopwatch import wake, warm_up

STEPS = 15
MAX_SECONDS = 1.5
"""After so long no further step begins."""
RANGE = "step"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the steps of one case."""
    parser = argparse.ArgumentParser(prog="python -m faults.loop", description="Run some steps of a planted fault.")
    parser.add_argument("--suite", choices=SUITES, default="planted", help="the suite of the case (planted)")
    parser.add_argument("--case", required=True, metavar="NAME", help="the case to run")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"how many steps to run at most ({STEPS})")
    options = parser.parse_args(arguments)
    case = next((case for case in SUITES[options.suite] if case.name == options.case), None)
    if case is None:
        parser.error(f"the suite {options.suite} has no case {options.case}")
    done = loop(importlib.import_module("torch"), case, options.steps)
    print(f"{case.name}: {done} steps")
    return 0


def loop(torch: Any, case: Case, steps: int) -> int:
    """Builds the case, warms it up unless it is a cold start, and returns how many steps it ran in ranges."""
    if not case.own_process:
        wake(torch)
    step = case.faulty()
    if not case.cold:
        warm_up(torch, step)
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    began, done = time.monotonic(), 0
    while done < steps and (done == 0 or time.monotonic() - began < MAX_SECONDS):
        torch.cuda.nvtx.range_push(RANGE)
        step()
        torch.cuda.nvtx.range_pop()
        done += 1
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()
    return done


if __name__ == "__main__":
    raise SystemExit(main())
