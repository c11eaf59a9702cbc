"""Records the same programs again and again, each time in a process of its own, with `torch.profiler`.

    python benchmarks/repeated_runs.py DIR [--repeats 20]

Needs torch and a CUDA device. The recordings show how much two runs of one program differ (docs/compare.md), and
whether a slowdown of 3 % is found. `layer` is a transformer layer that keeps the GPU busy, `small` a training step that
waits for the CPU; `layer_slower` and `small_slower` do about 3 % more. Other forms of both are recorded three times.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

HIDDEN, FEED_FORWARD, TOKENS, HEADS = 4096, 11008, 2048, 32
STEPS = 30
FORMS = ("layer", "layer_slower", "small", "small_slower")
OTHER_FORMS = ("layer_graph", "layer_fused", "layer_compiled", "layer_item", "small_item")
Step = Callable[[], Any]


class Layer(nn.Module):
    """A decoder layer; with `fused`, gate and up are one matrix."""

    def __init__(self, fused: bool) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(HIDDEN) for _ in range(2)])
        self.qkv, self.out = nn.Linear(HIDDEN, 3 * HIDDEN, bias=False), nn.Linear(HIDDEN, HIDDEN, bias=False)
        wide = [2 * FEED_FORWARD] if fused else [FEED_FORWARD, FEED_FORWARD]
        self.up = nn.ModuleList([nn.Linear(HIDDEN, size, bias=False) for size in wide])
        self.down = nn.Linear(FEED_FORWARD, HIDDEN, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One layer."""
        heads = self.qkv(self.norms[0](x)).view(1, TOKENS, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        attended = nn.functional.scaled_dot_product_attention(*heads.unbind(0), is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(1, TOKENS, HIDDEN))
        y = self.norms[1](x)
        parts = self.up[0](y).chunk(2, -1) if len(self.up) == 1 else [linear(y) for linear in self.up]
        return x + self.down(nn.functional.silu(parts[0]) * parts[1])


def layer_step(form: str) -> Step:
    """The step of one form of the layer."""
    layer = Layer(fused=form in {"layer_fused", "layer_compiled"}).half().cuda().eval()
    x = torch.randn(1, TOKENS, HIDDEN, device="cuda", dtype=torch.half) / 8
    more = torch.randn(16 << 20, device="cuda", dtype=torch.float32)
    if form == "layer_compiled":
        layer.compile()

    def step() -> Any:
        with torch.no_grad():
            y = layer(x)
            if form == "layer_slower":
                more.neg_()
            if form == "layer_item":
                y[0, 0, 0].item()
            return y

    return graphed(step) if form == "layer_graph" else step


def graphed(step: Step) -> Step:
    """The step as a CUDA graph."""
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def small_step(form: str) -> Step:
    """A training step of a small network."""
    width = 256
    model = nn.Sequential(*(part for _ in range(12) for part in (nn.Linear(width, width), nn.ReLU()))).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(64, width, device="cuda")

    def step() -> Any:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        if form == "small_item":
            loss.item()
        loss.backward()
        optimizer.step()
        for _ in range(4 if form == "small_slower" else 0):
            loss = loss.detach() + 1
        return loss

    return step


def record(form: str, file: Path) -> dict[str, Any]:
    """Time the steps without a profiler, then record them."""
    torch.manual_seed(0)
    step = layer_step(form) if form.startswith("layer") else small_step(form)
    for _ in range(30):
        step()
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(100):
        step()
    torch.cuda.synchronize()
    bare = (time.perf_counter() - begun) / 100
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    schedule = torch.profiler.schedule(wait=1, warmup=3, active=STEPS)
    with torch.profiler.profile(activities=activities, schedule=schedule, record_shapes=True) as profiler:
        for _ in range(STEPS + 4):
            step()
            torch.cuda.synchronize()
            profiler.step()
    profiler.export_chrome_trace(str(file))
    return {"form": form, "file": file.name, "bare_us": round(1e6 * bare, 3)}


def main() -> int:
    """Record all forms in turn, so that slow changes of the machine reach all of them."""
    parser = argparse.ArgumentParser(description="Record the same programs again and again.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    jobs = [(form, number) for number in range(options.repeats) for form in FORMS]
    jobs += [(form, number) for number in range(3) for form in OTHER_FORMS]
    for form, number in jobs:
        file = options.folder / f"{form}.{number:02d}.json.gz"
        child = os.fork()  # torch is loaded once; CUDA starts anew in each process
        if not child:
            try:
                row = record(form, file)
                with (options.folder / "bare.jsonl").open("a") as rows:
                    rows.write(json.dumps(row) + "\n")
                os._exit(0)
            except BaseException as error:
                print(form, number, repr(error)[:300], flush=True)
                os._exit(1)
        os.waitpid(child, 0)
        print(form, number, file.stat().st_size if file.exists() else "missing", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
