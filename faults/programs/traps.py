"""Traps: something in each step looks guilty and is not. `innocent` names the fix that would be wasted on it."""

from __future__ import annotations

import time
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import batches, graphed, weights


@planted("dispatch", "cuda_graph", innocent="remove_sync", trap=True, steps=4)
def item_in_a_dispatch_bound_loop(torch: Any, fix: str | None) -> Step:
    """A loop of tiny kernels reads its loss with `.item()` in every step.

    The wait looks guilty, but the GPU has long finished when the CPU gets there: without it the step takes as long.
    The launches are the cause; the fixed step is a graph that still reads its loss.
    """
    layers = weights(torch, 24, 256, 256)
    x = torch.randn(32, 256, device="cuda")
    loss = torch.zeros((), device="cuda")

    def work() -> None:
        y = x
        for weight in layers:
            y = torch.relu(y @ weight)  # planted
        torch.mean(y, (0, 1), out=loss)

    launch = graphed(torch, work) if fix == "cuda_graph" else work

    def step() -> Any:
        launch()
        return None if fix == "remove_sync" else loss.item()

    return step


@planted("kernel", "tf32", also=("bf16",), innocent="pin_memory", trap=True)
def tiny_copy_in_a_kernel_bound_step(torch: Any, fix: str | None) -> Step:
    """A few labels are copied from pageable memory, with nothing to hide the copy behind, in every step.

    The copy is exposed but takes microseconds; the step is a float32 matmul without tensor cores.
    """
    dtype = torch.bfloat16 if fix == "bf16" else torch.float32
    torch.backends.cuda.matmul.allow_tf32 = fix == "tf32"
    layers = weights(torch, 2, 3072, 3072, dtype)
    x = torch.randn(3072, 3072, device="cuda", dtype=dtype)
    labels = torch.randint(0, 3072, (3072,))
    labels = labels.pin_memory() if fix == "pin_memory" else labels

    def step() -> Any:
        target = labels.to("cuda", non_blocking=fix == "pin_memory")
        y = x
        for weight in layers:
            y = y @ weight  # planted
        return y.gather(1, target.unsqueeze(1)).sum()

    return step


@planted("kernel", "tf32", also=("bf16",), innocent="prefetch", trap=True)
def slow_loader_hidden_by_workers(torch: Any, fix: str | None) -> Step:
    """Every batch takes 3 ms to fetch, but four workers fetch ahead.

    The loader keeps up with the step, which is a float32 matmul without tensor cores.
    """
    torch.backends.cuda.matmul.allow_tf32 = fix == "tf32"
    dtype = torch.bfloat16 if fix == "bf16" else torch.float32
    layers = weights(torch, 3, 4096, 4096, dtype)

    def make(index: int) -> Any:
        time.sleep(0.003)
        return torch.full((64, 128), index / 1e6)

    source = batches(torch, make, workers=8 if fix == "prefetch" else 4)
    x = torch.randn(4096, 4096, device="cuda", dtype=dtype)

    def step() -> Any:
        y = x + next(source).to("cuda").mean()
        for weight in layers:
            y = y @ weight  # planted
        return y

    return step


@planted("kernel", "tf32", also=("bf16",), innocent="cuda_graph", trap=True)
def small_kernels_behind_a_slow_one(torch: Any, fix: str | None) -> Step:
    """Thirty tiny kernels on a side stream, launched one by one, beside a long float32 matmul.

    They run in the matmul's shadow: no other way of launching them would end the step earlier. The matmul is slow.
    """
    torch.backends.cuda.matmul.allow_tf32 = fix == "tf32"
    dtype = torch.bfloat16 if fix == "bf16" else torch.float32
    (weight,) = weights(torch, 1, 6144, 6144, dtype)
    x, small = torch.randn(6144, 6144, device="cuda", dtype=dtype), torch.randn(64, device="cuda")
    side = torch.cuda.Stream(priority=-1)

    def step() -> Any:
        main = torch.cuda.current_stream()
        side.wait_stream(main)
        y = x @ weight  # planted
        with torch.cuda.stream(side):
            z = small
            for _ in range(30):
                z = z * 0.99
        main.wait_stream(side)
        return y, z

    return graphed(torch, step) if fix == "cuda_graph" else step


@planted("healthy", None, innocent="cuda_graph", trap=True)
def small_kernels_behind_a_large_one(torch: Any, fix: str | None) -> Step:
    """Thirty tiny kernels on a side stream beside a chain of large bfloat16 matmuls.

    The tiny kernels cost nothing that the matmuls would not take anyway.
    """
    layers = weights(torch, 8, 4096, 4096, torch.bfloat16)
    x, small = torch.randn(8192, 4096, device="cuda", dtype=torch.bfloat16), torch.randn(64, device="cuda")
    side = torch.cuda.Stream(priority=-1)

    def step() -> Any:
        main = torch.cuda.current_stream()
        side.wait_stream(main)
        y = x
        for weight in layers:
            y = y @ weight
        with torch.cuda.stream(side):
            z = small
            for _ in range(30):
                z = z * 0.99
        main.wait_stream(side)
        return y, z

    return graphed(torch, step) if fix else step


@planted("healthy", None, innocent="cuda_graph", trap=True)
def low_occupancy_at_full_bandwidth(torch: Any, fix: str | None) -> Step:
    """A matmul of sixteen rows with large weights, as in decoding: few warps a multiprocessor.

    The weights stream in at the rate of the memory, which is the limit; more warps would not bring them sooner.
    """
    layers = weights(torch, 4, 16384, 16384, torch.bfloat16)
    x = torch.randn(16, 16384, device="cuda", dtype=torch.bfloat16)

    def step() -> Any:
        y = x
        for weight in layers:
            y = torch.nn.functional.linear(y, weight)
        return y

    return graphed(torch, step) if fix else step


@planted("healthy", None, innocent="reduce_before_copy", trap=True)
def copies_behind_compute(torch: Any, fix: str | None) -> Step:
    """Sixteen mebibytes go to pinned memory in every step, on a stream of their own.

    The copy is large and wholly hidden behind the matmuls: a thousandth of it would end the step no sooner.
    """
    layers = weights(torch, 8, 4096, 4096, torch.bfloat16)
    x = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    result = torch.randn(4096, 2048, device="cuda", dtype=torch.bfloat16)
    result = result[:4] if fix else result
    host = torch.empty(result.shape, dtype=torch.bfloat16, pin_memory=True)
    side = torch.cuda.Stream()

    def step() -> Any:
        with torch.cuda.stream(side):
            host.copy_(result, non_blocking=True)
        y = x
        for weight in layers:
            y = y @ weight
        torch.cuda.current_stream().wait_stream(side)
        side.wait_stream(torch.cuda.current_stream())
        return y

    return step


@planted("healthy", None, innocent="remove_sync", trap=True)
def one_item_in_a_long_step(torch: Any, fix: str | None) -> Step:
    """A long step of large matmuls reads one number with `.item()` at its end.

    The CPU waits for nearly the whole step, and the GPU for nothing but one launch.
    """
    layers = weights(torch, 6, 4096, 4096, torch.bfloat16)
    x = torch.randn(16384, 4096, device="cuda", dtype=torch.bfloat16)

    def step() -> Any:
        y = x
        for weight in layers:
            y = y @ weight
        peak = y[0].amax()
        return peak if fix else peak.item()

    return step
