"""Records the noise study: many runs of a few programs, as they are and 3 % slower, and one layer in four forms.

    python -m faults.noise -o DIR --minutes 4.5

Needs torch and a CUDA device; `--tiny` tries everything at toy sizes on a CPU. Every run is a process of its own,
forked before CUDA starts. A batch of processes is built at once; then they record one at a time, A and B in turn, and
write their files when all have recorded. The result is one archive, `noise.tar`, and `noise.json`, which lists it.
Both are complete after every batch. What fails costs only itself.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import functools
import json
import os
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from faults.actor import Actor, Worker
from faults.jobs import Result
from faults.noise import workers
from faults.noise.layer import layer_forms
from faults.noise.programs import PROGRAMS, Program
from faults.record import import_once

SCHEMA = "warpline.noise/1"
ARCHIVE, LIST = "noise.tar", "noise.json"
MAX_ARCHIVE_BYTES = 15_000_000
RUNS_TOGETHER = 16
"""About so many in a batch."""
TRUTHS = 3
"""Processes that time a program without a profiler."""
LAYER_TRACES = 3
CORRECTIONS = 4
"""How often the extra work of a program is measured, and corrected if it is not 3 %."""
TRUTH_SHARE, LAYER_SHARE = 0.45, 0.5
"""By then of the time, no program is timed again, and the layer's forms are not begun."""


@dataclass(slots=True)
class Study:
    """What is recorded, and where it goes."""

    folder: Path
    scratch: Path
    tiny: bool
    programs: Sequence[Program]
    began: float
    limit_s: float
    found: dict[str, Any]

    def share(self) -> float:
        """How much of the time is gone."""
        return (time.monotonic() - self.began) / self.limit_s

    def say(self, text: str) -> None:
        """A line of progress."""
        line = f"{time.monotonic() - self.began:6.1f} s  {text}"
        self.found["log"].append(line)
        print(line, flush=True)

    def save(self, results: Sequence[Result] = ()) -> None:
        """Adds the files of a batch to the archive, and writes the list."""
        with tarfile.open(self.folder / ARCHIVE, "a") as tar:
            for result in results:
                path = self.scratch / result["file"]
                if tar.offset + result["bytes"] < MAX_ARCHIVE_BYTES:
                    tar.add(path, result["file"])
                else:
                    result["file"] = None
                path.unlink()
        (self.folder / LIST).write_text(json.dumps(self.found, indent=1) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Records everything within the time."""
    parser = argparse.ArgumentParser(prog="python -m faults.noise", description="Record the noise study.")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", required=True, help="folder to write to")
    parser.add_argument("--minutes", type=float, default=4.5, help="begin no batch after this time (4.5)")
    parser.add_argument(
        "--only", nargs="+", choices=[p.name for p in PROGRAMS], help="record these programs, and not the layer's forms"
    )
    parser.add_argument(
        "--extra-of", type=Path, metavar="DIR", help="take the added work of an earlier study, and do not measure it"
    )
    parser.add_argument("--tiny", action="store_true", help="try it at toy sizes on a CPU")
    options = parser.parse_args(arguments)
    began = time.monotonic()
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / ARCHIVE).unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(Path(scratch, "inductor"))
        os.environ["TRITON_CACHE_DIR"] = str(Path(scratch, "triton"))
        os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
        import_once("planted")
        chosen = [p for p in PROGRAMS if p.name in (options.only or [p.name])]
        found, limit_s = _about(options.tiny), 60 * options.minutes
        study = Study(options.output, Path(scratch), options.tiny, chosen, began, limit_s, found)
        if "error" in study.found:
            return 1
        timing = functools.partial(take_programs, earlier=options.extra_of) if options.extra_of else time_programs
        for part in (timing, *(() if options.only else (record_layer,)), record_runs):
            try:
                part(study)
            except Exception as error:
                study.found["failures"].append(f"{type(error).__name__}: {error}")
                study.say(study.found["failures"][-1])
            study.save()
    runs = study.found["runs"]
    study.say(f"{len(runs)} runs, {len(study.found['layer'])} layers, {len(study.found['failures'])} failures")
    return 0 if runs and not study.found["failures"] else 1


def time_programs(study: Study) -> None:
    """Finds the work that makes each program 3 % slower, and measures in some processes how much slower it is."""
    for program in study.programs:
        study.found["programs"][program.name] = {"pace": program.pace, "extra": program.extra, "truth": [], "tried": []}
    wanted = [program for program in study.programs for _ in range(TRUTHS)]
    with built([(p.name, functools.partial(workers.stopwatch, p, study.tiny)) for p in wanted]) as actors:
        for program in study.programs:
            _time_program(study, program, [actor for p, actor in zip(wanted, actors, strict=True) if p is program])


def take_programs(study: Study, earlier: Path) -> None:
    """Takes the work that makes each program slower, and how much slower, from an earlier study."""
    known = json.loads((earlier / LIST).read_text(encoding="utf-8"))["programs"]
    study.found["programs"] = {program.name: known[program.name] for program in study.programs}


def _time_program(study: Study, program: Program, actors: Sequence[Actor]) -> None:
    """Measures and corrects until the stopwatch of all processes finds 3 %, or the time for it is over."""
    found = study.found["programs"][program.name]
    if found["extra"] is None:
        found["extra"] = actors[0].ask(workers.MEASURE).get("extra")
    for left in reversed(range(CORRECTIONS)):
        answers = [actor.ask(found["extra"]) for actor in actors if not actor.failed and found["extra"] is not None]
        found["truth"] = [answer for answer in answers if "error" not in answer]
        if not found["truth"]:
            return
        a, b = ([ns for one in found["truth"] for ns in one[side]] for side in ("a_ns", "b_ns"))
        slower = workers.typical_ratio(a, b) - 1
        found["tried"].append([found["extra"], round(slower, 5)])
        study.say(f"{program.name}: extra {found['extra']}, {100 * slower:+.2f} %")
        is_right = abs(slower - workers.SLOWDOWN) <= workers.TOLERANCE
        if is_right or program.extra is not None or not left or study.share() > TRUTH_SHARE:
            return
        found["extra"] = workers.corrected(found["tried"])


def record_layer(study: Study) -> None:
    """Records the layer in its four forms, each in some processes."""
    if study.share() > LAYER_SHARE:
        raise TimeoutError("no time is left for the layer")
    forms = tuple(layer_forms(import_module("torch"), tiny=True))
    wanted = [(form, number) for number in range(LAYER_TRACES) for form in forms]

    def form_of(form: str, torch: Any) -> Callable[[], object]:
        return layer_forms(torch, study.tiny)[form]()

    jobs = [(functools.partial(form_of, form), f"layer_{form}.{number}.json.gz") for form, number in wanted]
    for (form, number), result in zip(wanted, record_batch(study, jobs), strict=True):
        study.found["layer"].append({"form": form, "number": number, **result})


def record_runs(study: Study) -> None:
    """Records batches of runs of each program and form until the time is over."""
    programs = [(p, study.found["programs"][p.name]["extra"]) for p in study.programs]
    forms = [(p, form, extra * (form == "b")) for p, extra in programs if extra is not None for form in "ab"]
    batch, longest = 0, 0.0
    while study.share() + longest / study.limit_s < 1:
        began = time.monotonic()
        order = order_of(forms, batch)
        names = [f"{p.name}.{form}.{batch:02d}-{place:02d}.json.xz" for place, (p, form, _) in enumerate(order)]
        jobs = [
            (functools.partial(_run_of, study.tiny, p, extra), name)
            for (p, _, extra), name in zip(order, names, strict=True)
        ]
        results = record_batch(study, jobs)
        for (p, form, _), result in zip(order, results, strict=True):
            study.found["runs"].append({"program": p.name, "form": form, "batch": batch, **result})
        batch, longest = batch + 1, max(longest, time.monotonic() - began)
        study.save()


def order_of(forms: Sequence[Any], batch: int) -> list[Any]:
    """The runs of a batch: forms in turn, there and back. No form has a fixed place: each batch begins with another."""
    first, times = batch % len(forms), round(RUNS_TOGETHER / len(forms))
    there = [*forms[first:], *forms[:first]]
    return [one for number in range(times) for one in (there if number % 2 else there[::-1])]


def _run_of(tiny: bool, program: Program, extra: int, torch: Any) -> Callable[[], object]:
    step = program.build(torch, tiny)
    return lambda: step(extra)


Job = tuple[Callable[[Any], Callable[[], object]], str]
"""What builds the step, and the name of the file."""


def record_batch(study: Study, jobs: Sequence[Job]) -> list[Result]:
    """Records each job in a process of its own: all are built at once, record one at a time, and write at once."""
    began = time.monotonic()
    builders = [
        (name, functools.partial(workers.recording, build, study.scratch / name, study.tiny)) for build, name in jobs
    ]
    with built(builders) as actors:
        ready = time.monotonic()
        for actor in actors:
            if not actor.failed:
                actor.ask(workers.MEASURE)
        recorded = time.monotonic()
        for actor in actors:
            actor.tell(workers.KEEP)
        results = [actor.answer() for actor in actors]
    study.save([result for result in results if "error" not in result])
    study.found["failures"] += [
        f"{name}: {r['error']}" for (_, name), r in zip(jobs, results, strict=True) if "error" in r
    ]
    study.say(
        f"{len(jobs)} recordings: built in {ready - began:.1f} s, recorded in {recorded - ready:.1f} s, written in "
        f"{time.monotonic() - recorded:.1f} s, archive {(study.folder / ARCHIVE).stat().st_size / 1e6:.1f} MB"
    )
    return results


@contextlib.contextmanager
def built(builders: Sequence[tuple[str, Callable[[], Worker]]]) -> Iterator[list[Actor]]:
    """Processes that have built their work."""
    actors = [Actor(name, build) for name, build in builders]
    try:
        for actor in actors:
            actor.answer()
        yield actors
    finally:
        for actor in actors:
            actor.tell(None)
        for actor in actors:
            actor.end()


def _about(tiny: bool) -> dict[str, Any]:
    with built([("device", functools.partial(workers.describing, tiny))]) as actors:
        about = actors[0].ask(workers.MEASURE)
    return {
        "schema": SCHEMA,
        **about,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "how": (
            f"{workers.PLAN.steps} steps of torch.profiler with shapes, as `warpline run` records by default. "
            "`step_ns` and `busy_ns` are from there, `bare_step_ns` from its stopwatch before. `truth` is without a "
            "profiler: one process each, steps as they are (a) and with `extra` work (b) in turn, wall time of a step "
            "in a short burst of them."
        ),
        "programs": {},
        "layer": [],
        "runs": [],
        "failures": [],
        "log": [],
    }


if __name__ == "__main__":
    raise SystemExit(main())
