"""Cause `dispatch`: tables, adapters, masks and critics that are asked for in more calls than the GPU has work."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import compiled, graphed, weights


@planted("dispatch", "batch", also=("cuda_graph",))
def table_of_every_feature(torch: Any, fix: str | None) -> Step:
    """A click model is evaluated with one small table, and one lookup, for each of 72 features of a batch.

    Each lookup takes the CPU longer than the GPU. As one table, with the number of a feature's first row added to
    its values, they are one lookup.
    """
    functional = torch.nn.functional
    features, rows, width, batch = 72, 1000, 32, 4096
    table = torch.randn(features * rows, width, device="cuda", dtype=torch.bfloat16)
    tables = [part.clone() for part in table.view(features, rows, width).unbind(0)]
    first = torch.arange(0, features * rows, rows, device="cuda")
    (hidden,), (head,) = (
        weights(torch, 1, features * width, 256, torch.bfloat16),
        weights(torch, 1, 256, 8, torch.bfloat16),
    )
    values = torch.randint(0, rows, (batch, features), device="cuda")

    def step() -> Any:
        if fix == "batch":
            known = functional.embedding(values + first, table).view(batch, features * width)
        else:
            found = [functional.embedding(values[:, i], each) for i, each in enumerate(tables)]  # planted
            known = torch.cat(found, -1)
        return (known @ hidden).relu() @ head

    return graphed(torch, step) if fix == "cuda_graph" else step


@planted("dispatch", "cuda_graph", also=("torch_compile",))
def adapters_on_a_short_batch(torch: Any, fix: str | None) -> Step:
    """Low-rank adapters of a two-layer language model are trained on one sequence of 256 tokens at a time.

    Every projection becomes three matmuls, a scaling and a sum, forth and back, and none of them lasts as long as
    its launch. The shapes never change, so that a graph can launch them all at once.
    """
    functional = torch.nn.functional
    tokens, width, heads, rank = 256, 768, 12, 8
    frozen, adapters = [], []
    for _ in range(2):
        for rows, columns in ((width, width),) * 4 + ((width, 4 * width), (4 * width, width)):
            frozen += weights(torch, 1, rows, columns, torch.bfloat16)
            down = weights(torch, 1, rows, rank, torch.bfloat16)[0].requires_grad_()
            up = torch.zeros(rank, columns, device="cuda", dtype=torch.bfloat16, requires_grad=True)
            adapters.append((down, up))
    trained = [tensor for pair in adapters for tensor in pair]
    text = torch.randn(tokens, width, device="cuda", dtype=torch.bfloat16)

    def project(x: Any, position: int) -> Any:
        down, up = adapters[position]
        return x @ frozen[position] + x @ down @ up * 2.0  # planted

    def split(x: Any) -> Any:
        return x.view(1, tokens, heads, width // heads).transpose(1, 2)

    def loss_of(x: Any) -> Any:
        for first in range(0, len(adapters), 6):
            y = functional.layer_norm(x, (width,))
            query, key, value = (split(project(y, first + part)) for part in range(3))
            seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
            x = x + project(seen.transpose(1, 2).reshape(tokens, width), first + 3)
            y = project(functional.layer_norm(x, (width,)), first + 4)
            x = x + project(functional.gelu(y), first + 5)
        return x.float().square().mean()

    forward = compiled(torch, loss_of) if fix == "torch_compile" else loss_of

    def step() -> Any:
        for tensor in trained:
            tensor.grad = None
        loss = forward(text)
        loss.backward()
        with torch.no_grad():
            torch._foreach_add_(trained, [tensor.grad for tensor in trained], alpha=-1e-3)
        return loss.detach()

    return graphed(torch, step) if fix == "cuda_graph" else step


@planted("dispatch", "batch")
def masks_of_every_utterance(torch: Any, fix: str | None) -> Step:
    """Before a speech encoder, each of 32 spectrograms has two spans of frames and two of bands set to zero.

    Those are 128 assignments to slices, each of them a launch. All the spans are known beforehand, so that one mask
    of the whole batch, made by comparisons, does the same.
    """
    batch, frames, bands, longest = 32, 1024, 80, (64, 12)
    spectrograms = torch.randn(batch, frames, bands, device="cuda", dtype=torch.bfloat16)
    (inner,), (outer,) = weights(torch, 1, bands, 256, torch.bfloat16), weights(torch, 1, 256, 256, torch.bfloat16)
    axes = [torch.arange(size, device="cuda") for size in (frames, bands)]
    round_number = 0

    def spans(size: int, longest: int) -> list[list[int]]:
        """Where each of two spans of each utterance begins; as good as drawn."""
        return [[(7919 * (round_number + 2 * i + j)) % (size - longest) for j in range(2)] for i in range(batch)]

    def covered(axis: int, starts: list[list[int]]) -> Any:
        begin = torch.tensor(starts, pin_memory=True).to("cuda", non_blocking=True)[..., None]
        inside = (axes[axis] >= begin) & (axes[axis] < begin + longest[axis])
        return inside.any(1)

    def step() -> Any:
        nonlocal round_number
        round_number += 1
        of_frames, of_bands = spans(frames, longest[0]), spans(bands, longest[1])
        if fix:
            mask = covered(0, of_frames)[:, :, None] | covered(1, of_bands)[:, None, :]
            x = spectrograms.masked_fill(mask, 0.0)
        else:
            x = spectrograms.clone()
            for i in range(batch):
                for start in of_frames[i]:
                    x[i, start : start + longest[0]] = 0.0  # planted
                for start in of_bands[i]:
                    x[i, :, start : start + longest[1]] = 0.0  # planted
        return (x @ inner).relu() @ outer

    return step


@planted("dispatch", "cuda_graph", innocent="tf32", trap=True)
def critics_of_an_odd_width(torch: Any, fix: str | None) -> Step:
    """An actor-critic agent updates two critics, each 23 inputs wide and in float32, twice a step.

    The matmuls use no tensor cores and their width fits nothing, but they are too small for that to matter: the GPU
    waits for the CPU, which launches dozens of tiny kernels for each update. A graph launches them at once.
    """
    nn = torch.nn
    torch.backends.cuda.matmul.allow_tf32 = fix == "tf32"
    batch, observed, acted = 256, 17, 6

    def network() -> Any:
        layers = (nn.Linear(observed + acted, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))
        return nn.Sequential(*layers).to("cuda")

    critics, targets = [network(), network()], [network(), network()]
    parameters = [parameter for critic in critics for parameter in critic.parameters()]
    followers = [parameter for target in targets for parameter in target.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=1e-4, fused=True, capturable=True)
    replay = torch.randn(2, 2, batch, observed + acted, device="cuda")
    rewards = torch.randn(2, batch, 1, device="cuda")

    def step() -> Any:
        for (now, then), reward in zip(replay, rewards, strict=True):
            with torch.no_grad():
                worst = torch.minimum(targets[0](then), targets[1](then))
                wanted = reward + 0.99 * worst
            loss = sum((critic(now) - wanted).square().mean() for critic in critics)  # planted
            optimizer.zero_grad()
            loss.backward()  # planted
            optimizer.step()
            with torch.no_grad():
                torch._foreach_lerp_(followers, parameters, 0.005)
        return loss.detach()

    return graphed(torch, step) if fix == "cuda_graph" else step
