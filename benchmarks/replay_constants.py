"""Measures, on a CUDA device, the constants that the fixes use, and records profiles with bare times.

    python benchmarks/replay_constants.py OUT_FOLDER [constants] [suite]

`constants` writes constants.json: what launches, graphs, copies, precisions, layouts and fused kernels cost or gain.
`suite` writes, for each small program, its bare step time (a stopwatch, no profiler) and profiles of the same steps
with several recording options; `warpline.replay.costs.host` is calibrated on such pairs.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

Step = Callable[[], Any]
DEVICE = "cuda"


def bare_ns(step: Step, steps: int = 20, repeats: int = 5) -> float:
    """Median time of a step over several loops, each ended by one synchronisation."""
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter_ns()
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
        times.append((time.perf_counter_ns() - begin) / steps)
    return statistics.median(times)


def device_ns(step: Step, steps: int = 20) -> float:
    """Time of a step on the device, with the launches queued ahead."""
    for _ in range(3):
        step()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    torch.cuda._sleep(20_000_000)
    begin.record()
    for _ in range(steps):
        step()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) * 1e6 / steps


def captured(step: Step) -> torch.cuda.CUDAGraph:
    """The step as a CUDA graph."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph


def launch_constants() -> dict[str, float]:
    """Costs of launches, alone and in graphs."""
    result: dict[str, float] = {}
    for size, label in ((1 << 10, "tiny"), (1 << 22, "small"), (1 << 25, "medium")):
        data = torch.ones(size, device=DEVICE)

        def chain(count: int, data: torch.Tensor = data) -> Step:
            return lambda: [data.mul_(1.0) for _ in range(count)]

        for count in (10, 100, 1000):
            graph = captured(chain(count))
            result[f"graph_{label}_{count}_bare_ns"] = bare_ns(graph.replay)
            result[f"graph_{label}_{count}_device_ns"] = device_ns(graph.replay, 4)
            begin = time.perf_counter_ns()
            graph.replay()
            result[f"graph_{label}_{count}_call_ns"] = time.perf_counter_ns() - begin
            torch.cuda.synchronize()
        result[f"eager_{label}_op_bare_ns"] = bare_ns(chain(100), 10) / 100
        result[f"eager_{label}_op_device_ns"] = device_ns(chain(100), 4) / 100
    flag = torch.ones(1, device=DEVICE)
    result["item_idle_ns"] = bare_ns(flag.item, 200)
    result["synchronize_idle_ns"] = bare_ns(torch.cuda.synchronize, 200)
    return result


def copy_constants() -> dict[str, float]:
    """Copies between host and device, pageable and pinned."""
    result: dict[str, float] = {}
    for exponent in (10, 14, 17, 20, 23, 26, 28):
        size = 1 << exponent
        pageable = torch.ones(size, dtype=torch.uint8)
        pinned = pageable.pin_memory()
        target = torch.empty(size, dtype=torch.uint8, device=DEVICE)
        result[f"h2d_pageable_{size}_ns"] = bare_ns(lambda a=target, b=pageable: a.copy_(b), 5, 3)
        result[f"h2d_pinned_{size}_ns"] = bare_ns(lambda a=target, b=pinned: a.copy_(b, non_blocking=True), 5, 3)
        result[f"d2h_pageable_{size}_ns"] = bare_ns(lambda a=pageable, b=target: a.copy_(b), 5, 3)
        result[f"d2h_pinned_{size}_ns"] = bare_ns(lambda a=pinned, b=target: a.copy_(b, non_blocking=True), 5, 3)
        result[f"d2d_{size}_device_ns"] = device_ns(lambda a=target: a.clone(), 10)
    return result


def matrix_constants() -> dict[str, float]:
    """Products by type and size; aligned and not."""
    result: dict[str, float] = {}
    for size in (256, 512, 1024, 2048, 4096, 8192):
        a, b = (torch.randn(size, size, device=DEVICE) for _ in range(2))
        for allow, label in ((False, "fp32"), (True, "tf32")):
            torch.backends.cuda.matmul.allow_tf32 = allow
            result[f"mm_{label}_{size}_ns"] = device_ns(lambda a=a, b=b: a @ b, 10)
        torch.backends.cuda.matmul.allow_tf32 = False
        for dtype, label in ((torch.bfloat16, "bf16"), (torch.float16, "fp16")):
            c, d = a.to(dtype), b.to(dtype)
            result[f"mm_{label}_{size}_ns"] = device_ns(lambda a=c, b=d: a @ b, 10)
            if size >= 512:
                c, d = (
                    a[: size - 1, : size - 1].to(dtype).contiguous(),
                    b[: size - 1, : size - 1].to(dtype).contiguous(),
                )
                result[f"mm_{label}_{size - 1}_ns"] = device_ns(lambda a=c, b=d: a @ b, 10)
    return result


def attention_constants() -> dict[str, float]:
    """Attention written out, against the fused kernel."""
    result: dict[str, float] = {}
    for batch, heads, length, width in ((8, 16, 512, 64), (4, 16, 1024, 64), (2, 16, 2048, 128), (1, 16, 4096, 128)):
        for dtype, label in ((torch.bfloat16, "bf16"), (torch.float32, "fp32")):
            q, k, v = (torch.randn(batch, heads, length, width, device=DEVICE, dtype=dtype) for _ in range(3))

            def written(q: torch.Tensor = q, k: torch.Tensor = k, v: torch.Tensor = v) -> torch.Tensor:
                return torch.softmax(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5, -1) @ v

            def fused(q: torch.Tensor = q, k: torch.Tensor = k, v: torch.Tensor = v) -> torch.Tensor:
                return functional.scaled_dot_product_attention(q, k, v)

            name = f"attention_{label}_{batch}x{heads}x{length}x{width}"
            result[f"{name}_written_ns"], result[f"{name}_fused_ns"] = device_ns(written, 5), device_ns(fused, 5)
    return result


def layout_constants() -> dict[str, float]:
    """Convolutions, channels first and last."""
    result: dict[str, float] = {}
    for batch, inputs, outputs, side, kernel in (
        (64, 64, 64, 56, 3),
        (64, 256, 128, 28, 1),
        (64, 512, 512, 14, 3),
        (32, 3, 64, 224, 7),
    ):
        for dtype, label in ((torch.float16, "fp16"), (torch.bfloat16, "bf16"), (torch.float32, "tf32")):
            conv = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False).to(DEVICE, dtype)
            data = torch.randn(batch, inputs, side, side, device=DEVICE, dtype=dtype)
            name = f"conv_{label}_{batch}x{inputs}x{side}_{outputs}_k{kernel}"
            with torch.no_grad():
                result[f"{name}_first_ns"] = device_ns(lambda c=conv, d=data: c(d), 5)
                conv, data = conv.to(memory_format=torch.channels_last), data.to(memory_format=torch.channels_last)
                result[f"{name}_last_ns"] = device_ns(lambda c=conv, d=data: c(d), 5)
    return result


def fusion_constants() -> dict[str, float]:
    """Optimisers with one kernel for all, and compiled chains of elementwise ops."""
    result: dict[str, float] = {}
    for count, size in ((48, 1 << 10), (48, 1 << 20), (200, 1 << 16)):
        for label, options in (
            ("loop", {"foreach": False}),
            ("foreach", {"foreach": True}),
            ("fused", {"fused": True}),
        ):
            parameters = [nn.Parameter(torch.ones(size, device=DEVICE)) for _ in range(count)]
            for parameter in parameters:
                parameter.grad = torch.ones_like(parameter)
            optimiser = torch.optim.AdamW(parameters, **options)
            result[f"adamw_{label}_{count}x{size}_bare_ns"] = bare_ns(optimiser.step, 5, 3)
            result[f"adamw_{label}_{count}x{size}_device_ns"] = device_ns(optimiser.step, 3)

    def chain(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return functional.gelu(x * 1.5 + y).mul(0.5).add(x).clamp(-3, 3) * y

    def block(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return functional.layer_norm(functional.gelu(x + y), x.shape[-1:]) * y

    for label, function in (("chain", chain), ("norm", block)):
        for rows in (64, 4096, 65536):
            x, y = (torch.randn(rows, 1024, device=DEVICE) for _ in range(2))
            result[f"{label}_eager_{rows}_bare_ns"] = bare_ns(lambda f=function, x=x, y=y: f(x, y))
            result[f"{label}_eager_{rows}_device_ns"] = device_ns(lambda f=function, x=x, y=y: f(x, y))
            try:
                compiled = torch.compile(function)
                result[f"{label}_compiled_{rows}_bare_ns"] = bare_ns(lambda f=compiled, x=x, y=y: f(x, y))
                result[f"{label}_compiled_{rows}_device_ns"] = device_ns(lambda f=compiled, x=x, y=y: f(x, y))
            except Exception as error:  # without a C compiler the rest is still worth measuring
                result[f"{label}_compile_failed"] = 1.0
                print("compile:", str(error)[:200], file=sys.stderr)
    return result


def programs() -> dict[str, Step]:
    """Small programs, dispatch-bound and GPU-bound, with and without synchronisation."""
    torch.manual_seed(0)
    steps: dict[str, Step] = {}
    tiny = nn.Sequential(*[m for _ in range(24) for m in (nn.Linear(256, 256), nn.GELU())]).to(DEVICE)
    small_input = torch.randn(32, 256, device=DEVICE)
    steps["tiny_inference"] = torch.no_grad()(lambda: tiny(small_input))
    optimiser = torch.optim.AdamW(tiny.parameters(), lr=1e-3, foreach=False)

    def train(sync: bool) -> None:
        optimiser.zero_grad()
        loss = tiny(small_input).square().mean()
        loss.backward()
        optimiser.step()
        if sync:
            loss.item()

    steps["tiny_training"] = lambda: train(False)
    steps["tiny_training_item"] = lambda: train(True)
    layer = nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True).to(DEVICE)
    tokens = torch.randn(8, 128, 512, device=DEVICE)
    steps["layer_training"] = lambda: layer(tokens).sum().backward()
    big = nn.Sequential(*[m for _ in range(8) for m in (nn.Linear(4096, 4096), nn.ReLU())]).to(DEVICE, torch.bfloat16)
    wide = torch.randn(4096, 4096, device=DEVICE, dtype=torch.bfloat16)
    steps["big_inference"] = torch.no_grad()(lambda: big(wide))
    steps["big_training"] = lambda: big(wide).sum().backward()
    host = torch.randn(64, 3, 224, 224)
    convs = nn.Sequential(*[m for _ in range(6) for m in (nn.LazyConv2d(64, 3, padding=1), nn.ReLU())]).to(DEVICE)
    steps["pageable_convs"] = torch.no_grad()(lambda: convs(host.to(DEVICE)))
    values = torch.randn(1 << 20, device=DEVICE)

    def many_syncs() -> None:
        for _ in range(20):
            chunk = values * 2 + 1
            if chunk.sum().item() == 0:
                raise ValueError

    steps["many_syncs"] = many_syncs

    def elementwise() -> None:
        out = values
        for _ in range(100):
            out = out * 1.01
        out.sum()

    steps["elementwise"] = elementwise
    large = torch.randn(1 << 26, device=DEVICE)

    def memory_bound() -> None:
        out = large
        for _ in range(10):
            out = torch.sin(out) + 1
        out.sum()

    steps["memory_bound"] = memory_bound
    return steps


OPTIONS: dict[str, dict[str, bool]] = {
    "plain": {},
    "shapes": {"record_shapes": True},
    "stack": {"record_shapes": True, "with_stack": True},
    "memory": {"record_shapes": True, "profile_memory": True},
    "all": {"record_shapes": True, "with_stack": True, "profile_memory": True},
}


def record(step: Step, file: Path, options: dict[str, bool]) -> None:
    """A profile of six steps after two of warm-up."""
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(
        activities=activities, schedule=torch.profiler.schedule(wait=1, warmup=2, active=6), **options
    ) as profiler:
        for _ in range(9):
            step()
            profiler.step()
        torch.cuda.synchronize()
    profiler.export_chrome_trace(str(file))


def main() -> None:
    """Measures what was asked for."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    wanted = sys.argv[2:] or ["constants", "suite"]
    if "constants" in wanted:
        constants: dict[str, Any] = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
        for part in (
            launch_constants,
            copy_constants,
            matrix_constants,
            attention_constants,
            layout_constants,
            fusion_constants,
        ):
            begin = time.perf_counter()
            constants |= part()
            print(part.__name__, f"{time.perf_counter() - begin:.1f} s", flush=True)
            (folder / "constants.json").write_text(json.dumps(constants, indent=1))
    if "suite" in wanted:
        bare: dict[str, float] = {}
        for name, step in programs().items():
            bare[name] = bare_ns(step)
            for label, options in OPTIONS.items():
                record(step, folder / f"{name}.{label}.json.gz", options)
            after = bare_ns(step)
            bare[name] = (bare[name] + after) / 2
            print(name, f"{bare[name] / 1e6:.3f} ms", flush=True)
            (folder / "bare.json").write_text(json.dumps(bare, indent=1))


if __name__ == "__main__":
    main()
