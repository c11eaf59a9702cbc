"""Cause `dispatch`: small work in many calls, so that the GPU waits for the next one."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import graphed

from .models import layer, through


@planted("dispatch", "cuda_graph")
def encoder_on_one_short_sentence(torch: Any, fix: str | None) -> Step:
    """A text encoder of twelve narrow layers embeds one sentence of 48 tokens, call by call.

    Each kernel is over before the CPU has launched the next. Its shapes never change, so a CUDA graph can replay
    the whole encoder in one launch.
    """
    length, width, heads, depth = 48, 256, 4, 12
    layers = [layer(torch, width) for _ in range(depth)]
    tokens = torch.randn(1, length, width, device="cuda", dtype=torch.bfloat16)
    embedded = torch.empty(1, width, device="cuda", dtype=torch.bfloat16)

    def step() -> Any:
        with torch.no_grad():
            x = tokens
            for parts in layers:
                x = through(torch, parts, x, heads)  # planted
            return embedded.copy_(x.mean(1))

    return graphed(torch, step) if fix else step


@planted("dispatch", "fused_optimizer")
def adamw_in_a_python_loop(torch: Any, fix: str | None) -> Step:
    """A transformer is trained with `AdamW(foreach=False)`, which updates its 38 parameters one after the other.

    Some ten tiny kernels for each parameter take longer to launch than both passes take to run. The fused
    optimiser updates all of them in a few kernels.
    """
    batch, length, width, heads = 12, 256, 512, 8
    layers = torch.nn.ModuleList(layer(torch, width) for _ in range(3))
    head = torch.nn.Linear(width, 128).to("cuda", torch.bfloat16)
    parameters = [*layers.parameters(), *head.parameters()]
    how = {"fused": True} if fix else {"foreach": False}
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, **how)
    inputs = torch.randn(batch, length, width, device="cuda", dtype=torch.bfloat16)
    targets = torch.randint(0, 128, (batch,), device="cuda")

    def step() -> Any:
        optimizer.zero_grad(set_to_none=True)
        x = inputs
        for parts in layers:
            x = through(torch, parts, x, heads)
        loss = torch.nn.functional.cross_entropy(head(x.mean(1)).float(), targets)
        loss.backward()
        optimizer.step()  # planted
        return loss.detach()

    return step


@planted("dispatch", "batch", also=("cuda_graph",))
def stations_filtered_in_a_loop(torch: Any, fix: str | None) -> Step:
    """The spectra of 40 seismic stations are taken in a Python loop over stations.

    Each station is a handful of kernels of two microseconds. All stations have the same length, so the same
    operations with one more dimension do it in a handful altogether.
    """
    stations, samples, size = 40, 16384, 512
    signals = torch.randn(stations, samples, device="cuda")
    window = torch.hann_window(size, device="cuda")
    basis = torch.randn(size, 128, device="cuda") * size**-0.5
    levels = torch.empty(stations, 128, device="cuda")

    def spectrum(signal: Any) -> Any:
        centred = signal - signal.mean(-1, keepdim=True)
        frames = centred.unfold(-1, size, size // 2) * window
        return torch.log1p((frames @ basis).square().mean(-2))

    def step() -> Any:
        if fix == "batch":
            return levels.copy_(spectrum(signals))
        for station in range(stations):
            levels[station] = spectrum(signals[station])  # planted
        return levels

    return graphed(torch, step) if fix == "cuda_graph" else step


@planted("dispatch", "cuda_graph", innocent="remove_sync", trap=True)
def eigenvector_with_a_convergence_test(torch: Any, fix: str | None) -> Step:
    """A power iteration on a small matrix reads its change back with `.item()` every 16 iterations.

    The wait looks guilty, but the GPU has next to nothing queued when it comes: the CPU launches four tiny kernels
    an iteration more slowly than the GPU runs them. A graph of all iterations helps; fewer tests do not.
    """
    size, iterations = 256, 48
    half = torch.randn(size, size, device="cuda") * size**-0.5
    matrix = half @ half.T
    start = torch.randn(size, device="cuda")
    result = torch.empty(size, device="cuda")

    def step() -> Any:
        vector = start
        for iteration in range(iterations):
            before = vector
            product = torch.mv(matrix, vector)
            shifted = torch.sub(product, vector, alpha=0.05)
            vector = shifted / shifted.norm()  # planted
            if iteration % 16 == 15:
                change = (vector - before).abs().max()
                if not fix and change.item() < 1e-12:
                    break
        return result.copy_(vector)

    return graphed(torch, step) if fix == "cuda_graph" else step
