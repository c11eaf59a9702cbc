"""Times every form of the kernel cases, and records their Nsight Compute reports.

    python -m faults.kernels.record -o DIR
    python -m faults.kernels.record -o DIR --only NAME…

Needs torch, Triton, ncu and a CUDA device; about five minutes on an H200. DIR gets times.json, a report for each group
of cases (`.ncu-rep.xz`) and csv.tar.xz with the raw and the details page of each report. A case that fails costs only
itself: times.json says why.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

from faults.kernels.launch import ALL, SETS
from faults.kernels.stopwatch import measure_case

SCHEMA = "warpline.kernels/1"
GROUP = 8
"""Cases in one report."""
GROUP_TIMEOUT_S = 200
NCU_FOLDERS = ("/usr/local/cuda/bin", "/opt/nvidia/nsight-compute")


def find_ncu() -> str | None:
    """The path of ncu."""
    found = shutil.which("ncu")
    if found:
        return found
    for folder in NCU_FOLDERS:
        for path in sorted(Path(folder).glob("**/ncu"), reverse=True):
            if path.is_file() and os.access(path, os.X_OK):
                return str(path)
    return None


def say(text: str) -> None:
    """Prints progress."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


def time_cases(names: list[str]) -> list[dict[str, Any]]:
    """The times of the cases' forms, and whether the forms agree."""
    import torch  # noqa: PLC0415

    flush = torch.empty(512 << 20, dtype=torch.uint8, device="cuda")
    warm = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)
    for _ in range(300):
        warm @ warm
    torch.cuda.synchronize()
    rows = []
    for name in names:
        row = measure_case(torch, ALL[name], flush)
        rows.append(row)
        forms = ", ".join(f"{form} {times['median_us']:.1f} µs" for form, times in row.get("forms", {}).items())
        gain = f", gain {row['gain']:.2f}×, same result: {row['same_result']}" if row.get("gain") else ""
        say(f"{name}: {row.get('error') or forms + gain}")
    return rows


def profile(ncu: str, names: list[str], folder: Path, label: str) -> dict[str, Any]:
    """Runs ncu on one group of cases, and packs the report."""
    report, order = folder / f"{label}.ncu-rep", folder / f"{label}.order.json"
    command = [ncu, "--set", "full", "--import-source", "yes", "--clock-control", "none", "--target-processes", "all"]
    command += ["--profile-from-start", "off", "-f", "-o", str(report.with_suffix("")), sys.executable]
    command += ["-m", "faults.kernels.launch", "-o", str(order), *names]
    started = time.monotonic()
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=GROUP_TIMEOUT_S, check=False, stdin=subprocess.DEVNULL
        )
        tail = (done.stdout + done.stderr)[-3000:]
    except subprocess.TimeoutExpired:
        tail = f"stopped after {GROUP_TIMEOUT_S} s"
    seconds = time.monotonic() - started
    launched = json.loads(order.read_text()) if order.exists() else []
    say(f"ncu {label}: {len(launched)} forms in {seconds:.0f} s, report {'written' if report.exists() else 'missing'}")
    problems = [line for line in tail.splitlines() if "==PROF==" not in line or "ERROR" in line.upper()]
    if problems:
        print("\n".join(problems[-20:]), flush=True)
    return {"report": report.name, "launched": launched, "seconds": round(seconds, 1), "log": tail[-1500:]}


def export(ncu: str, report: Path) -> list[Path]:
    """The raw and the details page of a report as CSV."""
    written = []
    for page in ("raw", "details"):
        path = report.with_suffix(f".{page}.csv")
        command = [ncu, "--import", str(report), "--csv", "--page", page, "--print-units", "base"]
        with path.open("wb") as stream:
            subprocess.run(command, stdout=stream, check=False, timeout=GROUP_TIMEOUT_S, stdin=subprocess.DEVNULL)
        written.append(path)
    return written


def record(names: list[str], folder: Path, *, with_reports: bool) -> dict[str, Any]:
    """Times and profiles the cases, and writes everything to the folder."""
    import torch  # noqa: PLC0415

    result: dict[str, Any] = {
        "schema": SCHEMA,
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "reports": [],
        "cases": time_cases(names),
    }
    times = folder / "times.json"
    times.write_text(json.dumps(result, indent=1))
    torch.cuda.empty_cache()
    ncu = find_ncu()
    if not with_reports or ncu is None:
        say("no reports: " + ("not asked for" if ncu else "ncu not found"))
        return result
    with tempfile.TemporaryDirectory() as scratch:
        tables: list[Path] = []
        for label, group in groups(names):
            row = profile(ncu, group, Path(scratch), label)
            result["reports"].append(row)
            report = Path(scratch, row["report"])
            if report.exists():
                tables += export(ncu, report)
                (folder / f"{report.name}.xz").write_bytes(lzma.compress(report.read_bytes(), preset=4))
            times.write_text(json.dumps(result, indent=1))
        with tarfile.open(folder / "csv.tar.xz", "w:xz") as archive:
            for table in tables:
                archive.add(table, table.name)
    return result


def groups(names: list[str]) -> list[tuple[str, list[str]]]:
    """The cases by report: those of one set, at most GROUP at a time."""
    made = []
    for label, cases in SETS.items():
        mine = [case.name for case in cases if case.name in names]
        made += [(f"{label}-{at // GROUP + 1}", mine[at : at + GROUP]) for at in range(0, len(mine), GROUP)]
    return made


def main(arguments: list[str] | None = None) -> int:
    """Records the cases asked for."""
    parser = argparse.ArgumentParser(prog="python -m faults.kernels.record", description="Record the flawed kernels.")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", required=True, help="folder to write to")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=sorted(ALL), help="record only these cases")
    parser.add_argument("--set", choices=sorted(SETS), help="record only this set")
    parser.add_argument("--time-only", action="store_true", help="run only the stopwatch, without ncu")
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    names = [case.name for label, cases in SETS.items() for case in cases if options.set in (None, label)]
    names = [name for name in names if not options.only or name in options.only]
    result = record(names, options.output, with_reports=not options.time_only)
    failed = [row["case"] for row in result["cases"] if row.get("error") or row.get("same_result") is False]
    say(f"{len(names)} cases, {len(failed)} failed: {', '.join(failed) or 'none'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
