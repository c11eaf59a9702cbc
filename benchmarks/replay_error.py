"""How well the replay of an unchanged trace gives back its step times, and how fast it is.

    python benchmarks/replay_error.py [FILE …]

Without files: every profile of tests/data, and the shared ones where they are at hand ($WARPLINE_SHARED).
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np

from warpline.errors import WarplineError
from warpline.replay.costs.find import find_costs
from warpline.replay.graph.build import build_graph
from warpline.replay.replay import replay
from warpline.replay.simulate import simulate
from warpline.trace.open import open_trace

ROOT = Path(__file__).parents[1]
SHARED = Path(os.environ.get("WARPLINE_SHARED", ROOT.parent / "shared")) / "data"


def files() -> list[Path]:
    """The profiles at hand."""
    if len(sys.argv) > 1:
        return [Path(name) for name in sys.argv[1:]]
    found: list[Path] = []
    for folder in (ROOT / "tests" / "data", SHARED):
        found += [*folder.rglob("*.json.gz"), *folder.rglob("*.sqlite.gz")]
    return sorted(found)


def main() -> None:
    """Prints the table."""
    print(
        f"{'profile':52} {'steps':>5} {'measured':>12} {'replayed':>12} {'error':>7} {'worst step':>10} {'total':>7} "
        f"{'dropped':>7} {'nodes':>8} {'build s':>8} {'nodes/s':>10}"
    )
    errors = []
    for file in files():
        try:
            trace = open_trace(file)
            begin = time.perf_counter()
            graph = build_graph(trace, find_costs(trace))
            built = time.perf_counter()
            simulate(graph)
            done = time.perf_counter()
            result = replay(trace)
        except WarplineError as error:
            print(f"{file.name:52} {error.code}")
            continue
        steps, recorded = len(trace.all_steps), result.measured_ns
        errors_pct = 100 * np.abs(result.replayed_ns / np.maximum(recorded, 1.0) - 1)
        total_pct = 100 * abs(result.replayed_ns.sum() / max(recorded.sum(), 1.0) - 1)
        if steps:
            errors.append(result.error_pct)
        print(
            f"{file.parent.parent.name + '/' + file.name:52} {steps:5d} {result.measured_step_ns / 1e6:9.3f} ms "
            f"{result.replayed_step_ns / 1e6:9.3f} ms {result.error_pct:6.2f}% {errors_pct.max():9.2f}% "
            f"{total_pct:6.2f}% {graph.dropped_edges:7d} {len(graph):8d} "
            f"{built - begin:8.2f} {len(graph) / max(done - built, 1e-9):10.3g}"
        )
    if errors:
        print(f"{len(errors)} profiles with steps: median error {np.median(errors):.2f} %, worst {max(errors):.2f} %")


if __name__ == "__main__":
    main()
