"""Cause `cold_start`: what the first requests pay and no later one does."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import graphed, weights


@planted("cold_start", "warm_up")
def graphs_captured_on_first_use(torch: Any, fix: str | None) -> Step:
    """A server captures a CUDA graph for each batch size when the first batch of that size comes.

    The first five requests have five sizes, and each runs the model four times and instantiates a graph before it is
    answered. Captured while the server starts, the graphs are there for the first request.
    """
    functional = torch.nn.functional
    width = 512
    layers = weights(torch, 24, width, width, torch.bfloat16)
    sizes = (8, 16, 24, 32, 40)
    inputs = {size: torch.randn(size, width, device="cuda", dtype=torch.bfloat16) for size in sizes}
    graphs: dict[int, Step] = {}
    count = [0]

    def graph_of(size: int) -> Step:
        def work() -> Any:
            x = inputs[size]
            for weight in layers:
                x = x + functional.silu(functional.layer_norm(x, (width,)) @ weight)
            return x

        if size not in graphs:
            graphs[size] = graphed(torch, work)  # planted
        return graphs[size]

    if fix:
        for size in sizes:
            graph_of(size)()
    torch.cuda.synchronize()

    def step() -> None:
        size = sizes[count[0] % len(sizes)]
        count[0] += 1
        graph_of(size)()  # planted

    return step


@planted("cold_start", "warm_up")
def scripted_function_in_its_first_runs(torch: Any, fix: str | None) -> Step:
    """A scripted activation is measured from its first call on.

    TorchScript watches the first run, and writes and compiles a kernel for what it saw in the next. A few calls before
    the measurement leave only the kernel.
    """

    def activation(x: torch.Tensor, gain: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        y = x * gain + bias
        y = y * torch.sigmoid(1.702 * y)
        return torch.tanh(y) + 0.1 * y * torch.exp(-y * y)

    scripted = torch.jit.script(activation)
    x = torch.randn(4096, 4096, device="cuda")
    gain, bias = torch.rand(4096, device="cuda"), torch.rand(4096, device="cuda")

    def step() -> Any:
        with torch.no_grad():
            return scripted(x, gain, bias)  # planted

    if fix:
        for _ in range(6):
            step()
    torch.cuda.synchronize()
    return step
