"""Cause `sync`: the CPU waits for the GPU, and then the GPU waits for the CPU."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.sealed.parts import sizes
from faults.programs.unseen.translation import translator


@planted("sync", "remove_sync", steps=3)
def translator_that_logs_the_norm_of_each_gradient(torch: Any, fix: str | None) -> Step:
    """A translator is trained under autocast, and the loop logs the norm of each parameter's gradient with `.item()`.

    There are over a hundred parameters. For each the CPU launches a norm, waits for it and only then launches the next,
    while the GPU has nothing else to do. Norms that stay on the GPU are launched while it still runs the backward pass.
    """
    functional = torch.nn.functional
    width, layers, heads, vocabulary, batch, length = sizes((1024, 3, 16, 8192, 128, 64), (16, 2, 2, 50, 2, 6))
    model = translator(torch, width, layers, heads, vocabulary, length).to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    source, target = torch.randint(0, vocabulary, (2, batch, length), device="cuda").unbind(0)
    log: list[dict[str, Any]] = []

    def norms() -> dict[str, Any]:
        gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
        if fix:
            return {name: gradient.norm() for name, gradient in gradients.items()}
        return {name: gradient.norm().item() for name, gradient in gradients.items()}  # planted

    def step() -> Any:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            logits = model(source, target)
            loss = functional.cross_entropy(logits[:, :-1].flatten(0, 1), target[:, 1:].flatten())
        loss.backward()
        log.append(norms())
        del log[:-8]
        optimizer.step()
        return loss.detach()

    return step
