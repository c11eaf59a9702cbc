"""Launches each form of the cases named, once after a warm-up, for Nsight Compute to profile.

    ncu --profile-from-start off … python -m faults.kernels.launch -o ORDER.json NAME…

Only the second launch of a form is in the profiled range, so that the report's kernels come in the order of the file.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path
from typing import Any

from faults.kernels import nvrtc
from faults.kernels.again import CASES as AGAIN
from faults.kernels.case import Buffers, Cuda, Form, KernelCase
from faults.kernels.controls import PLANTED_CONTROLS, UNSEEN_CONTROLS
from faults.kernels.fresh import CASES as FRESH
from faults.kernels.fresh import CONTROLS as FRESH_CONTROLS
from faults.kernels.planted import CASES as PLANTED
from faults.kernels.unseen import CASES as UNSEEN

SETS: dict[str, tuple[KernelCase, ...]] = {
    "planted": PLANTED + PLANTED_CONTROLS,
    "unseen": UNSEEN + UNSEEN_CONTROLS,
    "again": AGAIN,
    "fresh": FRESH + FRESH_CONTROLS,
}
ALL = {case.name: case for cases in SETS.values() for case in cases}


def run_form(torch: Any, form: Form, which: str, buffers: Buffers) -> None:
    """Launches a form."""
    if isinstance(form, Cuda):
        nvrtc.launch(torch, form, which, buffers)
    else:
        form.run(torch, buffers)


def main(arguments: list[str] | None = None) -> int:
    """Launches the forms, and writes which ones ran, in order."""
    torch: Any = importlib.import_module("torch")
    parser = argparse.ArgumentParser(prog="python -m faults.kernels.launch")
    parser.add_argument("-o", "--order", type=Path, required=True)
    parser.add_argument("names", nargs="+", choices=sorted(ALL))
    options = parser.parse_args(arguments)
    torch.cuda.init()
    order = []
    for name in options.names:
        case = ALL[name]
        try:
            buffers = case.buffers(torch)
            for which, form in case.forms().items():
                run_form(torch, form, which, buffers)
                torch.cuda.synchronize()
                torch.cuda.profiler.start()
                run_form(torch, form, which, buffers)
                torch.cuda.synchronize()
                torch.cuda.profiler.stop()
                order.append({"case": name, "form": which})
        except Exception as error:  # a case that fails costs only itself
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        buffers = {}
        torch.cuda.empty_cache()
        options.order.write_text(json.dumps(order))
    return 0


if __name__ == "__main__":
    sys.exit(main())
