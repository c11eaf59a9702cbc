"""Cause `dispatch`: small models, small batches and many small parameters, each operation launched by itself."""

from __future__ import annotations

import itertools
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import graphed

from .models import residual_mlp, residual_network


@planted("dispatch", "cuda_graph")
def one_image_through_a_residual_network(torch: Any, fix: str | None) -> Step:
    """A service classifies one small image with an eager ResNet of eighteen layers.

    Each of some seventy operations keeps the GPU for a few microseconds and the CPU for longer. The shapes never
    change, so that the whole network can be replayed as one graph.
    """
    model = residual_network(torch, (64, 128, 256, 512), 1000).eval()
    model = model.to("cuda", torch.bfloat16, memory_format=torch.channels_last)
    images = torch.randn(4, 1, 3, 128, 128, device="cuda", dtype=torch.bfloat16).unbind(0)
    requests = itertools.cycle([image.contiguous(memory_format=torch.channels_last) for image in images])
    placed = images[0].clone(memory_format=torch.channels_last)
    answer = torch.zeros(1, 1000, device="cuda", dtype=torch.bfloat16)

    def classify() -> None:
        with torch.no_grad():
            answer.copy_(model(placed).softmax(-1))  # planted

    run = graphed(torch, classify) if fix else classify

    def step() -> Any:
        placed.copy_(next(requests))
        run()
        return answer

    return step


@planted("dispatch", "larger_micro_batch", also=("cuda_graph",), steps=3)
def accumulation_over_tiny_micro_batches(torch: Any, fix: str | None) -> Step:
    """A step accumulates gradients over four micro-batches of sixteen rows, where all sixty-four would fit at once.

    The accumulation was made for a smaller GPU. Four forward and backward passes launch four times the kernels for
    the same gradient, and each kernel has next to nothing to do.
    """
    functional = torch.nn.functional
    parts = 1 if fix == "larger_micro_batch" else 4
    model = torch.nn.Sequential(residual_mlp(torch, 512, 1024, 2), torch.nn.Linear(512, 128)).to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True, capturable=fix == "cuda_graph")
    rows = torch.randn(64, 512, device="cuda")
    labels = torch.randint(0, 128, (64,), device="cuda")
    total = torch.zeros((), device="cuda")

    def train() -> None:
        optimizer.zero_grad()
        total.zero_()
        for batch, truth in zip(rows.chunk(parts), labels.chunk(parts), strict=True):
            with torch.autocast("cuda", torch.bfloat16, cache_enabled=fix != "cuda_graph"):
                loss = functional.cross_entropy(model(batch), truth) / parts  # planted
            loss.backward()  # planted
            total.add_(loss.detach())
        optimizer.step()

    run = graphed(torch, train) if fix == "cuda_graph" else train

    def step() -> Any:
        run()
        return total

    return step


@planted("dispatch", "fused_optimizer", steps=3)
def adam_written_by_hand(torch: Any, fix: str | None) -> Step:
    """A training script has its own Adam: a loop over the parameters with nine operations for each.

    The forward and backward pass keep the GPU busy; then the CPU launches two hundred updates of a megabyte or
    less. The optimizer of the library updates all parameters with a few kernels.
    """
    nn = torch.nn
    layers = [layer for _ in range(12) for layer in (nn.Linear(512, 512), nn.ReLU())]
    model = nn.Sequential(*layers, nn.Linear(512, 64)).to("cuda")
    rows = torch.randn(16384, 512, device="cuda", dtype=torch.bfloat16)
    targets = torch.randn(16384, 64, device="cuda")
    parameters = list(model.parameters())
    rate, beta1, beta2, epsilon, decay = 1e-4, 0.9, 0.999, 1e-8, 0.01

    class Adam:
        def __init__(self) -> None:
            self.count = 0
            self.means = [torch.zeros_like(parameter) for parameter in parameters]
            self.squares = [torch.zeros_like(parameter) for parameter in parameters]

        def step(self) -> None:
            with torch.no_grad():
                self.count += 1
                short1, short2 = 1 - beta1**self.count, 1 - beta2**self.count
                for parameter, mean, square in zip(parameters, self.means, self.squares, strict=True):
                    gradient = parameter.grad
                    parameter.mul_(1 - rate * decay)  # planted
                    mean.mul_(beta1).add_(gradient, alpha=1 - beta1)  # planted
                    square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)  # planted
                    width = (square / short2).sqrt_().add_(epsilon)  # planted
                    parameter.addcdiv_(mean, width, value=-rate / short1)  # planted

    optimizer: Any = Adam()
    if fix:
        optimizer = torch.optim.AdamW(parameters, lr=rate, betas=(beta1, beta2), weight_decay=decay, fused=True)

    def step() -> Any:
        with torch.autocast("cuda", torch.bfloat16):
            output = model(rows)
        loss = nn.functional.mse_loss(output.float(), targets)
        model.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
