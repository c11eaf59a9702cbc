"""Times both ways out of a step that waits for the GPU: without the waits, and with launches that cost nothing.

    python -m faults.other_fix -o times.json [--only SUITE/NAME ...]

The suites hold one fix for each program. Where the label is `sync` and the limits say `dispatch`, this is the second
one: the fixed program, which waits nowhere, is captured into a CUDA graph, and a step is its replay, followed by as
many waits as the faulty step has. So the launches are free and every wait is kept. The larger of the two gains is what
the step was slow for.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from faults.actor import Actor, Worker
from faults.programs import SUITES, Case
from faults.stopwatch import FEWEST_STEPS, Stopwatch, wake, warm_up

SAMPLES = 5
"""Each time is the median of so many samples, taken by turns."""
FAULTY, WITHOUT_WAITS, FREE_LAUNCHES, BOTH = "faulty", "without_waits", "free_launches", "both"


def main(arguments: Sequence[str] | None = None) -> int:
    """Times the programs asked for (all whose label is `sync`), each in a process of its own."""
    parser = argparse.ArgumentParser(prog="python -m faults.other_fix", description="Time both fixes of waiting steps.")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="the JSON file to write")
    parser.add_argument("--only", nargs="+", metavar="SUITE/NAME", help="only these programs")
    options = parser.parse_args(arguments)
    cases = {f"{suite}/{case.name}": case for suite, cases in SUITES.items() for case in cases if case.cause == "sync"}
    unknown = set(options.only or ()) - set(cases)
    if unknown:
        parser.error(f"no program with waits is called {', '.join(sorted(unknown))}")
    importlib.import_module("torch")
    times: dict[str, dict[str, Any]] = {}
    for name in options.only or cases:
        actor = Actor(name, partial(timer_of, cases[name]))
        actor.answer()
        times[name] = actor.ask("measure")
        actor.end()
        options.output.write_text(json.dumps(times, indent=1) + "\n", encoding="utf-8")
        print(f"{name}: {times[name]}", file=sys.stderr, flush=True)
    return 0


def timer_of(case: Case) -> Worker:
    """What a program's process does when it is asked to measure."""
    return lambda _: both_fixes(case)


def both_fixes(case: Case) -> dict[str, Any]:
    """Step times in nanoseconds: as it is, without waits, with free launches and every wait, and with neither."""
    torch = importlib.import_module("torch")
    wake(torch)
    waits = waits_of(torch, case.faulty())
    steps = {FAULTY: case.faulty(), WITHOUT_WAITS: case.fixed()}
    result: dict[str, Any] = {"waits": waits}
    try:
        replay = captured(torch, case.fixed())
        flag = torch.zeros((), device="cuda")
        steps[BOTH] = replay
        steps[FREE_LAUNCHES] = lambda: (replay(), [flag.item() for _ in range(waits)])
    except Exception as error:  # a step that cannot be captured has no second time
        result["not_captured"] = str(error).splitlines()[0][:200]
        torch.cuda.synchronize()
    watches = {name: Stopwatch(torch, step) for name, step in steps.items()}
    samples: dict[str, list[float]] = {name: [] for name in watches}
    for _ in range(SAMPLES):
        for name, watch in watches.items():
            samples[name].append(watch.sample())
    times = {name: sorted(taken)[SAMPLES // 2] for name, taken in samples.items()}
    gains = {f"{name}_gain": round(times[FAULTY] / ns, 3) for name, ns in times.items() if name != FAULTY}
    return {**result, **{f"{name}_ns": round(ns) for name, ns in times.items()}, **gains}


def waits_of(torch: Any, step: Any) -> int:
    """How often the CPU waits for the GPU in a step, as torch itself counts."""
    warm_up(torch, step)
    torch.cuda.set_sync_debug_mode("warn")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        step()
    torch.cuda.set_sync_debug_mode("default")
    return sum("synchronizing" in str(warning.message) for warning in caught)


def captured(torch: Any, step: Any) -> Any:
    """The replay of a step's CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(FEWEST_STEPS):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


if __name__ == "__main__":
    raise SystemExit(main())
