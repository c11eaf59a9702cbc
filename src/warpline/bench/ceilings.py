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
from functools import partial
from pathlib import Path
from typing import Any

from warpline.bench.experiments import precision
from warpline.bench.matmuls import ONE_LAYOUT, multiplication, operands
from warpline.bench.stopwatch import GpuStopwatch, Repeated, WallStopwatch
from warpline.bench.watch import query_smi
from warpline.capture.calibration import measure_host
from warpline.errors import CannotAnswer, WarplineError

BYTES_PER_SECOND, FLOPS_PER_SECOND, SECONDS = "bytes/s", "FLOP/s", "s"


@dataclass(frozen=True, slots=True)
class Measurement:
    """A median, the range of its middle half, and how it was taken."""

    value: float
    unit: str
    low: float
    high: float
    repeats: int
    how: str


Benchmark = Callable[[], Measurement]


WARM_UP = 3
"""Calls before the first that counts."""


def summarise(samples: Sequence[float], unit: str, how: str) -> Measurement:
    """The median of some samples with their quartiles."""
    if not samples:
        raise ValueError("no samples")
    quartiles = statistics.quantiles(samples, n=4) if len(samples) > 1 else [samples[0]] * 3
    return Measurement(statistics.median(samples), unit, quartiles[0], quartiles[2], len(samples), how)


def gpu_samples(
    torch: Any, work: Callable[[], object], *, inner: int, repeats: int, warm_up: int = WARM_UP, pause_s: float = 0.0
) -> list[float]:
    """Seconds per call of `work`, on the GPU's own clock: each sample times `inner` calls between two events.

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
        work()  # wakes the clock up again
        samples.append(stopwatch.time([sample])[0] / 1e9 / inner)
    return samples


def wall_samples(torch: Any, work: Callable[[], object], *, repeats: int, warm_up: int) -> list[float]:
    """Seconds per call on the CPU's clock, each call followed by a synchronisation."""
    times = WallStopwatch(GpuStopwatch(torch, flush=False)).time([work] * (warm_up + repeats))
    return [time_ns / 1e9 for time_ns in times[warm_up:]]


def submit_samples(torch: Any, work: Callable[[], object], *, inner: int, repeats: int) -> list[float]:
    """CPU seconds per call, not waiting for the GPU: each sample submits `inner` calls to an idle device."""
    stopwatch, sample = GpuStopwatch(torch, flush=False), Repeated(work, inner)
    times = [stopwatch.host(sample).submit_ns / 1e9 / inner for _ in range(WARM_UP + repeats)]
    torch.cuda.synchronize()
    return times[WARM_UP:]


COPY_BYTES = 1 << 30
"""Far larger than any L2, so that every byte is read from and written to memory."""
GEMM_SIZE = 8192
"""Matmul size at which every recent chip reaches its plateau; 128 MiB per 16-bit operand."""
FP64_GEMM_SIZE = 4096
PAUSE_S = 0.1
"""Pause between bursts: on an H200, one second of bf16 matmuls without a pause reaches the power limit and is 15 %
slower."""
MINIMUM_CAPABILITY = {"fp8": (8, 9), "int8": (7, 5), "bf16": (8, 0), "tf32": (8, 0)}

_L2_READER = r"""
extern "C" __global__ void read_again(const float4* data, float* out, int count, int rounds) {
    float total = 0.f;
    for (int round = 0; round < rounds; ++round) {
        #pragma unroll 4
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
            float4 value;
            asm volatile("ld.global.cg.v4.f32 {%0,%1,%2,%3}, [%4];"
                         : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w) : "l"(data + i));
            total += value.x + value.y + value.z + value.w;
        }
    }
    if (total == 12345.678f) out[0] = total;
}
"""
"""Reads a buffer repeatedly; `.cg` loads are cached in L2 and not in L1."""


def compute_benchmarks(torch: Any) -> dict[str, Benchmark]:
    """The name of each measurement, and its function."""
    products = ("bf16", "fp16", "tf32", "fp32_vector", "fp64", "fp8", "int8")
    return {
        "copy.dram": partial(_copy_bandwidth, torch),
        "copy.l2": partial(_l2_bandwidth, torch),
        **{f"gemm.{kind}": partial(_product, torch, kind) for kind in products},
        "gemm.bf16_sustained": partial(_product, torch, "bf16", sustained=True),
    }


def _copy_bandwidth(torch: Any) -> Measurement:
    size = min(COPY_BYTES, torch.cuda.mem_get_info()[0] // 4)
    source = torch.randint(0, 255, (size,), dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    samples = gpu_samples(torch, partial(target.copy_, source), inner=5, repeats=20)
    rates = [2 * size / seconds for seconds in samples]
    return summarise(rates, BYTES_PER_SECOND, f"copy of {size >> 20} MiB within the device, read and write counted")


def _l2_bandwidth(torch: Any) -> Measurement:
    """The best of several working sets within the L2: chips with a partitioned L2 prefer small ones."""
    l2_bytes = getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 0) or 32 << 20
    candidates = [_l2_reads(torch, l2_bytes // part) for part in (2, 4, 8)]
    return max(candidates, key=lambda candidate: candidate.value)


def _l2_reads(torch: Any, size: int) -> Measurement:
    kernel = torch.cuda._compile_kernel(_L2_READER, "read_again")
    data = torch.randn(size // 4, device="cuda")
    out = torch.zeros(1, device="cuda")
    rounds = max(1, (4 << 30) // size)
    blocks = torch.cuda.get_device_properties(0).multi_processor_count * 2
    count = data.numel() // 4
    launch = partial(kernel, (blocks, 1, 1), (1024, 1, 1), (data, out, count, rounds))
    samples = gpu_samples(torch, launch, inner=1, repeats=10, warm_up=2)
    rates = [16 * count * rounds / seconds for seconds in samples]
    return summarise(rates, BYTES_PER_SECOND, f"{size >> 20} MiB read {rounds} times past the L1")


def _product(torch: Any, kind: str, *, sustained: bool = False) -> Measurement:
    """The best of the layouts, in bursts too short for the power limit; if sustained, without a pause."""
    capability = torch.cuda.get_device_capability(0)
    if torch.version.hip is None and capability < MINIMUM_CAPABILITY.get(kind, (0, 0)):
        raise RuntimeError(f"compute capability {capability[0]}.{capability[1]} has no {kind} tensor cores")
    size = FP64_GEMM_SIZE if kind == "fp64" else GEMM_SIZE
    dtype = "fp32" if kind == "fp32_vector" else kind
    multiply = multiplication(torch, dtype, "cuda")
    inner, pause_s = (10, 0.0) if sustained else (1 if dtype == "fp32" else 3, PAUSE_S)
    found = []
    with precision(torch, dtype):
        for transposed in (True, False) if dtype not in ONE_LAYOUT else (True,):
            pair = operands(torch, dtype, (size, size, size), "cuda", transposed=transposed)
            call = partial(multiply, *pair)
            samples = gpu_samples(torch, call, inner=inner, repeats=12, warm_up=5, pause_s=pause_s)
            layout = "second operand transposed" if transposed else "both operands row by row"
            how = f"{size} cubed, random operands, {layout}, {'without a pause' if sustained else 'in short bursts'}"
            found.append(summarise([2 * size**3 / seconds for seconds in samples], FLOPS_PER_SECOND, how))
    return max(found, key=lambda measurement: measurement.value)


TRANSFER_BYTES = 256 << 20
LAUNCHES = 500
"""Below the 1,024 launches that the driver queues before a launch blocks."""
NODES = 200
HOLD_NS = 10_000_000
"""Several times as long as a chain takes to submit."""
SPINS = (2_000, 20_000)
"""Clock cycles that the kernels of a chain spin; extrapolated to zero, the rest is the gap between kernels."""


def host_benchmarks(torch: Any) -> dict[str, Benchmark]:
    """The name of each measurement, and its function."""
    return {
        "host.h2d_pinned": partial(_transfer, torch, pinned=True, to_device=True),
        "host.d2h_pinned": partial(_transfer, torch, pinned=True, to_device=False),
        "host.h2d_pageable": partial(_transfer, torch, pinned=False, to_device=True),
        "host.d2h_pageable": partial(_transfer, torch, pinned=False, to_device=False),
        "cpu.dispatch": partial(_dispatch, torch),
        "cpu.launch": partial(_launch, torch),
        "gpu.launch_round_trip": partial(_round_trip, torch),
        "gpu.kernel_gap": partial(_kernel_gap, torch, graph=False),
        "graph.kernel_gap": partial(_kernel_gap, torch, graph=True),
        "graph.launch": partial(_graph_launch, torch),
    }


def _transfer(torch: Any, *, pinned: bool, to_device: bool) -> Measurement:
    host = torch.randint(0, 255, (TRANSFER_BYTES,), dtype=torch.uint8)
    host = host.pin_memory() if pinned else host
    device = torch.randint(0, 255, (TRANSFER_BYTES,), dtype=torch.uint8, device="cuda")
    copy = (
        partial(device.copy_, host, non_blocking=pinned)
        if to_device
        else partial(host.copy_, device, non_blocking=pinned)
    )
    if pinned:
        samples = gpu_samples(torch, copy, inner=2, repeats=10, warm_up=2)
    else:
        samples = wall_samples(torch, copy, repeats=10, warm_up=2)
    clock = "on the GPU's clock" if pinned else "until the call returns"
    how = f"{TRANSFER_BYTES >> 20} MiB at a time into memory touched before, {clock}"
    return summarise([TRANSFER_BYTES / seconds for seconds in samples], BYTES_PER_SECOND, how)


def _dispatch(torch: Any) -> Measurement:
    left, right = torch.randn(8, device="cuda"), torch.randn(8, device="cuda")
    samples = submit_samples(torch, partial(torch.add, left, right), inner=LAUNCHES, repeats=20)
    return summarise(samples, SECONDS, "CPU time of torch.add on 8 elements, without waiting for the GPU")


def _launch(torch: Any) -> Measurement:
    samples = submit_samples(torch, partial(torch.cuda._sleep, 1), inner=LAUNCHES, repeats=20)
    return summarise(samples, SECONDS, "CPU time of launching an empty kernel through a minimal binding")


def _round_trip(torch: Any) -> Measurement:
    samples = wall_samples(torch, partial(torch.cuda._sleep, 1), repeats=200, warm_up=20)
    return summarise(samples, SECONDS, "an empty kernel launched on an idle device, until the host sees it finished")


def _chain(torch: Any, spin: int, *, graph: bool) -> Callable[[], object]:
    """A call that enqueues many dependent kernels that spin for some cycles."""

    def enqueue() -> None:
        for _ in range(NODES):
            torch.cuda._sleep(spin)

    if not graph:
        return enqueue
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded):
        enqueue()
    replay: Callable[[], object] = recorded.replay
    return replay


def _kernel_gap(torch: Any, *, graph: bool) -> Measurement:
    """From the end of one kernel to the start of the next: a chain's time per kernel, extrapolated to zero spinning."""
    medians = []
    for spin in SPINS:
        samples = _behind_a_long_kernel(torch, _chain(torch, spin, graph=graph))
        medians.append([seconds / NODES for seconds in samples])
    short, long = medians
    ratio = SPINS[0] / (SPINS[1] - SPINS[0])
    gaps = [max(few - (many - few) * ratio, 0.0) for few, many in zip(short, long, strict=True)]
    where = "a CUDA graph" if graph else "a stream with its queue full"
    return summarise(gaps, SECONDS, f"time per kernel in {where}, extrapolated to kernels of zero length")


def _behind_a_long_kernel(torch: Any, work: Callable[[], object]) -> list[float]:
    """GPU seconds of operations that were all enqueued while the GPU was busy."""
    work()
    stopwatch = GpuStopwatch(torch, flush=False)
    stopwatch.hold_ns = HOLD_NS
    return [stopwatch.time([work])[0] / 1e9 for _ in range(10)]


def _graph_launch(torch: Any) -> Measurement:
    """CPU time of replaying a graph of many kernels, which replaces as many launches."""
    samples = submit_samples(torch, _chain(torch, 1, graph=True), inner=1, repeats=100)
    return summarise(samples, SECONDS, f"CPU time of replaying a CUDA graph of {NODES} kernels")


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
