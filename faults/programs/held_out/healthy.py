"""Nothing planted: training near the device's limit, and work on the CPU that the GPU never waits for."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import graphed, weights


@planted("healthy", None, innocent="cuda_graph", steps=4)
def wide_training(torch: Any, fix: str | None) -> Step:
    """Forward and backward through three wide layers in bfloat16: eight matmuls of over half a teraflop each.

    The launches take a hundredth of the step.
    """
    nn, width = torch.nn, 8192
    layers = [layer for _ in range(3) for layer in (nn.Linear(width, width, bias=False), nn.ReLU())]
    model = nn.Sequential(*layers[:-1]).to("cuda", torch.bfloat16)
    parameters = list(model.parameters())
    x = torch.randn(4096, width, device="cuda", dtype=torch.bfloat16)
    towards = torch.randn_like(x)

    def step() -> None:
        for parameter in parameters:
            parameter.grad = None
        model(x).backward(towards)

    return graphed(torch, step) if fix else step


@planted("healthy", None, innocent="pin_memory", trap=True)
def pageable_copy_behind_compute(torch: Any, fix: str | None) -> Step:
    """The next batch, 8 MiB of pageable memory, is copied on a stream of its own while this batch is computed.

    The copy blocks the CPU for about a millisecond; the GPU has three milliseconds of matmuls to go.
    """
    host = torch.randn(1024, 4096).to(torch.bfloat16)
    host = host.pin_memory() if fix else host
    layers = weights(torch, 8, 4096, 4096, torch.bfloat16)
    rest = torch.randn(7168, 4096, device="cuda", dtype=torch.bfloat16)
    buffers = [torch.zeros(1024, 4096, device="cuda", dtype=torch.bfloat16) for _ in range(2)]
    side = torch.cuda.Stream()
    free, filled = ([torch.cuda.Event(), torch.cuda.Event()] for _ in range(2))
    turn = 0

    def step() -> Any:
        nonlocal turn
        main = torch.cuda.current_stream()
        main.wait_event(filled[turn])
        y = torch.cat((buffers[turn], rest))
        free[turn].record()
        for weight in layers:
            y = y @ weight
        turn = 1 - turn
        with torch.cuda.stream(side):
            side.wait_event(free[turn])
            buffers[turn].copy_(host, non_blocking=True)
            filled[turn].record(side)
        return y

    return step


@planted("healthy", None, innocent="fused_optimizer", trap=True)
def plain_descent_on_large_parameters(torch: Any, fix: str | None) -> Step:
    """SGD without momentum walks over twelve parameters of 64 MiB one by one.

    The loop looks guilty, but each parameter is one kernel at the rate of the memory, and the CPU is far ahead. The
    fused optimiser moves the same bytes.
    """
    parameters = [torch.nn.Parameter(torch.randn(4096, 4096, device="cuda")) for _ in range(12)]
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    fused = {"fused": True} if fix else {"foreach": False}
    optimizer = torch.optim.SGD(parameters, lr=1e-4, **fused)

    def step() -> None:
        optimizer.step()

    return step


@planted("healthy", None, innocent="cuda_graph", trap=True)
def bookkeeping_behind_products(torch: Any, fix: str | None) -> Step:
    """Python writes out a report before each of six batched matmuls.

    It is busy all the time and still ahead of the GPU, so a graph, which runs none of it, is no faster.
    """
    layers = [torch.randn(64, 2048, 1024, device="cuda", dtype=torch.bfloat16) for _ in range(2)]
    x = torch.randn(64, 1024, 2048, device="cuda", dtype=torch.bfloat16)
    report = {f"head.{index}": (index, index / 7) for index in range(100)}

    def step() -> Any:
        results = []
        for index in range(6):
            repr(report)
            results.append(torch.bmm(x, layers[index % 2]))
        return results

    return graphed(torch, step) if fix else step
