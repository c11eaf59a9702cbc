"""Nothing planted: steps near what the device can do. Each names a tempting fix that does not help."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import compiled, graphed, weights


@planted("healthy", None, innocent="cuda_graph")
def large_gemm_chain(torch: Any, fix: str | None) -> Step:
    """Four large matmuls in bfloat16, each over a hundred microseconds on the tensor cores.

    The CPU is far ahead, so a graph changes nothing.
    """
    layers = weights(torch, 4, 4096, 4096, torch.bfloat16)
    x = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)

    def step() -> Any:
        y = x
        for weight in layers:
            y = y @ weight
        return y

    return graphed(torch, step) if fix else step


@planted("healthy", None, innocent="torch_compile")
def kernel_at_bandwidth(torch: Any, fix: str | None) -> Step:
    """One pointwise kernel that reads a gibibyte, at the rate of the memory.

    Compiled, it moves the same bytes.
    """
    left, right = torch.randn(2, 128 << 20, device="cuda").unbind(0)
    add = torch.add

    def blend(left: Any, right: Any) -> Any:
        return add(left, right, alpha=0.5)

    function = compiled(torch, blend) if fix else blend

    def step() -> Any:
        return function(left, right)

    return step


@planted("healthy", None, innocent="remove_sync")
def graphed_step(torch: Any, fix: str | None) -> Step:
    """A stack of matmuls in one CUDA graph, with a wait for the GPU at the end of the step.

    The step is two milliseconds of work near the tensor cores' rate; the wait costs one launch latency.
    """
    layers = weights(torch, 12, 4096, 4096, torch.bfloat16)
    x = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    result = torch.empty_like(x)

    def work() -> None:
        y = x
        for weight in layers:
            y = y @ weight
        result.copy_(y)

    replay = graphed(torch, work)

    def step() -> None:
        replay()
        if not fix:
            torch.cuda.synchronize()

    return step
