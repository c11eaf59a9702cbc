"""Speed and memory of opening and diagnosing traces; `make bench` runs it.

    python benchmarks/run.py [--source small.json.gz] [--hta] [--output results.json]
    python benchmarks/run.py --table results.json

Everything is measured in fresh processes, best of several, from a warm file cache: the scan of a gigabyte, a first
and a second (cached) open, `warpline diagnose` with findings on 1 to 20 copies of the source, start-up, and, with
--hta, Holistic Trace Analysis on ten copies in the same run (in an environment of its own, made on the first call).
Prints the tables of the README; `--table` prints those of an earlier result.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
DEMO = ROOT / "src" / "warpline" / "data" / "demo.json.xz"
GIGABYTE = 1e9
COPIES = (1, 2, 5, 10, 20)
RUNS = 3

PROBE = """
import resource, subprocess, sys, time
begin = time.perf_counter()
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
seconds, used = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
print(code, seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)
"""
OPEN = """
import sys, time
from warpline.trace.open import open_trace
for _ in range(2):
    begin = time.perf_counter(); trace = open_trace(sys.argv[1]); trace.gpu; print(time.perf_counter() - begin)
"""
HTA = """
import logging, sys, warnings; warnings.filterwarnings("ignore"); logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
print(TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="").get_temporal_breakdown(visualize=False))
"""


def best(command: list[str], environment: dict[str, str], runs: int = RUNS) -> dict[str, Any]:
    """Seconds, CPU seconds of all cores and peak memory of a command, of the fastest of several runs."""
    rows = []
    for _ in range(runs):
        out = subprocess.run(
            [sys.executable, "-c", PROBE, *command], capture_output=True, text=True, env=environment, check=True
        )
        code, seconds, used, peak = out.stdout.split()
        if code != "0":
            raise SystemExit(f"{' '.join(command)} failed: {out.stderr[-300:]}")
        row = {"seconds": round(float(seconds), 3), "cpu_s": round(float(used), 2), "peak_mb": round(float(peak) / 1e6)}
        rows.append(row)
    return min(rows, key=lambda row: row["seconds"])


def make(source: Path, target: Path, *amount: str) -> Path:
    subprocess.run([sys.executable, str(HERE / "make_trace.py"), str(source), str(target), *amount], check=True)
    return target


def measure(source: Path, folder: Path, with_hta: bool) -> dict[str, Any]:
    warpline = [sys.executable, "-c", "from warpline.cli.main import main; main()"]
    fresh = {**os.environ, "WARPLINE_CACHE": str(folder / "cache")}
    result: dict[str, Any] = {"source": source.name, "start-up": start_up(warpline, fresh), "diagnose": {}}
    for copies in COPIES:
        trace = make(source, folder / f"x{copies}.json.gz", "--copies", str(copies))
        command = [*warpline, "diagnose", str(trace), "--json", "--no-cache"]
        result["diagnose"][f"x{copies}"] = best(command, fresh) | {"gz_mb": round(trace.stat().st_size / 1e6, 1)}
        if copies == 10:
            opens = subprocess.run(
                [sys.executable, "-c", OPEN, str(trace)], capture_output=True, text=True, env=fresh, check=True
            )
            first, second = (float(line) for line in opens.stdout.split())
            result["open x10"] = {
                "first_s": round(first, 3),
                "second_s": round(second, 3),
                "ratio": round(first / second, 1),
            }
            result["diagnose x10, cached"] = best([*warpline, "diagnose", str(trace), "--json"], fresh)
            result["diagnose x10, no findings"] = best([*command, "--no-why"], fresh)
            if with_hta:
                result["hta x10"] = best([str(hta_python()), "-c", HTA, str(trace)], fresh, runs=1)
                hta = result["hta x10"]["seconds"]
                result["times faster than HTA"] = {
                    "first": round(hta / result["diagnose"]["x10"]["seconds"], 1),
                    "cached": round(hta / result["diagnose x10, cached"]["seconds"], 1),
                }
        trace.unlink()
    plain = make(source, folder / "gigabyte.json", "--bytes", str(GIGABYTE))
    out = subprocess.run(
        [sys.executable, str(HERE / "kineto_scan.py"), str(plain), "--json"], capture_output=True, text=True, check=True
    )
    result["scan of a gigabyte"] = json.loads(out.stdout)["results"]
    result["open, plain gigabyte"] = best([*warpline, "diagnose", str(plain), "--json", "--no-cache"], fresh)
    return result


def tables(result: dict[str, Any]) -> str:
    """The results as Markdown: by size, against HTA, and the rest in sentences."""
    sizes = result["diagnose"]
    first, last = (sizes[f"x{copies}"] for copies in (COPIES[0], COPIES[-1]))
    lines = ["| `warpline diagnose --json`, no cache | " + " | ".join(f"×{size[1:]}" for size in sizes) + " |"]
    lines.append("|---|" + "---|" * len(sizes))
    for label, key in (("seconds", "seconds"), ("CPU seconds of both cores", "cpu_s"), ("peak MB", "peak_mb")):
        lines.append(f"| {label} | " + " | ".join(str(row[key]) for row in sizes.values()) + " |")
    more_s = (last["cpu_s"] - first["cpu_s"]) / (COPIES[-1] - COPIES[0])
    middle = first["cpu_s"] + more_s * (10 - COPIES[0])
    lines += ["", f"Each copy adds {more_s:.3f} CPU seconds: a straight line from ×{COPIES[0]} to ×{COPIES[-1]} has "]
    lines[-1] += f"{middle:.2f} at ×10, where {sizes['x10']['cpu_s']} are measured."
    again, without = result["diagnose x10, cached"], result["diagnose x10, no findings"]
    lines.append(f"×10 asked again: {again['seconds']} s. Without findings: {without['seconds']} s.")
    if "hta x10" in result:
        hta, times = result["hta x10"], result["times faster than HTA"]
        lines += ["", "| ×10 | seconds | peak MB | times faster |", "|---|---|---|---|"]
        lines.append(f"| HTA | {hta['seconds']} | {hta['peak_mb']} | 1 |")
        lines.append(f"| no cache | {sizes['x10']['seconds']} | {sizes['x10']['peak_mb']} | {times['first']} |")
        lines.append(f"| asked again | {again['seconds']} | {again['peak_mb']} | {times['cached']} |")
    plain, begin = result["open, plain gigabyte"], result["start-up"]
    lines += [
        "",
        f"A gigabyte of plain text: {plain['seconds']} s, {plain['cpu_s']} CPU seconds, {plain['peak_mb']} MB.",
    ]
    lines.append(f"`warpline --help` takes {begin['--help over import click']} times as long as `import click`.")
    return "\n".join(lines)


def start_up(warpline: list[str], environment: dict[str, str]) -> dict[str, Any]:
    """What it takes to begin: the list of verbs beside the library that prints it, and a verb that opens no trace."""
    library = best([sys.executable, "-c", "import click"], environment, runs=2 * RUNS)
    verbs = best([*warpline, "--help"], environment, runs=2 * RUNS)
    kernel = best([*warpline, "kernel", "ampere_sgemm_128x64_tn"], environment, runs=2 * RUNS)
    ratio = round(verbs["seconds"] / library["seconds"], 2)
    return {"import click": library, "--help": verbs, "--help over import click": ratio, "kernel NAME": kernel}


def hta_python() -> Path:
    home = Path(tempfile.gettempdir()) / "warpline-bench-hta"
    if not (home / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        subprocess.run(
            [str(home / "bin" / "pip"), "install", "-q", "HolisticTraceAnalysis==0.5.0", "pandas<3"], check=True
        )
        (home / "ready").touch()
    return home / "bin" / "python"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, default=DEMO, help="trace to multiply; the bundled one by default")
    parser.add_argument("--hta", action="store_true", help="time Holistic Trace Analysis too")
    parser.add_argument("--output", type=Path, default=HERE / "results" / "latest.json")
    parser.add_argument("--table", type=Path, metavar="RESULTS", help="only print the tables of this result")
    arguments = parser.parse_args()
    if arguments.table:
        print(tables(json.loads(arguments.table.read_text())))
        return
    folder = Path(tempfile.mkdtemp(prefix="warpline-bench-"))
    try:
        result = measure(arguments.source, folder, arguments.hta)
    finally:
        shutil.rmtree(folder)
    result["machine"] = {
        "date": datetime.date.today().isoformat(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load_15_min": round(os.getloadavg()[2], 2),
    }
    arguments.output.parent.mkdir(exist_ok=True)
    arguments.output.write_text(json.dumps(result, indent=1) + "\n")
    print(tables(result))


if __name__ == "__main__":
    main()
