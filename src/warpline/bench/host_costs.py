"""Measures what ops, launches and their recording cost this host.

    python3 -m warpline.bench.host_costs --json

Needs torch and nothing else; without a GPU, launches are left out. `warpline run` stores the same with each capture,
and `warpline device measure` with the ceilings of the GPU.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from warpline.capture.calibration import measure_host
from warpline.errors import CannotAnswer, WarplineError


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m warpline.bench.host_costs", description="Measure this host.")
    parser.add_argument("--stacks", action="store_true", help="measure what recording a Python frame costs as well")
    parser.add_argument("--json", action="store_true", dest="as_json", help="answer as JSON")
    options = parser.parse_args(arguments)
    try:
        document = _measure(options.stacks)
    except WarplineError as error:
        print(f"warpline: {error.line()}", file=sys.stderr)
        return error.exit_code
    if options.as_json:
        print(json.dumps(document, indent=1))
        return 0
    for name, cost in document["costs_ns"].items():
        print(f"{name:18} {cost['expected']:10,.0f} ns   {cost['low']:,.0f} to {cost['high']:,.0f}")
    return 0


def _measure(stacks: bool) -> dict[str, Any]:
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # Kineto tells of its stages on stderr
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise CannotAnswer("no-torch", "measuring needs torch, which is not installed", "pip install torch") from error
    if torch.cuda.is_available():
        torch.cuda.init()
    measure_host(torch, stacks=stacks)  # the first profiler of a process takes long to start
    document = measure_host(torch, stacks=stacks)
    if document is None:
        raise CannotAnswer("not-measured", "torch.profiler could not be started, or the clock stood still")
    return document


if __name__ == "__main__":
    sys.exit(main())
