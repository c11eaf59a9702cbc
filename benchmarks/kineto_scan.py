"""How fast a Kineto trace becomes columns: compiled and Python scanner, plain and gzip.

    python benchmarks/make_trace.py small.json.gz /tmp/big.json --bytes 1e9
    python benchmarks/kineto_scan.py /tmp/big.json
    python benchmarks/kineto_scan.py /tmp/big.json.gz --only gz --json

Prints the best of several runs, in megabytes (10^6 bytes) of text a second, from a warm file cache. Each
run includes opening the file, its header and the decoding of its strings.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import resource
import shutil
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from warpline.sources.kineto.native import is_available
from warpline.sources.kineto.stream import ScannerName, scan_file
from warpline.sources.unpack import GZIP_MAGIC


@dataclass(frozen=True, slots=True)
class Way:
    name: str
    scanner: ScannerName
    compressed: bool


@dataclass(frozen=True, slots=True)
class Result:
    way: str
    events: int
    text_bytes: int
    seconds: float
    megabytes_per_second: float
    cpu_seconds: float
    """Of the best run, over all threads: what it costs on a busy machine."""


WAYS = [
    Way("native", "native", False),
    Way("native, gz", "native", True),
    Way("python", "python", False),
    Way("python, gz", "python", True),
]


def measure(way: Way, path: Path, runs: int) -> Result:
    best = Result(way.name, 0, 0, float("inf"), 0.0, 0.0)
    for _ in range(runs):
        wall, cpu = time.perf_counter(), time.process_time()
        events = scan_file(path, scanner=way.scanner)
        seconds, used = time.perf_counter() - wall, time.process_time() - cpu
        if seconds < best.seconds:
            size = events.bytes_read
            best = Result(way.name, len(events), size, seconds, size / seconds / 1e6, used)
        del events
    return best


def forms_of(path: Path, folder: Path, ways: list[Way]) -> dict[bool, Path]:
    """The trace plain and compressed; the form that is not given is made."""
    with path.open("rb") as file:
        compressed = file.read(2) == GZIP_MAGIC
    forms = {compressed: path}
    if any(way.compressed != compressed for way in ways):
        other = forms[not compressed] = folder / ("trace.json" if compressed else "trace.json.gz")
        with (
            gzip.open(path) if compressed else path.open("rb") as source,
            other.open("wb") if compressed else gzip.open(other, "wb", 6) as target,
        ):
            shutil.copyfileobj(source, target, 1 << 22)
    return forms


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="ways whose name contains this")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    ways = [way for way in WAYS if arguments.only in way.name and (way.scanner == "python" or is_available())]
    with tempfile.TemporaryDirectory() as folder:
        forms = forms_of(arguments.trace, Path(folder), ways)
        results = [measure(way, forms[way.compressed], arguments.runs) for way in ways]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if arguments.json:
        machine = {"machine": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()}
        print(json.dumps({"machine": machine, "peak_bytes": peak, "results": [asdict(result) for result in results]}))
        return
    print(f"{'way':<20} {'events':>10} {'MB':>8} {'seconds':>8} {'MB/s':>8} {'CPU s':>7}")
    for result in results:
        print(
            f"{result.way:<20} {result.events:>10,} {result.text_bytes / 1e6:>8.0f} {result.seconds:>8.3f} "
            f"{result.megabytes_per_second:>8.0f} {result.cpu_seconds:>7.2f}"
        )
    print(f"peak of all ways together: {peak / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
