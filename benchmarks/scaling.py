"""Time of every verb on traces that are extreme in one direction, at three sizes: close to linear is right.

    python benchmarks/scaling.py [--shape threads] [--verb diagnose] [--fraction 0.25] [--json] [--output results.json]

Each shape has one number that grows (threads, streams, …) and is made at n, 2n and 4n. Every command runs in a fresh
process without the cache. Times are CPU seconds of all cores, which other load changes little. `growth` is the time at
4n over the time at 2n, both without the time of an almost empty trace: 2 is linear, 4 is quadratic.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpline.cli.verbs import VERBS, Verb

LIMIT_S = 300
STEPS = 5
HEAD = '{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}], "traceEvents": [\n'
SKIPPED = {"view"}
"""Verbs on a trace that end only by Ctrl-C."""
CALLS = {
    **{name: verb.sample for name, verb in VERBS.items() if "TRACE" in verb.sample and name not in SKIPPED},
    "diagnose --why": "diagnose TRACE --why",
    "export svg": "export TRACE -f -o OUTPUT.svg",
    "export speedscope": "export TRACE -f -o OUTPUT.speedscope.json",
}
"""The sample call of every verb that reads a trace, and some calls more."""
WITHOUT_CACHE = {"doctor", "scrub"}
"""Verbs that have no cache to leave out."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What grows, to which size, and the events at a size."""

    name: str
    largest: int
    events: Callable[[int], Iterator[str]]


def event(cat: str, name: str, at_us: float, dur_us: float, thread: int, arguments: str = "") -> str:
    return (
        f'{{"ph":"X","cat":"{cat}","name":"{name}","pid":1,"tid":{thread},'
        f'"ts":{at_us:.3f},"dur":{dur_us:.3f},"args":{{{arguments}}}}}'
    )


def kernel(at_us: float, dur_us: float, number: int, device: int = 0, stream: int = 7, name: str = "kernel") -> str:
    return (
        f'{{"ph":"X","cat":"kernel","name":"{name}","pid":{device},"tid":{stream},"ts":{at_us:.3f},"dur":{dur_us:.3f},'
        f'"args":{{"device":{device},"stream":{stream},"correlation":{number},"External id":{number},'
        '"grid":[1,1,1],"block":[128,1,1]}}'
    )


def launch(at_us: float, number: int, thread: int = 1, dur_us: float = 2) -> str:
    return event(
        "cuda_runtime",
        "cudaLaunchKernel",
        at_us,
        dur_us,
        thread,
        f'"correlation":{number},"External id":{number}',
    )


def op(at_us: float, dur_us: float, number: int, thread: int = 1, name: str = "aten::mm") -> str:
    return event("cpu_op", name, at_us, dur_us, thread, f'"External id":{number}')


def steps(end_us: float, thread: int = 1) -> Iterator[str]:
    """Five steps over the whole time."""
    for step in range(STEPS):
        length = end_us / STEPS
        yield event("user_annotation", f"ProfilerStep#{step}", step * length, length - 1, thread)


def many_threads(count: int) -> Iterator[str]:
    """Threads that take turns launching, five kernels each."""
    yield from steps(50 * count)
    for number in range(5 * count):
        at = 10 * number
        yield op(at, 4, number + 1, number % count + 1)
        yield launch(at + 1, number + 1, number % count + 1)
        yield kernel(at + 5, 4, number + 1)


def many_streams(count: int) -> Iterator[str]:
    """Streams with one kernel each."""
    yield from steps(10 * count)
    for number in range(count):
        at = 10 * number
        yield op(at, 4, number + 1)
        yield launch(at + 1, number + 1)
        yield kernel(at + 5, 4, number + 1, stream=number + 1)


def many_devices(count: int) -> Iterator[str]:
    """Devices with twenty kernels each, launched in turn by one thread."""
    yield from steps(200 * count)
    for number in range(20 * count):
        at = 10 * number
        yield op(at, 4, number + 1)
        yield launch(at + 1, number + 1)
        yield kernel(at + 5, 4, number + 1, device=number % count)


def zero_length(count: int) -> Iterator[str]:
    """Events of no length, many at the same moment: a third each of ops, calls and kernels."""
    yield from steps(count)
    for number in range(count // 3):
        at = 3 * (number // 4) * 4
        yield op(at, 0, number + 1)
        yield launch(at, number + 1, dur_us=0)
        yield kernel(at, 0, number + 1)


def distinct_names(count: int) -> Iterator[str]:
    """Half as many kernels as ops and kernels together, no two of one name."""
    yield from steps(5 * count)
    for number in range(count // 2):
        at = 10 * number
        yield op(at, 4, number + 1, name=f"library::op_{number}")
        yield launch(at + 1, number + 1)
        yield kernel(at + 5, 4, number + 1, name=f"kernel_{number}_of_a_generator")


def deep_nesting(count: int) -> Iterator[str]:
    """Ten ops in each step, each with that many ops inside one another, and a kernel at the bottom."""
    number, length = 0, 2 * count + 20
    yield from steps(10 * STEPS * length)
    for tree in range(10 * STEPS):
        begin = tree * length
        for depth in range(count):
            number += 1
            yield op(begin + depth, 2 * (count - depth) + 10, number, name=f"library::level_{depth % 50}")
        yield launch(begin + count + 1, number)
        yield kernel(begin + count + 5, 4, number)


def many_syncs(count: int) -> Iterator[str]:
    """A synchronisation after every kernel."""
    yield from steps(20 * count)
    for number in range(count):
        at = 20 * number
        yield op(at, 4, 2 * number + 1)
        yield launch(at + 1, 2 * number + 1)
        yield kernel(at + 5, 4, 2 * number + 1)
        yield event("cuda_runtime", "cudaStreamSynchronize", at + 5, 6, 1, f'"correlation":{2 * number + 2}')
        yield (
            f'{{"ph":"X","cat":"cuda_sync","name":"Stream Sync","pid":0,"tid":7,"ts":{at + 6},"dur":4,'
            f'"args":{{"device":0,"stream":7,"correlation":{2 * number + 2}}}}}'
        )


def many_waits(count: int) -> Iterator[str]:
    """Two streams; a kernel of the second waits for an event behind every kernel of the first."""
    yield from steps(20 * count)
    for number in range(count):
        at, first, event_id = 20 * number, 5 * number + 1, number % 64 + 1
        yield launch(at, first)
        yield kernel(at + 3, 6, first)
        yield event("cuda_runtime", "cudaEventRecord", at + 3, 1, 1, f'"correlation":{first + 1}')
        yield event("cuda_runtime", "cudaStreamWaitEvent", at + 5, 1, 1, f'"correlation":{first + 2}')
        yield (
            f'{{"ph":"X","cat":"cuda_sync","name":"Stream Wait Event","pid":0,"tid":8,"ts":{at + 5},"dur":1,'
            f'"args":{{"device":0,"stream":8,"correlation":{first + 2},"wait_on_stream":7,'
            f'"wait_on_cuda_event_record_corr_id":{first + 1},"wait_on_cuda_event_id":{event_id}}}}}'
        )
        yield launch(at + 7, first + 3)
        yield kernel(at + 10, 6, first + 3, stream=8)


SHAPES = (
    Shape("threads", 2_000, many_threads),
    Shape("streams", 100_000, many_streams),
    Shape("devices", 1_000, many_devices),
    Shape("zero-length events", 1_000_000, zero_length),
    Shape("distinct names", 1_000_000, distinct_names),
    Shape("nesting depth", 5_000, deep_nesting),
    Shape("syncs", 1_000_000, many_syncs),
    Shape("waits", 10_000, many_waits),
)


def write(shape: Shape, size: int, file: Path) -> Path:
    """The trace of a shape at a size, as plain JSON."""
    with file.open("w", encoding="ascii") as out:
        out.write(HEAD)
        first = True
        for text in shape.events(size):
            out.write(text if first else ",\n" + text)
            first = False
        out.write("\n]}\n")
    return file


PROBE = """
import resource, subprocess, sys, time
limit_s = int(sys.argv[1])
begin = time.perf_counter()
child = subprocess.run(
    sys.argv[2:],
    stdout=subprocess.DEVNULL,
    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s)),
)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(time.perf_counter() - begin, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, child.returncode)
"""


def measure(verb: str, file: Path, limit_s: int) -> dict[str, Any]:
    """Seconds, CPU seconds and peak memory of one command; the limit alone if it takes longer."""
    words = Verb("", CALLS[verb]).words(TRACE=str(file), OUTPUT=str(file.with_name("written")))
    words += [] if verb in WITHOUT_CACHE else ["--no-cache"]
    command = [sys.executable, "-c", "from warpline.cli.main import main; main()", *words]
    out = subprocess.run(
        [sys.executable, "-c", PROBE, str(limit_s), *command], capture_output=True, text=True, check=True
    )
    seconds, used, peak, code = out.stdout.split()
    if int(code) in {-signal.SIGKILL, -signal.SIGXCPU}:
        return {"over_s": limit_s}
    row: dict[str, Any] = {
        "seconds": round(float(seconds), 2),
        "cpu_s": round(float(used), 2),
        "peak_mb": round(float(peak) / 1e6),
    }
    if code != "0":
        row["failed"] = out.stderr.strip()[-200:]
    return row


def growth(rows: list[dict[str, Any]], empty: dict[str, Any]) -> float | None:
    """CPU time at 4n over 2n, without start-up; None below half a second, where it says nothing."""
    if "cpu_s" not in rows[-1]:
        return None
    smaller, larger = (row["cpu_s"] - empty["cpu_s"] for row in rows[-2:])
    return round(larger / smaller, 1) if min(smaller, larger) > 0.5 else None


def measured(shapes: list[Shape], verbs: list[str], fraction: float, limit_s: int) -> dict[str, Any]:
    """All shapes with all verbs."""
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="warpline-scaling-") as folder:
        smallest = write(SHAPES[0], 2, Path(folder) / "empty.json")
        empty = {verb: measure(verb, smallest, limit_s) for verb in verbs}
        for shape in shapes:
            sizes = [int(shape.largest * fraction) // part for part in (4, 2, 1)]
            rows: dict[str, list[dict[str, Any]]] = {verb: [] for verb in verbs}
            for size in sizes:
                file = write(shape, size, Path(folder) / "trace.json")
                for verb in verbs:
                    is_hopeless = bool(rows[verb]) and "over_s" in rows[verb][-1]
                    rows[verb].append({"over_s": limit_s} if is_hopeless else measure(verb, file, limit_s))
                    print(f"{shape.name} {size} {verb}: {rows[verb][-1]}", file=sys.stderr, flush=True)
            result[shape.name] = {
                "sizes": sizes,
                "verbs": {verb: {"rows": rows[verb], "growth": growth(rows[verb], empty[verb])} for verb in verbs},
            }
    return {"empty": empty, "shapes": result}


def table(result: dict[str, Any]) -> str:
    """The result as a Markdown table: CPU seconds at n, 2n and 4n, and the growth from 2n to 4n."""
    verbs = list(result["empty"])
    lines = ["| shape | size | " + " | ".join(verbs) + " |", "|---|---|" + "---|" * len(verbs)]
    for name, shape in result["shapes"].items():
        for place, size in enumerate(shape["sizes"]):
            cells = []
            for verb in verbs:
                row = shape["verbs"][verb]["rows"][place]
                last = shape["verbs"][verb]["growth"] if place == len(shape["sizes"]) - 1 else None
                text = f"{row['cpu_s']:.1f}" if "cpu_s" in row else f"over {row['over_s']}"
                cells.append(text + (f" (×{last})" if last else "") + (" failed" if "failed" in row else ""))
            lines.append(f"| {name if place == 0 else ''} | {size:,} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", action="append", choices=[shape.name for shape in SHAPES])
    parser.add_argument("--verb", action="append", choices=list(CALLS))
    parser.add_argument("--fraction", type=float, default=1.0, help="of the largest size")
    parser.add_argument("--limit", type=int, default=LIMIT_S, help="CPU seconds for one command")
    parser.add_argument("--write", type=Path, help="only write the trace of one --shape to this file")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    shapes = [shape for shape in SHAPES if not arguments.shape or shape.name in arguments.shape]
    if arguments.write:
        write(shapes[0], int(shapes[0].largest * arguments.fraction), arguments.write)
        return
    begin = time.perf_counter()
    result = measured(shapes, arguments.verb or list(CALLS), arguments.fraction, arguments.limit)
    result["machine"] = {
        "date": datetime.date.today().isoformat(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "minutes": round((time.perf_counter() - begin) / 60, 1),
    }
    text = json.dumps(result, indent=1)
    if arguments.output:
        arguments.output.write_text(text + "\n")
    print(text if arguments.json else table(result))


if __name__ == "__main__":
    main()
