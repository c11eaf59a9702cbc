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
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from warpline.bench.ceilings_compute import compute_benchmarks
from warpline.bench.ceilings_host import host_benchmarks
from warpline.bench.ceilings_samples import Benchmark
from warpline.bench.watch import query_smi
from warpline.capture.calibration import measure_host
from warpline.errors import CannotAnswer, WarplineError

SCHEMA = "warpline.ceilings/1"


def measure(report: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
    """Every measurement as a document of schema `warpline.ceilings/1`; what fails is listed with its reason.

    Under `host` it holds a calibration of the host, or null.
    """
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
        "host": measure_host(torch, stacks=True),
    }


def clocks() -> dict[str, str]:
    """Clocks and power from nvidia-smi; empty if unavailable."""
    fields = "clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.draw,power.limit,temperature.gpu,driver_version"
    answer = query_smi(fields, "")
    return dict(zip(fields.split(","), answer[0], strict=False)) if answer else {}


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
