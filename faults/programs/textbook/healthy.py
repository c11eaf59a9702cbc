"""Healthy steps: the GPU does useful work all the time, near what it can do."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import graphed, weights

from .models import layer, through


@planted("healthy", None, innocent="cuda_graph")
def layers_of_a_wide_encoder(torch: Any, fix: str | None) -> Step:
    """Two layers of a wide transformer encode 8192 tokens in bfloat16, with fused attention.

    The matmuls of the wide layers take nine tenths of the time and run on tensor cores; the CPU is far ahead.
    """
    batch, length, width, heads = 16, 512, 4096, 32
    layers = [layer(torch, width) for _ in range(2)]
    tokens = torch.randn(batch, length, width, device="cuda", dtype=torch.bfloat16)
    result = torch.empty_like(tokens)

    def step() -> Any:
        with torch.no_grad():
            x = tokens
            for parts in layers:
                x = through(torch, parts, x, heads)
            return result.copy_(x)

    return graphed(torch, step) if fix else step


@planted("healthy", None, innocent="cuda_graph", trap=True)
def load_statistics_behind_large_products(torch: Any, fix: str | None) -> Step:
    """Large matmuls are each followed by a dozen tiny kernels that keep the statistics of a router.

    The tiny kernels are many, but they are launched while a matmul of more than a millisecond runs, and take a
    hundredth of the time. A graph would launch faster what nobody waits for.
    """
    tokens, width, hidden = 8192, 4096, 16384
    ups = weights(torch, 2, width, hidden, torch.bfloat16)
    downs = weights(torch, 2, hidden, width, torch.bfloat16)
    inputs = torch.randn(tokens, width, device="cuda", dtype=torch.bfloat16)
    load = torch.full((64,), 1 / 64, device="cuda")
    result = torch.empty_like(inputs)

    def step() -> Any:
        x = inputs
        for up, down in zip(ups, downs, strict=True):
            for weight in (up, down):
                x = x @ weight
                share = torch.softmax(x[0, :64].float(), 0)
                load.lerp_(share, 0.01).clamp_(min=1e-6)
                load.div_(load.sum())
                entropy = -(load * load.log()).sum()
                load.mul_(1 + 0.001 * entropy.tanh())
        return result.copy_(x)

    return graphed(torch, step) if fix else step


@planted("healthy", None, innocent="fill_gpu", trap=True)
def vocabulary_scored_for_one_token(torch: Any, fix: str | None) -> Step:
    """A language model's head scores 131,072 words for a single token: one vector against 2 GB of weights.

    Such a kernel holds few warps and uses no tensor cores, but it reads the weights as fast as the memory gives
    them, once. Half of the vocabulary on a second stream beside the other half does not help.
    """
    words, width = 131072, 8192
    head = torch.randn(words, width, device="cuda", dtype=torch.bfloat16)
    token = torch.randn(width, device="cuda", dtype=torch.bfloat16)
    scores = torch.empty(words, device="cuda", dtype=torch.bfloat16)
    half = words // 2
    side = torch.cuda.Stream()

    def step() -> Any:
        if not fix:
            return torch.mv(head, token, out=scores)
        main = torch.cuda.current_stream()
        side.wait_stream(main)
        with torch.cuda.stream(side):
            torch.mv(head[:half], token, out=scores[:half])
        torch.mv(head[half:], token, out=scores[half:])
        main.wait_stream(side)
        return scores

    return step
