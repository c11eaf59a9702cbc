"""Cause `sync`: metrics, counts, sizes and progress that are read back while the GPU has nothing left to do."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import weights


@planted("sync", "remove_sync")
def metrics_of_every_batch(torch: Any, fix: str | None) -> Step:
    """An evaluation adds up its loss and its hits with two `.item()` for each of six batches.

    The convolutions would keep the GPU busy while the CPU prepares the next batch, but it waits for two numbers
    first. They can be added up on the GPU and read once, after the last batch.
    """
    functional = torch.nn.functional
    filters = [
        (torch.randn(128, 128, 3, 3, device="cuda") * 0.03).to(torch.bfloat16, memory_format=torch.channels_last)
        for _ in range(3)
    ]
    (head,) = weights(torch, 1, 128, 1000, torch.bfloat16)
    images = [
        torch.randn(224, 128, 28, 28, device="cuda", dtype=torch.bfloat16).to(memory_format=torch.channels_last)
        for _ in range(6)
    ]
    labels = torch.randint(0, 1000, (6, 224), device="cuda")

    def step() -> Any:
        total, hits = 0.0, 0
        for batch, truth in zip(images, labels, strict=True):
            y = batch
            for kernel in filters:
                y = functional.conv2d(y, kernel, padding=1)
            scores = y.mean((2, 3)) @ head
            loss = functional.cross_entropy(scores, truth)
            total = total + (loss if fix else loss.item())  # planted
            right = (scores.argmax(-1) == truth).sum()
            hits = hits + (right if fix else right.item())  # planted
        return total, hits

    return step


@planted("sync", "remove_sync")
def anchors_counted_on_every_level(torch: Any, fix: str | None) -> Step:
    """A detector divides the loss of each of six levels by `max(int(mask.sum()), 1)`, for anchors in and out.

    `int` reads a count back, twice a level, and the next level's matmuls are launched only then. Clamped on the
    GPU the counts need not leave it.
    """
    (tower,), (head,) = weights(torch, 1, 512, 1024, torch.bfloat16), weights(torch, 1, 1024, 64, torch.bfloat16)
    levels = [torch.randn(49152, 512, device="cuda", dtype=torch.bfloat16) for _ in range(6)]

    def step() -> Any:
        losses = []
        for level in levels:
            scores = level @ tower @ head
            chosen, errors = scores.amax(-1) > 1.0, scores.square().mean(-1)
            inside = chosen.sum().clamp(min=1) if fix else max(int(chosen.sum()), 1)  # planted
            losses.append((errors * chosen).sum() / inside)
            left = ~chosen
            outside = left.sum().clamp(min=1) if fix else max(int(left.sum()), 1)  # planted
            losses.append((errors * left).sum() / outside)
        return losses

    return step


@planted("sync", "remove_sync")
def repeated_by_unknown_lengths(torch: Any, fix: str | None) -> Step:
    """A speech decoder stretches each of six utterances with `repeat_interleave` and no `output_size`.

    The number of frames is the sum of durations that lie on the GPU, so each call reads it back before it can
    allocate. The dataset knows how many frames there are; told so, the call waits for nothing.
    """
    phonemes, frames, width = 1024, 8192, 1024
    inputs = torch.randn(6, phonemes, width, device="cuda", dtype=torch.bfloat16).unbind(0)
    durations = torch.full((6, phonemes), frames // phonemes, device="cuda").unbind(0)
    layers = weights(torch, 3, width, width, torch.bfloat16)

    def step() -> Any:
        results = []
        for x, lengths in zip(inputs, durations, strict=True):
            size = {"output_size": frames} if fix else {}
            y = torch.repeat_interleave(x, lengths, 0, **size)  # planted
            for weight in layers:
                y = y @ weight
            results.append(y)
        return results

    return step


@planted("sync", "remove_sync", steps=4)
def progress_of_every_micro_batch(torch: Any, fix: str | None) -> Step:
    """Gradients are accumulated over three micro-batches, and a progress line shows each one's loss and gradient.

    A tensor in an f-string is read back, before the backward pass and again after it. A line once in a while, or
    one that is written after the step, costs nothing.
    """
    nn = torch.nn
    model = nn.Sequential(*(nn.Linear(2048, 2048, bias=False) for _ in range(4))).to("cuda", torch.bfloat16)
    parameters = list(model.parameters())
    batches = torch.randn(3, 6144, 2048, device="cuda", dtype=torch.bfloat16).unbind(0)

    def step() -> Any:
        shown = []
        for parameter in parameters:
            parameter.grad = None
        for batch in batches:
            loss = model(batch).square().mean()
            shown.append(loss.detach() if fix else f"loss {loss:.3f}")  # planted
            loss.backward()
            norm = parameters[0].grad.norm()
            shown.append(norm if fix else f"gradient {norm:.3f}")  # planted
        return shown

    return step
