"""The part of `device measure` about the host: transfers, the cost of a launch, and what a CUDA graph saves."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from warpline.bench.ceilings_samples import (
    BYTES_PER_SECOND,
    SECONDS,
    Benchmark,
    Measurement,
    gpu_samples,
    submit_samples,
    summarise,
    wall_samples,
)
from warpline.bench.stopwatch import GpuStopwatch

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
