"""Time and memory of `warpline diagnose FOLDER` over the number of ranks, each of about 50 MB of JSON text.

    python -m benchmarks.ranks.scale FOLDER [--ranks 4 8 16] [--workers 1 2]

Simulated jobs are written to FOLDER (about 7 s and 5 MB a rank) and used again by the next call. Of more than 16 ranks,
every further 16 repeat the times of the first. Every command runs in a fresh process. `first` reads every rank and
stores its summary, `again` answers from the summaries. Memory is sampled in /proc (Linux): `tree` is the largest sum of
resident memory of all processes, which counts shared libraries once for each process; `main` and `worker` are the
largest peaks of one process.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from msgspec import Struct

from benchmarks.ranks.simulate import listed, random_setting, run, write

STEPS, LAYERS = 40, 190
"""An FSDP job of this size has 76,200 kernels and 50.8 MB of text a rank."""
SIMULATED_RANKS = 16
SAMPLE_S = 0.05


class Cost(Struct, frozen=True):
    """What one command took."""

    seconds: float
    cpu_s: float
    tree_bytes: int
    main_bytes: int
    worker_bytes: int


def job_folder(folder: Path, ranks: int) -> Path:
    """A simulated job with a slow rank, written unless it is there."""
    job = folder / f"{ranks}_ranks"
    if not job.exists():
        partial = job.with_suffix(".partial")
        if ranks > SIMULATED_RANKS:
            repeat(job_folder(folder, SIMULATED_RANKS), partial, ranks)
        else:
            setting = random_setting(1, "slow_kernels", ranks)
            setting.steps, setting.layers = STEPS, LAYERS
            write(setting, run(setting)[0], partial)
        partial.rename(job)
    return job


def repeat(job: Path, folder: Path, ranks: int) -> None:
    """Write a job of more ranks: the files of a smaller one again under other numbers, and one group of all ranks."""
    files = sorted(job.rglob("*.json.gz"))
    folder.mkdir(parents=True)
    few, many = (tuple(range(count)) for count in (len(files), ranks))
    for turn, file in itertools.product(range(ranks // len(files)), files):
        text = gzip.decompress(file.read_bytes()).decode()
        head, mark, events = text.partition('"traceEvents"')
        info = json.loads(f"{head.rstrip().removesuffix(',')}}}")
        rank = info["distributedInfo"]["rank"] + turn * len(files)
        info["distributedInfo"] |= {"rank": rank, "world_size": ranks}
        info["distributedInfo"]["pg_config"][0]["ranks"] = list(many)
        events = events.replace(listed(few), listed(many)).replace(
            f'"Group size": {len(few)}', f'"Group size": {ranks}'
        )
        with gzip.open(folder / f"rank{rank}_trace.json.gz", "wt", compresslevel=1) as opened:
            opened.write(f"{json.dumps(info)[:-1]},{mark}{events}")


def cost(job: Path, workers: int, cache: str) -> Cost:
    """Run `warpline diagnose` on the job, and sample the memory of its processes."""
    command = [sys.executable, "-m", "warpline", "diagnose", str(job), "--json", "--workers", str(workers)]
    before, start = _cpu_s(), time.perf_counter()
    child = subprocess.Popen(command, env=os.environ | {"WARPLINE_CACHE": cache}, stdout=subprocess.DEVNULL)
    tree = main = worker = 0
    while child.poll() is None:
        sizes = [_memory(process) for process in _tree(child.pid)]
        tree = max(tree, sum(now for now, _ in sizes))
        main = max([main, *(peak for _, peak in sizes[:1])])
        worker = max([worker, *(peak for _, peak in sizes[1:])])
        time.sleep(SAMPLE_S)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {child.returncode}")
    return Cost(time.perf_counter() - start, _cpu_s() - before, tree, main, worker)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _tree(process: int) -> list[int]:
    """A process and all below it."""
    try:
        children = [
            text for path in Path(f"/proc/{process}/task").glob("*/children") for text in path.read_text().split()
        ]
    except OSError:  # it has ended
        children = []
    return [process, *(one for child in children for one in _tree(int(child)))]


def _memory(process: int) -> tuple[int, int]:
    """Resident memory of a process, now and at its peak."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0, 0
    kib = {line.split(":")[0]: int(line.split()[1]) for line in lines if line.startswith(("VmRSS", "VmHWM"))}
    return kib.get("VmRSS", 0) << 10, kib.get("VmHWM", 0) << 10


def main() -> None:
    """Print one row for each job, number of workers, and state of the summaries."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ranks", type=int, nargs="+", default=[4, 8, 16])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    asked = parser.parse_args()
    print("| ranks | workers | | seconds | CPU seconds | tree MiB | main MiB | worker MiB | load |")
    print("|---|---|---|---|---|---|---|---|---|")
    for ranks in asked.ranks:
        job = job_folder(asked.folder, ranks)
        for workers in asked.workers:
            with tempfile.TemporaryDirectory() as cache:
                for when in ("first", "again"):
                    took = cost(job, workers, cache)
                    sizes = (took.tree_bytes, took.main_bytes, took.worker_bytes)
                    memory = " | ".join(f"{size / 2**20:,.0f}" for size in sizes)
                    times = f"{took.seconds:.1f} | {took.cpu_s:.1f}"
                    print(
                        f"| {ranks} | {workers} | {when} | {times} | {memory} | {os.getloadavg()[0]:.1f} |", flush=True
                    )


if __name__ == "__main__":
    main()
