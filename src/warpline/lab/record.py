"""Records the planted faults: a stopwatch and a profile of each case, faulty and cured.

    PYTHONPATH=src python3 -m warpline.lab.record -o faults

Needs torch and a CUDA device, and nothing else. Everything is timed before the profiler is first used, because
the profiler stays attached to the process. What is measured runs in child processes, forked before CUDA starts, so
that a case about a process's first calls gets a new process, and a case that fails costs only itself.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import importlib
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from warpline.lab.faults import CASES, Case
from warpline.lab.snapshot import absolute_paths, capture, profiled_step_ns, scrubbed, write_compressed
from warpline.lab.stopwatch import time_first_steps, time_steps

SCHEMA = "warpline.faults/1"
MANIFEST = "faults.json"
FAULTY, CURED, PLAIN = "faulty", "cured", "plain"
COLD_REPEATS = 3
CASE_LIMIT_S = 60
Job = tuple[str, str]
"""A case and what to build of it: `faulty`, `cured`, or the name of another cure."""
Result = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Records the cases asked for, and writes the manifest of those that worked."""
    parser = argparse.ArgumentParser(prog="python3 -m warpline.lab.record", description="records the planted faults")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder to write to")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=[case.name for case in CASES])
    parser.add_argument("--time-only", action="store_true", help="only the stopwatch, no captures")
    options = parser.parse_args(arguments)
    cases = [case for case in CASES if not options.only or case.name in options.only]
    options.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache
        os.environ["TRITON_CACHE_DIR"] = str(Path(cache, "triton"))
        os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # compiles in this process, where it can be seen
        importlib.import_module("torch")  # once for all children
        times = _in_children(_timing_jobs(cases), _time, options.output)
        captures = {} if options.time_only else _in_children(_capture_jobs(cases), _capture, options.output)
        about = _in_children([(cases[0].name, "device")], _describe, options.output)
    manifest = _manifest(cases, times, captures, next(iter(about.values()), {}))
    (options.output / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    print(summary(manifest))
    return 0 if len(manifest["cases"]) == len(cases) else 1


def _timing_jobs(cases: Sequence[Case]) -> list[Job]:
    jobs = []
    for case in cases:
        innocent = (case.innocent,) if case.innocent and case.fix else ()
        jobs += [(case.name, variant) for variant in (FAULTY, CURED, *case.also, *innocent)]
    return jobs


def _capture_jobs(cases: Sequence[Case]) -> list[Job]:
    return [(case.name, variant) for case in cases for variant in (FAULTY, *((PLAIN,) if case.stacks else ()), CURED)]


def _build(case: Case, variant: str) -> Callable[[], object]:
    if variant in (FAULTY, PLAIN):
        return case.faulty()
    return case.cured(None if variant == CURED else variant)


def _time(torch: Any, case: Case, variant: str, folder: Path) -> Result:
    if not case.cold:
        return asdict(time_steps(torch, _build(case, variant)))
    repeats = 1 if _needs_own_process((case.name, variant)) else COLD_REPEATS
    return asdict(time_first_steps(torch, lambda: _build(case, variant), case.steps, repeats))


def _capture(torch: Any, case: Case, variant: str, folder: Path) -> Result:
    stacks = variant == FAULTY and case.stacks
    if case.cold:
        capture(torch, lambda: None, steps=1, stacks=stacks, cold=True)  # the profiler's own cold start
    text = capture(torch, _build(case, variant), steps=case.steps, stacks=stacks, cold=case.cold)
    text = scrubbed(text, torch)
    for path in absolute_paths(text):
        print(f"{case.name} {variant}: a path of this machine is in the file: {path}", file=sys.stderr, flush=True)
    name = case.name if variant == FAULTY else f"{case.name}.{variant}"
    write_compressed(text, folder / f"{name}.json.gz")
    return {"step_ns": profiled_step_ns(text), "stacks": stacks}


def _describe(torch: Any, case: Case, variant: str, folder: Path) -> Result:
    return {"device": torch.cuda.get_device_name(), "torch": str(torch.__version__), "cuda": str(torch.version.cuda)}


Work = Callable[[Any, Case, str, Path], Result]


def _in_children(jobs: Sequence[Job], work: Work, folder: Path) -> dict[Job, Result]:
    """Runs the jobs in order, in as few processes as they and their failures need."""
    done: dict[Job, Result] = {}
    alone = [job for job in jobs if _needs_own_process(job)]
    shared = [job for job in jobs if job not in alone]
    while shared:
        outcome = _child(shared, work, folder)
        done |= outcome
        shared = shared[len(outcome) :]
    for job in alone:
        outcomes = [_child([job], work, folder)[job] for _ in range(COLD_REPEATS if work is _time else 1)]
        done[job] = _median_of(outcomes) if work is _time else outcomes[0]
    return {job: result for job, result in done.items() if "error" not in result}


def _needs_own_process(job: Job) -> bool:
    return _case(job).own_process and job[1] in (FAULTY, PLAIN)


def _case(job: Job) -> Case:
    return next(case for case in CASES if case.name == job[0])


def _median_of(outcomes: list[Result]) -> Result:
    ordered = sorted(outcomes, key=lambda outcome: int(outcome.get("median_ns", 0)))
    middle = ordered[len(ordered) // 2]
    return {
        **middle,
        "min_ns": ordered[0].get("min_ns"),
        "max_ns": ordered[-1].get("max_ns"),
        "repeats": len(outcomes),
    }


def _child(jobs: Sequence[Job], work: Work, folder: Path) -> dict[Job, Result]:
    """Runs jobs in a new process until one fails; a failure is a result with an `error`."""
    log = folder / "jobs.jsonl"
    log.write_text("")
    process = multiprocessing.get_context("fork").Process(target=_run, args=(jobs, work, folder, log))
    process.start()
    process.join()
    results = [json.loads(line) for line in log.read_text().splitlines()]
    log.unlink()
    if len(results) < len(jobs) and not (results and "error" in results[-1]):
        results.append({"error": f"the process ended with code {process.exitcode}"})
    for job, result in zip(jobs, results, strict=False):
        if "error" in result:
            print(f"{' '.join(job)}: {result['error']}", file=sys.stderr, flush=True)
    return dict(zip(jobs, results, strict=False))


def _run(jobs: Sequence[Job], work: Work, folder: Path, log: Path) -> None:
    """A child's life: each job's result is written down before the next begins."""
    torch = importlib.import_module("torch")
    signal.signal(signal.SIGALRM, _too_long)
    for job in jobs:
        signal.alarm(CASE_LIMIT_S)
        try:
            result = work(torch, _case(job), job[1], folder)
        except Exception as error:
            traceback.print_exc()
            result = {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
        signal.alarm(0)
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")
        if "error" in result:
            os._exit(1)
        gc.collect()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()


def _too_long(number: int, frame: object) -> None:
    raise TimeoutError(f"the case took over {CASE_LIMIT_S} s")


def _manifest(
    cases: Sequence[Case], times: dict[Job, Result], captures: dict[Job, Result], about: Result
) -> dict[str, Any]:
    entries = []
    for case in cases:
        faulty, cured = times.get((case.name, FAULTY)), times.get((case.name, CURED))
        if not faulty or not cured:
            continue
        entries.append(_entry(case, faulty, cured, times, captures))
    return {
        "schema": SCHEMA,
        **about,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "how": "wall time of a step over many steps with one wait for the GPU at the end, no profiler attached; "
        "median, least and most of some repeats. A cold start's steps are the first after it is built.",
        "cases": entries,
    }


def _entry(
    case: Case, faulty: Result, cured: Result, times: dict[Job, Result], captures: dict[Job, Result]
) -> dict[str, Any]:
    recorded = {
        variant: captures[case.name, variant]["step_ns"]
        for variant in (FAULTY, PLAIN, CURED)
        if (case.name, variant) in captures
    }
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
        "bare_step_ns": {FAULTY: faulty, CURED: cured},
        "gain": round(faulty["median_ns"] / cured["median_ns"], 3),
        "other_cures": {cure: times[case.name, cure] for cure in case.also if (case.name, cure) in times},
        "innocent_step_ns": times.get((case.name, case.innocent or ""), cured if not case.fix else None),
        "profiled_step_ns": recorded,
    }


def summary(manifest: dict[str, Any]) -> str:
    """The manifest as lines of text."""
    lines = []
    for case in manifest["cases"]:
        bare = case["bare_step_ns"]
        spread = [(bare[side]["max_ns"] - bare[side]["min_ns"]) / bare[side]["median_ns"] for side in (FAULTY, CURED)]
        others = {**case["other_cures"], f"({case['innocent']})": case["innocent_step_ns"]}
        notes = ", ".join(
            f"{cure} {bare[FAULTY]['median_ns'] / time['median_ns']:.2f}" for cure, time in others.items() if time
        )
        recorded = "/".join(f"{time / 1e6:.3f}" for time in case["profiled_step_ns"].values())
        lines.append(
            f"{case['name']:34} {case['cause']:10} {case['fix'] or '-':18} {bare[FAULTY]['median_ns'] / 1e6:9.3f} -> "
            f"{bare[CURED]['median_ns'] / 1e6:9.3f} ms x{case['gain']:<7.2f} +-{spread[0]:.0%}/{spread[1]:.0%} "
            f"recorded {recorded} {notes}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
