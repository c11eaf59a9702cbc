"""Records the faulty step of some cases three ways: torch.profiler without and with Python stacks, and Nsight Systems.

    python -m faults.three_ways --suite sealed --only NAME -o DIR
    python -m faults.three_ways --suite sealed --only NAME -o DIR --nsys /opt/nvidia/nsys

Each case gives `NAME.plain.json.gz`, `NAME.json.gz` (with stacks), `NAME.nsys-rep` and `NAME.nsys.sqlite.gz`. Each
recording has a process of its own and a time limit, so that one that fails costs only itself.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import gzip
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from faults.calm_host import keep_to_calm_cores
from faults.jobs import CAPTURE, FAULTY, PLAIN, Job
from faults.loop import STEPS
from faults.programs import SUITES, Case
from faults.record import import_once
from faults.rounds import HOLD, KEEP, MEASURE, actor_of

NSYS_LIMIT_S, EXPORT_LIMIT_S = 180.0, 120.0
TORCH_WAYS = (PLAIN, FAULTY)
"""Without Python stacks, and with them."""
ROOT = Path(__file__).parents[1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Records the cases asked for; returns 1 if a recording is missing."""
    parser = argparse.ArgumentParser(prog="python -m faults.three_ways", description="Record faulty steps three ways.")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", required=True, help="folder to write to")
    parser.add_argument("--suite", choices=SUITES, default="planted", help="the suite of the cases (planted)")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="record only these cases of the suite")
    parser.add_argument("--nsys", default="nsys", metavar="PATH", help="the program nsys (from PATH)")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"steps in a recording of nsys, at most ({STEPS})")
    options = parser.parse_args(arguments)
    suite = SUITES[options.suite]
    unknown = set(options.only or ()) - {case.name for case in suite}
    if unknown:
        parser.error(f"the suite {options.suite} has no case {', '.join(sorted(unknown))}")
    nsys = shutil.which(options.nsys)
    if nsys is None:
        parser.error(f"there is no program {options.nsys}")
    options.output.mkdir(parents=True, exist_ok=True)
    import_once(options.suite)
    missing, cores = 0, frozenset(os.sched_getaffinity(0))
    for case in suite:
        if not options.only or case.name in options.only:
            keep_to_calm_cores(cores)
            failures = [failure for way in TORCH_WAYS if (failure := with_torch(case, way, options.output))]
            failures += with_nsys(nsys, options.suite, case, options.output, options.steps)
            missing += len(failures)
            print(f"{case.name}: {'; '.join(failures) or 'recorded'}", file=sys.stderr, flush=True)
    return 1 if missing else 0


def with_torch(case: Case, variant: str, folder: Path) -> str | None:
    """Records a case with torch.profiler; returns why it failed, if it did."""
    actor = actor_of(torch_job(case, variant), folder)
    try:
        for result in (actor.answer(), actor.ask(MEASURE), actor.ask(HOLD), actor.ask(KEEP)):
            if "error" in result:
                return f"{variant}: {result['error']}"
        return None
    finally:
        actor.end()


def torch_job(case: Case, variant: str) -> Job:
    """The job of a recording; with stacks, even if the suite records the case without."""
    return Job(dataclasses.replace(case, stacks=True), CAPTURE, variant)


def with_nsys(nsys: str, suite: str, case: Case, folder: Path, steps: int) -> list[str]:
    """Records a case with Nsight Systems and exports it to compressed SQLite; returns why it failed, if it did."""
    profile, export = profile_command(nsys, suite, case, folder, steps), export_command(nsys, case, folder)
    for command, limit_s in ((profile, NSYS_LIMIT_S), (export, EXPORT_LIMIT_S)):
        failure = run(command, limit_s)
        if failure:
            return [f"nsys {command[1]}: {failure}"]
    compress(sqlite_file(case, folder))
    return []


def profile_command(nsys: str, suite: str, case: Case, folder: Path, steps: int) -> list[str]:
    """Records the steps of a case, without its warm-up."""
    program = [sys.executable, "-m", "faults.loop", "--suite", suite, "--case", case.name, "--steps", str(steps)]
    return [
        nsys,
        "profile",
        "-t",
        "cuda,nvtx,osrt",
        "--sample=none",
        "--cpuctxsw=none",
        "--capture-range=cudaProfilerApi",
        "--capture-range-end=stop",
        "--force-overwrite",
        "true",
        "-o",
        str(folder.absolute() / case.name),
        *program,
    ]


def export_command(nsys: str, case: Case, folder: Path) -> list[str]:
    """Exports the recording of a case to SQLite."""
    options = ["--type", "sqlite", "--force-overwrite", "true", "-o", str(sqlite_file(case, folder))]
    return [nsys, "export", *options, str(folder.absolute() / f"{case.name}.nsys-rep")]


def sqlite_file(case: Case, folder: Path) -> Path:
    """Where the export of a case lies before it is compressed."""
    return folder.absolute() / f"{case.name}.nsys.sqlite"


def run(command: Sequence[str], limit_s: float) -> str | None:
    """Runs a command and all that it starts, for so long at most; returns why it failed, if it did."""
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        output, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # the recorder and the program that it started
        process.communicate()
        return f"it took over {limit_s:.0f} s"
    if process.returncode:
        return f"exit status {process.returncode}: {' '.join(output.split())[-300:]}"
    return None


def compress(path: Path) -> None:
    """Replaces a file by its compressed form, the same bytes whenever it is made."""
    with (
        path.open("rb") as plain,
        path.with_name(f"{path.name}.gz").open("wb") as file,
        gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as packed,
    ):
        shutil.copyfileobj(plain, packed)
    path.unlink()


if __name__ == "__main__":
    raise SystemExit(main())
