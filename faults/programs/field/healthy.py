"""Nothing wrong: steps as they should be, some of them with something in them that looks guilty."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import compiled, graphed, weights


@planted("healthy", None, innocent="cuda_graph")
def compiled_transformer_block(torch: Any, fix: str | None) -> Step:
    """A compiled transformer block in bfloat16 with fused attention, on 8,192 tokens.

    The kernels are long, and each is launched well before it is needed: a CUDA graph has nothing to save.
    """
    functional = torch.nn.functional
    width, heads = 2048, 16
    (mixed,), (out,) = (
        weights(torch, 1, width, 3 * width, torch.bfloat16),
        weights(torch, 1, width, width, torch.bfloat16),
    )
    (up,), (down,) = (
        weights(torch, 1, width, 4 * width, torch.bfloat16),
        weights(torch, 1, 4 * width, width, torch.bfloat16),
    )
    tokens = torch.randn(4, 2048, width, device="cuda", dtype=torch.bfloat16)

    def block(x: Any) -> Any:
        parts = (functional.layer_norm(x, (width,)) @ mixed).view(4, 2048, 3, heads, -1).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(parts[0], parts[1], parts[2], is_causal=True)
        x = x + seen.transpose(1, 2).reshape(4, 2048, width) @ out
        return x + functional.gelu(functional.layer_norm(x, (width,)) @ up) @ down

    run = compiled(torch, block)

    def work() -> Any:
        with torch.no_grad():
            return run(run(tokens))

    return graphed(torch, work) if fix else work


@planted("healthy", None, trap=True, innocent="remove_sync")
def loss_read_a_step_late(torch: Any, fix: str | None) -> Step:
    """Training copies each loss to pinned memory and waits for the one of the step before, to show it.

    A wait in every step looks like a stall, but the step behind it is queued already and keeps the GPU busy. Without
    the wait the step takes as long.
    """
    layers = [weight.requires_grad_() for weight in weights(torch, 4, 2048, 2048, torch.bfloat16)]
    batch = torch.randn(8192, 2048, device="cuda", dtype=torch.bfloat16)
    shown = [torch.zeros(()).pin_memory() for _ in range(2)]
    ready = [torch.cuda.Event(), torch.cuda.Event()]
    count = [0]

    def step() -> Any:
        slot = count[0] % 2
        count[0] += 1
        x = batch
        for weight in layers:
            x = x @ weight
        loss = x.float().square().mean()
        gradients = torch.autograd.grad(loss, layers)
        with torch.no_grad():
            torch._foreach_add_(layers, gradients, alpha=-1e-4)
        shown[slot].copy_(loss.detach(), non_blocking=True)
        ready[slot].record()
        if fix:
            return 0.0
        ready[1 - slot].synchronize()
        return float(shown[1 - slot])

    return step


@planted("healthy", None, innocent="torch_compile")
def decoding_at_the_memory_bandwidth(torch: Any, fix: str | None) -> Step:
    """A large model decodes eight sequences from a CUDA graph: ten matmuls that each read 134 MB of weights.

    Next to no arithmetic, and a single kernel at a time, but the memory is as busy as it can be. A compiler finds
    nothing to fuse.
    """
    layers = weights(torch, 10, 8192, 8192, torch.bfloat16)
    tokens = torch.randn(8, 8192, device="cuda", dtype=torch.bfloat16)

    def model(x: Any) -> Any:
        for weight in layers:
            x = x @ weight
        return x

    run = compiled(torch, model) if fix else model

    def work() -> Any:
        with torch.no_grad():
            return run(tokens)

    return graphed(torch, work)


@planted("healthy", None, trap=True, innocent="preallocate")
def short_history_joined_once(torch: Any, fix: str | None) -> Step:
    """An encoder joins the last 256 frames of each stream to the next 1,792 with `torch.cat`, once a step.

    Concatenation in a loop is how caches grow slow, but this one moves a few megabytes before milliseconds of matmuls.
    A buffer that is written in place does not help.
    """
    width = 1024
    layers, backs = (
        weights(torch, 4, width, 4 * width, torch.bfloat16),
        weights(torch, 4, 4 * width, width, torch.bfloat16),
    )
    past = torch.randn(8, 256, width, device="cuda", dtype=torch.bfloat16)
    new = torch.randn(8, 1792, width, device="cuda", dtype=torch.bfloat16)
    buffer = torch.cat([past, new], 1)

    def step() -> Any:
        with torch.no_grad():
            if fix:
                buffer[:, 256:] = new
                x = buffer
            else:
                x = torch.cat([past, new], 1)
            for layer, back in zip(layers, backs, strict=True):
                x = x @ layer @ back
            return x

    return step
