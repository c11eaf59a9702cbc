"""Cause `sync`: the CPU waits for the GPU where it need not, and the GPU goes idle until it catches up."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import weights


@planted("sync", "remove_sync")
def item_per_layer(torch: Any, fix: str | None) -> Step:
    """Every layer's largest activation is read back with `.item()`.

    The layers are long enough to keep the GPU busy while the CPU runs ahead, but it never gets ahead. The statistic
    can stay on the device until someone looks at it.
    """
    layers = weights(torch, 8, 2048, 2048, torch.bfloat16)
    x = torch.randn(4096, 2048, device="cuda", dtype=torch.bfloat16)

    def step() -> Any:
        hidden, largest = x, []
        for weight in layers:
            hidden = hidden @ weight
            peak = hidden[:64].amax()
            largest.append(peak if fix else peak.item())  # planted
        return largest

    return step


@planted("sync", "remove_sync")
def boolean_mask(torch: Any, fix: str | None) -> Step:
    """A loss over the valid tokens picks them with a boolean mask, chunk by chunk.

    How many are picked must be known on the CPU before the result can be allocated. Weighting by the mask gives the
    same mean with shapes that are known beforehand.
    """
    (head,) = weights(torch, 1, 2048, 8192, torch.bfloat16)
    chunks = torch.randn(6, 1024, 2048, device="cuda", dtype=torch.bfloat16).unbind(0)
    valid = torch.rand(6, 1024, device="cuda") < 0.7
    counts = valid.sum(1)

    def step() -> Any:
        losses = []
        for index, chunk in enumerate(chunks):
            scores = (chunk @ head).amax(-1)
            if fix:
                losses.append((scores * valid[index]).sum() / counts[index])
            else:
                losses.append(scores[valid[index]].mean())  # planted
        return losses

    return step


@planted("sync", "remove_sync")
def nonzero_routing(torch: Any, fix: str | None) -> Step:
    """A mixture of experts asks `nonzero` for each expert's tokens.

    Each answer has a size that only the GPU knows, so each is a wait. The router is balanced (every expert gets the
    same number), so one sort gives every expert a slice of known size.
    """
    experts, tokens, hidden = 6, 12288, 2048
    ups = weights(torch, experts, hidden, 4096, torch.bfloat16)
    x = torch.randn(tokens, hidden, device="cuda", dtype=torch.bfloat16)
    route = (torch.randperm(tokens, device="cuda") % experts).to(torch.int32)
    share = tokens // experts

    def step() -> Any:
        order = torch.argsort(route).split(share) if fix else ()
        results = []
        for expert in range(experts):
            mine = order[expert] if fix else (route == expert).nonzero().squeeze(1)  # planted
            results.append(x.index_select(0, mine) @ ups[expert])
        return results

    return step


@planted("sync", "remove_sync")
def synchronize_after_every_layer(torch: Any, fix: str | None) -> Step:
    """`torch.cuda.synchronize()` after every layer: timing code that was left in.

    Each call drains the queue, and the next kernel waits for the CPU to come back and launch it.
    """
    layers = weights(torch, 10, 2048, 2048, torch.bfloat16)
    x = torch.randn(2560, 2048, device="cuda", dtype=torch.bfloat16)

    def step() -> Any:
        hidden = x
        for weight in layers:
            hidden = hidden @ weight
            if not fix:
                torch.cuda.synchronize()  # planted
        return hidden

    return step


@planted("sync", "remove_sync")
def branch_on_gradient_norm(torch: Any, fix: str | None) -> Step:
    """Gradients are clipped with a Python `if` on each one's norm.

    An `if` on a tensor reads it back. Multiplying by a factor of at most one does the same without the CPU.
    """
    parameters = [torch.randn(3072, 3072, device="cuda") for _ in range(6)]
    gradients = [torch.randn(3072, 3072, device="cuda") for _ in range(6)]
    updates = [torch.empty_like(parameter) for parameter in parameters]

    def step() -> None:
        for parameter, gradient, update in zip(parameters, gradients, updates, strict=True):
            norm = gradient.norm()
            if fix:
                torch.mul(gradient, (1.0 / norm).clamp(max=1.0), out=update)
            elif norm > 1.0:  # planted
                torch.mul(gradient, 1.0 / norm, out=update)
            parameter.add_(update, alpha=-1e-3)

    return step


@planted("sync", "remove_sync")
def convergence_check(torch: Any, fix: str | None) -> Step:
    """A solver asks after every iteration whether it has converged.

    Each answer costs a round trip in which the GPU is idle; a fixed number of iterations, as fixed, asks nothing.
    """
    matrix = torch.randn(12288, 12288, device="cuda").mul_(12288**-0.5).to(torch.bfloat16)
    start = torch.randn(12288, 1, device="cuda", dtype=torch.bfloat16)

    def step() -> Any:
        x = start
        for _ in range(8):
            following = matrix @ x
            if not fix and torch.equal(following, x):  # planted
                break
            x = following
        return x

    return step
