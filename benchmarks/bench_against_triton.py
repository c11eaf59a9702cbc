"""Holds `warpline.bench` against triton.testing.do_bench and do_bench_cudagraph, on a GPU.

    PYTHONPATH=src python3 benchmarks/bench_against_triton.py [-o FILE.json] [--rounds 3]

Seven kernels from a microsecond to ten milliseconds, each timed in turn by bench (events, L2 emptied), do_bench (the
same), bench --hot, bench --graph and do_bench_cudagraph; a figure is the median over rounds of each one's median.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import warpline.bench
from warpline.bench.experiments import EXPERIMENTS, precision, prepared
from warpline.units import duration

KERNELS = (
    ("launch", (1,), "fp32"),
    ("add", (1 << 20,), "fp32"),
    ("softmax", (8192, 2048), "bf16"),
    ("layernorm", (16384, 8192), "bf16"),
    ("copy", (256 << 20,), "fp32"),
    ("matmul", (8192, 8192, 8192), "bf16"),
    ("matmul", (6144, 6144, 6144), "fp32"),
)
CLOSE = 0.03
EVENTS, GRAPHS = ("bench", "do_bench"), ("bench --graph", "do_bench_cudagraph")


def methods(testing: Any, call: Callable[[], object], results: dict[str, Any]) -> dict[str, Callable[[], float]]:
    """Nanoseconds of the call by each way of timing; the latest result of each of ours is kept."""

    def ours(name: str, **options: Any) -> float:
        results[name] = warpline.bench(call, device="cuda", seconds=0.3, name=name, **options)
        return float(results[name].median_ns)

    return {
        "bench": partial(ours, "bench"),
        "do_bench": lambda: 1e6 * testing.do_bench(call, warmup=100, rep=300, return_mode="median"),
        "bench --hot": partial(ours, "bench --hot", flush=False),
        "bench --graph": partial(ours, "bench --graph", graph=True),
        "do_bench_cudagraph": lambda: 1e6 * testing.do_bench_cudagraph(call, rep=20, return_mode="median"),
    }


def timed(torch: Any, testing: Any, kernel: tuple[str, tuple[int, ...], str], rounds: int) -> dict[str, Any]:
    """One kernel by every method, in turn."""
    name, shape, dtype = kernel
    with precision(torch, dtype):
        ready = prepared(EXPERIMENTS[name], torch, shape, dtype, "cuda")
        results: dict[str, Any] = {}
        ways = methods(testing, partial(ready.function, *ready.args), results)
        taken: dict[str, list[float]] = {way: [] for way in ways}
        for turn in range(rounds):
            for way in ways if turn % 2 == 0 else reversed(ways):
                taken[way].append(ways[way]())
    medians = {way: statistics.median(times) for way, times in taken.items()}
    return {
        "kernel": ready.name,
        "median_ns": medians,
        "rounds_ns": taken,
        "results": {way: {**result.as_dict(), "samples_ns": None} for way, result in results.items()},
    }


def row(entry: dict[str, Any]) -> str:
    """A line of the table: each method, and ours against the other of its kind."""
    medians = entry["median_ns"]
    cells = [duration(medians[way]) for way in (*EVENTS, "bench --hot", *GRAPHS)]
    ratios = [100 * (medians[ours] / theirs - 1) for ours, theirs in _pairs(medians)]
    return "| " + " | ".join([entry["kernel"], *cells, *(f"{ratio:+.1f} %" for ratio in ratios)]) + " |"


def _pairs(medians: dict[str, float]) -> list[tuple[str, float]]:
    return [(EVENTS[0], medians[EVENTS[1]]), (GRAPHS[0], medians[GRAPHS[1]])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch, testing = importlib.import_module("torch"), importlib.import_module("triton.testing")
    entries = []
    titles = ["kernel", *EVENTS, "bench --hot", *GRAPHS, "bench / do_bench", "graph / graph"]
    print("| " + " | ".join(titles) + " |\n|" + "---|" * len(titles))
    for kernel in KERNELS:
        entries.append(timed(torch, testing, kernel, options.rounds))
        print(row(entries[-1]), flush=True)
    apart = [
        f"{entry['kernel']}: {ours}"
        for entry in entries
        for ours, theirs in _pairs(entry["median_ns"])
        if abs(entry["median_ns"][ours] / theirs - 1) > CLOSE
    ]
    print(f"apart by more than {100 * CLOSE:.0f} %: {', '.join(apart) or 'none'}")
    if options.output is not None:
        document = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "kernels": entries}
        options.output.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
