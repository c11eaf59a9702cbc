"""The program whose cold start is measured: a fresh process that reads the clock between its first steps.

Run as a file, so that nothing is imported before the first reading; it needs the standard library and torch.
"""

import time

_FIRST_LINE_NS = time.monotonic_ns()

import importlib  # noqa: E402
import json  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

STEADY_CALLS = 30
FEWEST_CALLS, STEADY_NS = 4, 1_000_000_000
"""After so much time so few calls are enough: they are long, and hence steady."""


class Marks:
    """Times between readings, by name."""

    def __init__(self, began_ns: int) -> None:
        self.parts: dict[str, int] = {}
        self._last = began_ns

    def skip(self) -> None:
        """Discard the time since the last reading."""
        self._last = time.monotonic_ns()

    def stamp(self, name: str) -> None:
        """Assign the time since the last reading to this name."""
        now = time.monotonic_ns()
        self.parts[name] = now - self._last
        self._last = time.monotonic_ns()


def main() -> None:
    """Follow the instructions in the first argument and write the times to the second."""
    orders, output = json.loads(sys.argv[1]), Path(sys.argv[2])
    marks = Marks(_FIRST_LINE_NS)
    marks.parts["python"] = _FIRST_LINE_NS - orders["spawned_ns"]
    marks.skip()
    torch = importlib.import_module("torch")
    marks.stamp("import")
    device = "cuda" if torch.cuda.is_available() and orders["device"] != "cpu" else "cpu"
    sys.path[:0] = orders["path"]
    marks.skip()
    if device == "cuda" and orders["split"]:
        _start_cuda(torch, marks, orders["library"])
    call = _subject(torch, orders, device, marks)
    _calls(torch, call, device, marks)
    output.write_text(json.dumps({"parts": marks.parts, "device": _name(torch, device), "torch": torch.__version__}))


def _start_cuda(torch: Any, marks: Marks, library: str) -> None:
    """Run the steps that CUDA would otherwise take within the first op, one at a time."""
    torch.cuda.init()
    marks.stamp("driver")
    torch.cuda.synchronize()
    marks.stamp("context")
    scratch = torch.empty(1 << 20, device="cuda")
    marks.stamp("allocator")
    scratch.fill_(1.0)
    torch.cuda.synchronize()
    marks.stamp("first_kernel")
    if library == "cuBLAS":
        torch.cuda.current_blas_handle()
        torch.cuda.synchronize()
        marks.stamp("library")


def _subject(torch: Any, orders: dict[str, Any], device: str, marks: Marks) -> Any:
    from warpline.bench.calls import AlternatingCalls  # noqa: PLC0415 - only the standard library, and not counted
    from warpline.bench.experiments import EXPERIMENTS, precision, prepare  # noqa: PLC0415
    from warpline.bench.program import load  # noqa: PLC0415

    marks.skip()
    if orders["program"]:
        program = load(orders["program"], lambda: marks.stamp("program"))
        assert not callable(program.inputs)
        call = AlternatingCalls(program.function, program.inputs)
    else:
        precision(torch, orders["dtype"]).__enter__()
        ready = prepare(EXPERIMENTS[orders["experiment"]], torch, tuple(orders["shape"]), orders["dtype"], device)
        call = AlternatingCalls(ready.function, [ready.args])
    _wait(torch, device)
    marks.stamp("inputs")
    return call


def _calls(torch: Any, call: Any, device: str, marks: Marks) -> None:
    for name in ("first_call", "second_call"):
        call()
        _wait(torch, device)
        marks.stamp(name)
    steady: list[int] = []
    while len(steady) < STEADY_CALLS and not (len(steady) >= FEWEST_CALLS and sum(steady) > STEADY_NS):
        began = time.monotonic_ns()
        call()
        _wait(torch, device)
        steady.append(time.monotonic_ns() - began)
    later = sorted(steady[len(steady) // 2 :])
    marks.parts["steady"] = later[len(later) // 2]


def _wait(torch: Any, device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def _name(torch: Any, device: str) -> str:
    return str(torch.cuda.get_device_name()) if device == "cuda" else "cpu"


if __name__ == "__main__":
    main()
