"""Records the planted faults: a stopwatch and a profile of each case, faulty and fixed.

    python -m faults.record --suite held_out -o DIR
    python -m faults.record --suite held_out --only NAME -o DIR

Needs torch and a CUDA device, and for some suites also transformers. Every process is forked before CUDA
starts. Steps are timed and captured in rounds (`faults/rounds.py`). A case that fails costs only itself.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from faults.calm_host import Pulse
from faults.jobs import CAPTURE, FAULTY, FIXED, PLAIN, TIME, Job, Result, jobs
from faults.programs import SUITES, Case
from faults.recorded import MANIFEST
from faults.rounds import describe, measure

SCHEMA = "warpline.faults/1"
HOW = (
    "wall time of a step over many steps with one wait for the GPU at the end, no profiler attached, before, between "
    "and after the captures, on the same calm cores in calm moments of the host. Times and captures are those of one "
    "round: the least disturbed. The steps of a cold start are the first after it is built."
)
IMPORTED_ONCE = ("torch", "torch.profiler", "torch._dynamo", "torch._inductor.compile_fx")
"""Imported before any process is forked, so that none of them has to."""
IMPORTED_FOR = dict.fromkeys(("clinic", "harbour", "sealed"), ("transformers.modeling_utils",))
"""What a suite needs besides."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Records the cases asked for, and writes the manifest of those that worked."""
    parser = argparse.ArgumentParser(prog="python -m faults.record", description="Record the planted faults.")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", required=True, help="folder to write to")
    parser.add_argument("--suite", choices=SUITES, default="planted", help="the suite to record (planted)")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="record only these cases of the suite")
    parser.add_argument("--time-only", action="store_true", help="run only the stopwatch, without captures")
    options = parser.parse_args(arguments)
    suite = SUITES[options.suite]
    unknown = set(options.only or ()) - {case.name for case in suite}
    if unknown:
        parser.error(f"the suite {options.suite} has no case {', '.join(sorted(unknown))}")
    cases = [case for case in suite if not options.only or case.name in options.only]
    options.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache
        os.environ["TRITON_CACHE_DIR"] = str(Path(cache, "triton"))
        os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # compiles in this process, where it can be seen
        import_once(options.suite)
        about = describe(cases[0], options.output)
        if "error" in about:
            return 1
        pulse, results = Pulse(), dict[Job, Result]()
        for case in cases:
            began = time.monotonic()
            measured = measure(jobs(case, time_only=options.time_only), options.output, pulse)
            results |= measured
            calm = min((result["calm"] for result in measured.values() if "calm" in result), default=0)
            print(
                f"{case.name}: {time.monotonic() - began:.1f} s, {calm} calm rounds at least, "
                f"pulse {pulse.least_ns / 1e3:.0f} µs",
                file=sys.stderr,
                flush=True,
            )
            manifest = _manifest(options.suite, cases, results, about)  # after each case, should a later one never end
            (options.output / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    print(summary(manifest))
    return 0 if len(manifest["cases"]) == len(cases) else 1


def import_once(suite: str) -> None:
    """Imports what the processes of a suite will need, before they are forked."""
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # looks for a device without starting CUDA before the forks
    for module in (*IMPORTED_ONCE, *IMPORTED_FOR.get(suite, ())):
        importlib.import_module(module)


def _manifest(suite: str, cases: Sequence[Case], results: dict[Job, Result], about: Result) -> dict[str, Any]:
    entries = []
    for case in cases:
        times = {job.variant: result for job, result in results.items() if job.case == case and job.work == TIME}
        captures = {job.variant: result for job, result in results.items() if job.case == case and job.work == CAPTURE}
        if FAULTY in times and FIXED in times:
            entries.append(_entry(case, times, captures))
    return {
        "schema": SCHEMA,
        "suite": suite,
        **about,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "how": HOW,
        "cases": entries,
    }


def _entry(case: Case, times: dict[str, Result], captures: dict[str, Result]) -> dict[str, Any]:
    faulty, fixed = times[FAULTY], times[FIXED]
    return {
        "name": case.name,
        "cause": case.cause,
        "fix": case.fix,
        "trap": case.trap,
        "innocent": case.innocent,
        "cold": case.cold,
        "steps": case.steps,
        "stacks": case.stacks,
        "planted": [asdict(line) for line in case.planted_lines()],
        "bare_step_ns": {FAULTY: faulty, FIXED: fixed},
        "gain": round(faulty["step_ns"] / fixed["step_ns"], 3),
        "other_fixes": {fix: times[fix] for fix in case.also if fix in times},
        "innocent_step_ns": times.get(case.innocent or "", fixed if not case.fix else None),
        "profiled_step_ns": {
            variant: captures[variant]["step_ns"] for variant in (FAULTY, PLAIN, FIXED) if variant in captures
        },
    }


def summary(manifest: dict[str, Any]) -> str:
    """The manifest as lines of text."""
    lines = []
    for case in manifest["cases"]:
        bare = case["bare_step_ns"]
        spread = [(bare[side]["max_ns"] - bare[side]["min_ns"]) / bare[side]["step_ns"] for side in (FAULTY, FIXED)]
        others = {**case["other_fixes"], f"({case['innocent']})": case["innocent_step_ns"]}
        notes = ", ".join(
            f"{fix} {bare[FAULTY]['step_ns'] / time['step_ns']:.2f}" for fix, time in others.items() if time
        )
        recorded = "/".join(f"{time / 1e6:.3f}" for time in case["profiled_step_ns"].values())
        lines.append(
            f"{case['name']:34} {case['cause']:10} {case['fix'] or '-':18} {bare[FAULTY]['step_ns'] / 1e6:9.3f} -> "
            f"{bare[FIXED]['step_ns'] / 1e6:9.3f} ms x{case['gain']:<7.2f} +-{spread[0]:.0%}/{spread[1]:.0%} "
            f"recorded {recorded} {notes}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
