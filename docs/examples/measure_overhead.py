"""What `warpline run` costs: step times of a program alone and under it, in turn, several times.

    python measure_overhead.py            # measures, prints a table
    python measure_overhead.py --work small --times FILE    # one program, its step times into a file

`small` is bound by the CPU that launches its kernels, `large` by the GPU.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STEPS = 90
PARTS = {
    "before (steps 12 to 23)": slice(12, 24),
    "recorded (26 to 31)": slice(26, 32),
    "after (40 on)": slice(40, None),
}
"""Steps of the schedule: 24 bare, 2 of warm-up, 6 recorded."""


def work(kind: str, times: Path) -> None:
    """A training loop that times its own steps, by CUDA events where there are any."""
    import torch  # noqa: PLC0415
    from torch import nn  # noqa: PLC0415

    device = "cuda" if torch.cuda.is_available() else "cpu"
    width, depth, batch = (256, 24, 16) if kind == "small" else (4096, 6, 8192)
    if device == "cpu":
        width, batch = 128, 16
    layers = [part for _ in range(depth) for part in (nn.Linear(width, width), nn.ReLU())]
    model = nn.Sequential(*layers).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    inputs = torch.randn(batch, width, device=device)
    marks = []
    for _ in range(STEPS + 1):
        event = torch.cuda.Event(enable_timing=True) if device == "cuda" else None
        if event is not None:
            event.record()
        marks.append((time.perf_counter_ns(), event))
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        optimizer.step()
    if device == "cuda":
        torch.cuda.synchronize()
        spans = [a[1].elapsed_time(b[1]) * 1e6 for a, b in itertools.pairwise(marks)]
    else:
        spans = [float(b[0] - a[0]) for a, b in itertools.pairwise(marks)]
    times.write_text(json.dumps(spans))


def measured(kind: str, recorded: bool, folder: Path) -> list[float]:
    """Step times of one run, alone or under `warpline run`."""
    times = folder / "times.json"
    program = [sys.executable, __file__, "--work", kind, "--times", str(times)]
    if recorded:
        run = folder / f"run-{time.monotonic_ns()}"
        options = ["--skip", "24", "--output", str(run)]
        program = [sys.executable, "-m", "warpline.capture", *options, "--", *program]
    subprocess.run(program, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return [float(span) for span in json.loads(times.read_text())]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", choices=("small", "large"))
    parser.add_argument("--times", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="+", default=("small", "large"), choices=("small", "large"))
    options = parser.parse_args()
    if options.work:
        work(options.work, options.times)
        return
    print(f"{'program':8} {'steps':24} {'alone':>10} {'under run':>10}   ratio (of each pair)")
    with tempfile.TemporaryDirectory() as folder:
        for kind in options.only:
            pairs = [
                (measured(kind, False, Path(folder)), measured(kind, True, Path(folder)))
                for _ in range(options.repeats)
            ]
            for part, steps in PARTS.items():
                medians = [(statistics.median(a[steps]), statistics.median(b[steps])) for a, b in pairs]
                ratios = sorted(b / a for a, b in medians)
                alone, under = (statistics.median(column) / 1e6 for column in zip(*medians, strict=True))
                spread = f"{statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})"
                print(f"{kind:8} {part:24} {alone:7.3f} ms {under:7.3f} ms   {spread}", flush=True)


if __name__ == "__main__":
    main()
