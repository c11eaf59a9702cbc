"""Measure what this GPU reaches: copies, caches, matmuls, host transfers and launches.

    python3 -m warpline.bench.ceilings -o h200.json

Needs only torch and a CUDA device, so it runs in the environment of the profiled program. It takes less than a minute.
GPU times come from CUDA events, after a warm-up, on random data (zeros draw less power and run faster), as medians over
repeats with the interquartile range.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from warpline.bench.stopwatch import GpuStopwatch, Repeated, WallStopwatch
from warpline.bench.watch import query_smi
from warpline.errors import CannotAnswer, WarplineError

SCHEMA = "warpline.ceilings/1"
BYTES_PER_SECOND, FLOPS_PER_SECOND, SECONDS = "bytes/s", "FLOP/s", "s"


@dataclass(frozen=True, slots=True)
class Measurement:
    """A median with its interquartile range, and how it was measured."""

    value: float
    unit: str
    low: float
    high: float
    repeats: int
    how: str


Benchmark = Callable[[], Measurement]


def summarise(samples: Sequence[float], unit: str, how: str) -> Measurement:
    """The median of some samples with their quartiles."""
    if not samples:
        raise ValueError("no samples")
    quartiles = statistics.quantiles(samples, n=4) if len(samples) > 1 else [samples[0]] * 3
    return Measurement(statistics.median(samples), unit, quartiles[0], quartiles[2], len(samples), how)


def measure(report: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
    """All measurements as a document of schema `warpline.ceilings/1`; failed ones are listed with their reason."""
    from warpline.bench.ceilings_compute import compute_benchmarks  # noqa: PLC0415 - they need torch
    from warpline.bench.ceilings_host import host_benchmarks  # noqa: PLC0415

    torch = _torch()
    began = time.monotonic()
    before = clocks()
    measurements: dict[str, dict[str, Any]] = {}
    failed: dict[str, str] = {}
    for name, benchmark in _all((compute_benchmarks(torch), host_benchmarks(torch))):
        try:
            result = benchmark()
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            report(f"{name:24} failed: {failed[name]}")
        else:
            measurements[name] = asdict(result)
            report(f"{name:24} {result.value:.4g} {result.unit}")
        torch.cuda.empty_cache()
    return {
        "schema": SCHEMA,
        "device": _device(torch),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "origin": f"warpline device measure, torch {torch.__version__}",
        "torch": str(torch.__version__),
        "cuda": str(torch.version.cuda),
        "clocks_before": before,
        "clocks_after": clocks(),
        "seconds": round(time.monotonic() - began, 1),
        "measurements": measurements,
        "failed": failed,
    }


def clocks() -> dict[str, str]:
    """Clocks and power from nvidia-smi; empty if unavailable."""
    fields = "clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.draw,power.limit,temperature.gpu,driver_version"
    answer = query_smi(fields, "")
    return dict(zip(fields.split(","), answer[0], strict=False)) if answer else {}


def gpu_samples(
    torch: Any, work: Callable[[], object], *, inner: int, repeats: int, warm_up: int = 3, pause_s: float = 0.0
) -> list[float]:
    """Seconds per call of `work`, on the GPU's clock: each sample times `inner` calls between two events.

    A pause before each sample lets the chip cool, so that its power limit does not lower the clock.
    """
    Repeated(work, warm_up)()
    torch.cuda.synchronize()
    stopwatch, sample = GpuStopwatch(torch, flush=False), Repeated(work, inner)
    if not pause_s:
        return [time_ns / 1e9 / inner for time_ns in stopwatch.time([sample] * repeats)]
    samples = []
    for _ in range(repeats):
        time.sleep(pause_s)
        work()  # raises the clock again
        samples.append(stopwatch.time([sample])[0] / 1e9 / inner)
    return samples


def wall_samples(torch: Any, work: Callable[[], object], *, repeats: int, warm_up: int = 3) -> list[float]:
    """Seconds per call on the CPU's clock, with a synchronisation after each call."""
    times = WallStopwatch(GpuStopwatch(torch, flush=False)).time([work] * (warm_up + repeats))
    return [time_ns / 1e9 for time_ns in times[warm_up:]]


def submit_samples(
    torch: Any, work: Callable[[], object], *, inner: int, repeats: int, warm_up: int = 3
) -> list[float]:
    """CPU seconds per call, without waiting for the GPU: each sample submits `inner` calls to an idle device."""
    stopwatch, sample = GpuStopwatch(torch, flush=False), Repeated(work, inner)
    times = [stopwatch.host(sample).submit_ns / 1e9 / inner for _ in range(warm_up + repeats)]
    torch.cuda.synchronize()
    return times[warm_up:]


def _all(groups: Sequence[dict[str, Benchmark]]) -> Iterator[tuple[str, Benchmark]]:
    for group in groups:
        yield from group.items()


def _device(torch: Any) -> dict[str, Any]:
    properties = torch.cuda.get_device_properties(0)
    return {
        "name": properties.name,
        "sm_count": properties.multi_processor_count,
        "compute": f"{properties.major}.{properties.minor}",
        "memory_bytes": properties.total_memory,
        "l2_bytes": getattr(properties, "L2_cache_size", None),
    }


def _torch() -> Any:
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise CannotAnswer("no-torch", "measuring needs torch, which is not installed", "pip install torch") from error
    if not torch.cuda.is_available():
        raise CannotAnswer(
            "no-gpu", "measuring needs a CUDA device, but torch finds none", "run it on a machine with a GPU"
        )
    return torch


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line of `python -m warpline.bench.ceilings`."""
    parser = argparse.ArgumentParser(prog="python -m warpline.bench.ceilings", description="Measure this GPU.")
    parser.add_argument("-o", "--output", type=Path, help="output file; standard output if omitted")
    options = parser.parse_args(arguments)
    try:
        document = measure(lambda line: print(line, file=sys.stderr, flush=True))
    except WarplineError as error:
        print(f"warpline: {error.line()}", file=sys.stderr)
        return error.exit_code
    text = json.dumps(document, indent=1) + "\n"
    if options.output is None:
        sys.stdout.write(text)
    else:
        options.output.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
