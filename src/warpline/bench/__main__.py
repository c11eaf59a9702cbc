"""`python -m warpline.bench`: the same command, for machines with only the standard library and torch."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from warpline.bench.command import BenchRequest, answer, data_types
from warpline.bench.experiments import EXPERIMENTS
from warpline.errors import WarplineError


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m warpline.bench", description="Time a function reliably.")
    parser.add_argument("what", nargs="?", help="an experiment, or file.py:function")
    parser.add_argument("--list", action="store_true", help="list the experiments")
    parser.add_argument("--shape", action="append", default=[], dest="shapes")
    parser.add_argument(
        "--dtype", type=data_types, default=(), dest="dtypes", help="one data type, or several separated by commas"
    )
    parser.add_argument("--against", metavar="FILE.PY:FUNCTION", help="compare with this function")
    parser.add_argument("--hot", action="store_true", help="do not flush the L2 between calls")
    parser.add_argument("--graph", action="store_true", help="time many calls in a CUDA graph")
    parser.add_argument("--cold", action="store_true", help="measure a cold start in fresh processes")
    parser.add_argument("--copies", type=int, default=1, help="number of copies of the inputs to alternate between")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--repeats", type=int, default=3, help="number of fresh processes of each kind, with --cold")
    parser.add_argument("--flops", type=float)
    parser.add_argument("--bytes", type=float)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--json", action="store_true", dest="as_json")
    options = vars(parser.parse_args(arguments))
    as_json = options.pop("as_json")
    if options.pop("list") or options["what"] is None:
        print(list_text())
        return 0
    request = BenchRequest(**options | {"shapes": tuple(options["shapes"])})
    try:
        found = answer(request, lambda line: print(line, file=sys.stderr, flush=True))
    except WarplineError as error:
        print(f"warpline: {error.line()}", file=sys.stderr)
        return error.exit_code
    print(json.dumps(found.to_dict(), indent=1) if as_json else str(found))
    return found.exit_code


def list_text() -> str:
    """The experiments, one per line."""
    lines = []
    for experiment in EXPERIMENTS.values():
        shape, types = "x".join(map(str, experiment.shape)), ", ".join(experiment.dtypes)
        lines.append(f"{experiment.name:10} {experiment.summary}\n{'':10} {experiment.dimensions}: {shape}; {types}")
    return "\n".join([*lines, "or your own function: file.py:function"])


if __name__ == "__main__":
    sys.exit(main())
