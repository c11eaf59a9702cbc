"""Checks the second look of `warpline run` on a GPU: records three small programs, and holds the files against what the
programs do.

    python3 benchmarks/second_look.py record FOLDER    # needs torch and a GPU; writes NAME.tar.gz and results.json
    python benchmarks/second_look.py check FOLDER      # needs warpline; prints what was found, and fails if it is wrong

`record` also runs each program alone and without the second look, and compares the steps that the program times itself.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

STEPS, STEPS_RECORDED = 60, 6
HEAD = """
import json, sys, time, torch
torch.manual_seed(0)
device = 'cuda' if torch.cuda.is_available() else 'cpu'
times = []
def timed(step):
    for number in range({steps}):
        begin = time.perf_counter()
        step(number)
        if device == 'cuda': torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    print(json.dumps(times), file=sys.stderr)
"""
PROGRAMS = {
    # Loads with a sleep, copies a tensor that is never read, and reads the loss in every step.
    "train": """
model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 512)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
def load():
    time.sleep(0.004)
    return torch.randn(256, 512)
def forward(x):
    unused = x.clone()
    hidden = model(x)
    return hidden.square().mean()
def step(number):
    x = load().to(device)
    loss = forward(x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    loss.item()
timed(step)
""",
    # A cache that grows with every step.
    "decode": """
import warpline
weight = torch.randn(512, 512, device=device)
cache = torch.randn(1, 512, device=device)
x = torch.randn(1, 512, device=device)
def step(number):
    global cache, x
    cache = torch.cat([cache, x @ weight])
    scores = torch.softmax(x @ cache.t(), -1)
    x = torch.tanh(scores @ cache)
    warpline.step()
timed(step)
""",
    # Samples one by one, which do not depend on each other, and a recurrence, whose turns do.
    "loops": """
import warpline
weight = torch.randn(256, 256, device=device)
batch = torch.randn(16, 8, 256, device=device)
def samples():
    return torch.stack([torch.relu(sample @ weight) for sample in batch])
def recurrence():
    state = batch[0]
    for turn in range(16):
        state = torch.tanh(batch[turn] + state @ weight)
    return state
def step(number):
    (samples().sum() + recurrence().sum()).item()
    warpline.step()
timed(step)
""",
}
LINES = {"train": ("x.clone()", "loss.item()"), "decode": ("torch.cat(", "torch.softmax("), "loops": ("torch.stack(",)}
OPS = {
    "x.clone()": "aten::clone",
    "loss.item()": "aten::item",
    "torch.cat(": "aten::cat",
    "torch.softmax(": "aten::softmax",
    "torch.stack(": "aten::stack",
}


def record(folder: Path) -> None:
    """Record all programs with and without the second look."""
    folder.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {}
    for name in PROGRAMS:
        with tempfile.TemporaryDirectory() as place:
            script = Path(place, f"{name}.py")
            script.write_text(source_of(name))
            results[name] = {
                "alone": _run([sys.executable, str(script)], place),
                "without": _run([*_capture(place, "without"), "--no-lines", "--no-dataflow", str(script)], place),
                "with": _run([*_capture(place, "with"), str(script)], place),
            }
            manifest = json.loads(Path(place, "with", "manifest.json").read_text())
            results[name]["look"] = [entry["look"] for entry in manifest["traces"]]
            results[name]["bytes"] = {file.name: file.stat().st_size for file in Path(place, "with").iterdir()}
            results[name]["versions"] = manifest["versions"]
            with tarfile.open(folder / f"{name}.tar.gz", "w:gz") as packed:
                packed.add(Path(place, "with"), name)
        print(name, json.dumps(results[name]), flush=True)
    (folder / "results.json").write_text(json.dumps(results, indent=1))


def source_of(name: str) -> str:
    """The whole program."""
    return HEAD.format(steps=STEPS) + PROGRAMS[name]


def _capture(place: str, name: str) -> list[str]:
    return [sys.executable, "-m", "warpline.capture", "--output", str(Path(place, name))]


def _run(command: list[str], place: str) -> dict[str, Any]:
    source = str(Path(__file__).resolve().parent.parent / "src")
    begin = time.monotonic()
    ended = subprocess.run(
        command, cwd=place, env={**os.environ, "PYTHONPATH": source}, capture_output=True, text=True, check=False
    )
    lines = [line for line in ended.stderr.splitlines() if line.startswith("[") and line.endswith("]")]
    times = json.loads(lines[-1]) if lines else []
    return {
        "exit_code": ended.returncode,
        "seconds": round(time.monotonic() - begin, 2),
        "median_ms": round(1e3 * statistics.median(times), 3) if times else None,
        "last_median_ms": round(1e3 * statistics.median(times[-15:]), 3) if times else None,
        "longest_ms": round(1e3 * max(times[10:]), 1) if times else None,
        "errors": ended.stderr[-500:] if ended.returncode else "",
    }


def check(folder: Path) -> int:
    """Hold the recordings against the programs; the number of faults."""
    faults = 0
    for name in PROGRAMS:
        with tempfile.TemporaryDirectory() as place:
            with tarfile.open(folder / f"{name}.tar.gz") as packed:
                packed.extractall(place, filter="data")
            for what, is_right in _checked(name, Path(place, name, "trace.json.gz")):
                faults += not is_right
                print(f"{'ok  ' if is_right else 'FAIL'} {name}: {what}")
    return faults


def _checked(name: str, file: Path) -> list[tuple[str, bool]]:
    from warpline.analyses.idle.gap_places import gap_places  # noqa: PLC0415 - not on the machine that records
    from warpline.analyses.idle.gaps import idle_gaps  # noqa: PLC0415
    from warpline.analyses.user_frames import Site, UserFrames  # noqa: PLC0415
    from warpline.trace.dataflow import Dataflow  # noqa: PLC0415
    from warpline.trace.open import open_trace  # noqa: PLC0415

    trace = open_trace(file, cache=False)
    flow, frames = Dataflow.of(trace), UserFrames(trace)
    if flow is None:
        return [("there is a data flow", False)]
    matched = float((flow.calls_of(trace) >= 0).mean())
    found = [(f"ops with data flow: {matched:.3f}", matched > 0.9), (f"with lines: {frames.matched_share:.3f}", True)]
    threads, starts = trace.ops.thread, trace.ops.start_ns
    names = trace.ops.stored["name"].to_list()
    text = source_of(name).splitlines()
    for part in LINES[name]:
        rows = [at for at, op in enumerate(names) if op == OPS[part]]
        sites = [Site.parse(site) for site in frames.sites(threads[rows], starts[rows]).drop_nulls()]
        right = sum(site is not None and part in text[site.line - 1] for site in sites)
        # The optimizer reads numbers too.
        wanted = STEPS_RECORDED if OPS[part] == "aten::item" else len(rows)
        found.append((f"{OPS[part]} on its line: {right} of {wanted}", right >= 0.9 * wanted > 0))
    if name == "train":
        unread = [flow.calls["op"][int(call)] for call in flow.never_read.nonzero()[0]]
        on_gpu = bool(trace.gpu.stored.height)
        found.append((f"the clone is never read: {sorted(set(unread))}", "aten::clone" in unread or not on_gpu))
        for gaps in idle_gaps(trace)[:1]:
            places = gap_places(trace, gaps)
            found.append(
                (f"gaps: {[place.sentence for place in places]}", any(place.what == "sleep" for place in places))
            )
    if name == "decode":
        grown = set(flow.growing["op"].to_list())
        found.append((f"what grows: {sorted(grown)}", "aten::cat" in grown))
    if name == "loops":
        found += _loops(flow)
    return found


def _loops(flow: Any) -> list[tuple[str, bool]]:
    import numpy as np  # noqa: PLC0415

    names, steps = flow.calls["op"].to_list(), flow.calls["step"].to_list()
    relu, tanh, product = (
        [at for at, op in enumerate(names) if op == wanted and steps[at] == 0]
        for wanted in ("aten::relu", "aten::tanh", "aten::mm")
    )
    samples = [np.array([mm, at]) for mm, at in zip(product[:16], relu, strict=False)]
    turns = [np.array([mm, at]) for mm, at in zip(product[16:], tanh, strict=False)]
    none = np.zeros(len(names), bool)
    independent, recurrent = (flow.are_independent(groups, none) for groups in (samples, turns))
    return [
        (f"samples independent: {independent}", independent is True and len(samples) == 16),
        (f"recurrence independent: {recurrent}", recurrent is False and len(turns) == 16),
    ]


if __name__ == "__main__":
    if sys.argv[1] == "record":
        record(Path(sys.argv[2]))
    else:
        sys.exit(check(Path(sys.argv[2])))
