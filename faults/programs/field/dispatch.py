"""Cause `dispatch`: adapters, samplers, clipping and parameter groups that launch more than the GPU has to do."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import compiled, graphed, weights


@planted("dispatch", "batch", also=("cuda_graph",))
def adapter_of_every_request(torch: Any, fix: str | None) -> Step:
    """Each of 32 requests in a batch has a LoRA adapter of its own, and a loop applies them request by request.

    The matmuls are tiny and there are 256 of them. Their matrices lie in one tensor already, so that two batched
    matmuls a layer do the same.
    """
    requests, width, rank = 32, 1024, 8
    bases = weights(torch, 4, width, width, torch.bfloat16)
    downs = [torch.randn(requests, width, rank, device="cuda", dtype=torch.bfloat16) / 32 for _ in bases]
    ups = [torch.randn(requests, rank, width, device="cuda", dtype=torch.bfloat16) / 32 for _ in bases]
    tokens = torch.randn(requests, 1, width, device="cuda", dtype=torch.bfloat16)

    def work() -> Any:
        x = tokens
        for base, down, up in zip(bases, downs, ups, strict=True):
            if fix == "batch":
                change = torch.bmm(torch.bmm(x, down), up)
            else:
                rows = zip(x.unbind(0), down.unbind(0), up.unbind(0), strict=True)
                change = torch.stack([row @ narrow @ wide for row, narrow, wide in rows])  # planted
            x = x @ base + change
        return x

    return graphed(torch, work) if fix == "cuda_graph" else work


@planted("dispatch", "batch", also=("cuda_graph",), steps=4)
def gradients_clipped_one_by_one(torch: Any, fix: str | None) -> Step:
    """A training step clips its gradients with two loops over 128 parameters, one for the norm and one to scale.

    Each parameter costs four launches of a few microseconds, on a kilobyte or two. `clip_grad_norm_` does it for
    all of them at once.
    """
    nn = torch.nn
    blocks = [layer for _ in range(32) for layer in (nn.Linear(256, 256), nn.LayerNorm(256))]
    model = nn.Sequential(*blocks).to("cuda")
    parameters = list(model.parameters())
    batch = torch.randn(256, 256, device="cuda")

    def work() -> Any:
        for parameter in parameters:
            parameter.grad = None
        model(batch).square().mean().backward()
        gradients = [parameter.grad for parameter in parameters]
        if fix == "batch":
            nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)
        else:
            total = torch.zeros((), device="cuda")
            for gradient in gradients:
                total = total + gradient.norm() ** 2  # planted
            scale = (1.0 / (total.sqrt() + 1e-6)).clamp(max=1.0)
            for gradient in gradients:
                gradient.mul_(scale)  # planted
        with torch.no_grad():
            torch._foreach_add_(parameters, gradients, alpha=-0.001)

    return graphed(torch, work) if fix == "cuda_graph" else work


@planted("dispatch", "cuda_graph", steps=4)
def sampler_of_a_small_network(torch: Any, fix: str | None) -> Step:
    """A diffusion sampler takes ten steps with a small residual network on one small latent, launch by launch.

    The GPU is done with each kernel before the next one arrives. The ten steps never change, so that they fit one
    CUDA graph.
    """
    functional = torch.nn.functional
    width, depth, count = 256, 6, 10
    first, second = weights(torch, depth, width, width), weights(torch, depth, width, width)
    times = torch.randn(count, depth, width, device="cuda")
    amounts = [0.9 - 0.08 * position for position in range(count)]
    noise = torch.randn(64, width, device="cuda")

    def denoise(x: Any, embedded: Any) -> Any:
        for layer in range(depth):
            hidden = functional.silu(functional.layer_norm(x, (width,)) @ first[layer] + embedded[layer])
            x = x + hidden @ second[layer]
        return x

    def work() -> Any:
        with torch.no_grad():
            x = noise
            for position, amount in enumerate(amounts):
                predicted = denoise(x, times[position])  # planted
                clean = ((x - amount * predicted) / (1.0 - 0.5 * amount)).clamp(-3.0, 3.0)
                x = 0.9 * clean + 0.1 * predicted
            return x

    return graphed(torch, work) if fix else work


@planted("dispatch", "torch_compile", also=("cuda_graph",))
def compiled_blocks_that_are_watched(torch: Any, fix: str | None) -> Step:
    """A compiled model counts the calls of its blocks with a function that the compiler may not look into.

    Each of 16 blocks falls into two pieces, entered from Python with guards of their own, and the loop around them is
    not compiled at all. Without the counter the model is one graph.
    """
    functional = torch.nn.functional
    width = 384
    first, second = weights(torch, 16, width, width, torch.bfloat16), weights(torch, 16, width, width, torch.bfloat16)
    gains = [torch.rand(width, device="cuda", dtype=torch.bfloat16) for _ in first]
    batch = torch.randn(64, width, device="cuda", dtype=torch.bfloat16)
    seen = {"calls": 0}

    def watch() -> None:
        seen["calls"] += 1

    hidden_watch = torch.compiler.disable(watch)

    def block(x: Any, one: Any, two: Any, gain: Any) -> Any:
        hidden = functional.gelu(functional.rms_norm(x, (width,), gain) @ one)
        if fix is None:
            hidden_watch()  # planted
        return x + torch.sigmoid(hidden) * (hidden @ two)

    def model(x: Any) -> Any:
        for one, two, gain in zip(first, second, gains, strict=True):
            x = block(x, one, two, gain)  # planted
        return x

    def work() -> Any:
        with torch.no_grad():
            return run(batch)

    run = model if fix == "cuda_graph" else compiled(torch, model)
    return graphed(torch, work) if fix == "cuda_graph" else work


@planted("dispatch", "fused_optimizer", steps=4)
def parameter_group_for_every_tensor(torch: Any, fix: str | None) -> Step:
    """Learning rates that fall from layer to layer are given to AdamW as one parameter group for each of 64 tensors.

    Within a group AdamW treats all tensors at once, but here it has only one, and launches a dozen kernels for it.
    The fused AdamW, with a group for each learning rate, launches one for each.
    """
    nn = torch.nn
    blocks = [nn.Sequential(nn.Linear(512, 512), nn.LayerNorm(512)) for _ in range(16)]
    model = nn.Sequential(*blocks).to("cuda")
    batch = torch.randn(512, 512, device="cuda")
    rates = [1e-3 * 0.9 ** (16 - depth) for depth in range(16)]
    if fix:
        groups = [{"params": list(block.parameters()), "lr": rate} for block, rate in zip(blocks, rates, strict=True)]
    else:
        groups = [
            {"params": [parameter], "lr": rate}
            for block, rate in zip(blocks, rates, strict=True)
            for parameter in block.parameters()
        ]
    optimizer = torch.optim.AdamW(groups, fused=bool(fix))

    def step() -> None:
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()  # planted

    return step


@planted("dispatch", "cuda_graph", trap=True, innocent="pin_memory")
def prompt_from_ordinary_memory(torch: Any, fix: str | None) -> Step:
    """A small language model is handed its 16 tokens from ordinary host memory, and then launches 170 small kernels.

    The copy from pageable memory is easy to blame, but it is 128 bytes and pinning them does not help. What takes time
    is the launching, and a CUDA graph behind the same copy ends it.
    """
    functional = torch.nn.functional
    width, depth = 512, 12
    table = torch.randn(1000, width, device="cuda", dtype=torch.bfloat16)
    mixes = [weights(torch, 4, width, width, torch.bfloat16) for _ in range(depth)]
    tokens = torch.randint(0, 1000, (16,))
    if fix == "pin_memory":
        tokens = tokens.pin_memory()
    resident = torch.zeros(16, dtype=torch.int64, device="cuda")

    def work() -> Any:
        with torch.no_grad():
            x = table[resident]
            for gate, value, up, down in mixes:
                hidden = functional.layer_norm(x, (width,))
                x = x + torch.sigmoid(hidden @ gate) * (hidden @ value)
                hidden = functional.layer_norm(x, (width,))
                x = x + functional.gelu(hidden @ up) @ down
            return x

    run = graphed(torch, work) if fix == "cuda_graph" else work

    def step() -> Any:
        resident.copy_(tokens, non_blocking=fix == "pin_memory")
        return run()  # planted

    return step
