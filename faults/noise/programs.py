"""The programs of the noise study: different things set their pace, and each can be made slower by a known amount."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from faults.noise.layer import layer_forms

Step = Callable[[int], object]
"""A step of a program, with so much more work than usual: elements of a tensor to read and write, or small kernels."""


@dataclass(frozen=True, slots=True)
class Program:
    """One program."""

    name: str
    pace: str
    """What sets its pace."""
    build: Callable[[Any, bool], Step]
    """Takes torch, and whether to be tiny and run on the CPU."""
    extra: int | None = None
    """The work that makes it 3 % slower; None if it must be found by measuring."""


def layer(torch: Any, tiny: bool) -> Step:
    """A transformer layer for inference, without a wait: the GPU sets the pace."""
    forward = layer_forms(torch, tiny)["eager"]()
    add_work = extra_pass(torch, tiny)

    def step(extra: int) -> None:
        forward()
        add_work(extra)

    return step


SMALL_KERNELS = 66


def small_kernels(torch: Any, tiny: bool) -> Step:
    """Many small kernels, one after the other: the CPU that launches them sets the pace."""
    x = torch.ones(64, 64, device=_device(tiny))

    def step(extra: int) -> object:
        y = x
        for _ in range((SMALL_KERNELS + extra) // 2):
            y = torch.tanh(y + 1.0)
        return y

    return step


def copied_batch(torch: Any, tiny: bool) -> Step:
    """Inference on a batch that is copied from pinned memory, whose result is fetched: copy, GPU and CPU in turn."""
    width = 64 if tiny else 4096
    device = _device(tiny)
    batch = torch.randint(0, 256, (width, width), dtype=torch.uint8)
    batch = batch if tiny else batch.pin_memory()
    weights = [torch.randn(width, width, device=device, dtype=torch.bfloat16) * width**-0.5 for _ in range(3)]
    add_work = extra_pass(torch, tiny)

    def step(extra: int) -> object:
        x = batch.to(device, non_blocking=True).to(torch.bfloat16) / 255
        for weight in weights:
            x = torch.nn.functional.gelu(x @ weight)
        add_work(extra)
        return x.argmax(-1).cpu()

    return step


def training(torch: Any, tiny: bool) -> Step:
    """A training step with AdamW that reads its loss: GPU and CPU in turn."""
    width, rows = (32, 16) if tiny else (2048, 16384)
    device = _device(tiny)
    layers = [(torch.nn.Linear(width, width), torch.nn.GELU()) for _ in range(4)]
    model = torch.nn.Sequential(*(part for pair in layers for part in pair)).to(device, torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    x, y = (torch.randn(rows, width, device=device, dtype=torch.bfloat16) for _ in range(2))
    add_work = extra_pass(torch, tiny)

    def step(extra: int) -> object:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        add_work(extra)
        return loss.item()

    return step


MOST_ELEMENTS = 2**28


def extra_pass(torch: Any, tiny: bool) -> Callable[[int], None]:
    """A kernel that reads and writes so many elements. Unlike a GPU that spins, it costs power as other kernels do, so
    that it does not make them faster where power sets the clock."""
    elements = torch.ones(2**20 if tiny else MOST_ELEMENTS, device=_device(tiny))

    def add_work(extra: int) -> None:
        if extra:
            elements[:extra].mul_(1.0)

    return add_work


def _device(tiny: bool) -> str:
    return "cpu" if tiny else "cuda"


PROGRAMS = (
    Program("layer", "GPU", layer),
    Program("small_kernels", "CPU", small_kernels, extra=2),
    Program("copied_batch", "copy, GPU and CPU in turn", copied_batch),
    Program("training", "GPU and CPU in turn", training),
)
