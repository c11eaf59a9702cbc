"""Cause `input`: the GPU waits for batches that the CPU prepares too slowly or too late."""

from __future__ import annotations

import importlib
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.harbour.networks import learn, transformer
from faults.programs.parts import Samples
from faults.programs.sealed.parts import sizes
from faults.programs.ward.loading import batches

WORKERS = 8


@planted("input", "prefetch", steps=3)
def graph_network_that_draws_its_neighbours(torch: Any, fix: str | None) -> Step:
    """GraphSAGE learns the kinds of 2048 papers a step, and numpy draws their neighbours between the steps.

    Drawing without repetition takes one CPU core longer than the GPU needs for the step. Worker processes draw several
    batches ahead.
    """
    nn, functional, numpy = torch.nn, torch.nn.functional, importlib.import_module("numpy")
    papers, most, features, width, kinds, seeds, draws = sizes(
        (200_000, 24, 1024, 4096, 64, 2048, (12, 10)), (50, 8, 4, 8, 3, 4, (3, 2))
    )
    links = numpy.random.default_rng(0).integers(0, papers, (papers, most), dtype=numpy.int32)

    def neighbours(chance: Any, nodes: Any, count: int) -> Any:
        """Some neighbours of each node, none of them twice."""
        order = numpy.argpartition(chance.random((len(nodes), most)), count, axis=1)[:, :count]
        return numpy.take_along_axis(links[nodes], order, axis=1).reshape(-1)

    def draw(index: int) -> list[Any]:
        chance = numpy.random.default_rng(index)
        layers = [chance.integers(0, papers, seeds)]
        for count in draws:
            layers.append(neighbours(chance, layers[-1], count).astype(numpy.int64))  # planted
        return [torch.from_numpy(layer) for layer in layers]

    kind = {"device": "cuda", "dtype": torch.bfloat16}
    table = torch.randn(papers, features, **kind)
    truth = torch.randint(0, kinds, (papers,), device="cuda")
    inner, outer = nn.Linear(2 * features, width, **kind), nn.Linear(2 * width, width, **kind)
    network = nn.ModuleList((inner, outer, nn.Linear(width, kinds, **kind)))
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4, fused=True)
    ready = batches(torch, Samples(draw), None, sizes(WORKERS, 1) if fix else 0)

    def joined(layer: Any, own: Any, others: Any) -> Any:
        mean = others.unflatten(0, (len(own), -1)).mean(1)
        return functional.relu(layer(torch.cat((own, mean), -1)))

    def step() -> Any:
        first, second, third = (layer.to("cuda", non_blocking=True) for layer in next(ready))
        near = joined(inner, table[second], table[third])
        own = joined(inner, table[first], table[second])
        logits = network[2](joined(outer, own, near))
        return learn(optimizer, functional.cross_entropy(logits.float(), truth[first]))

    return step


@planted("input", "prefetch", steps=3)
def conformer_whose_echoes_are_mixed_in_the_loop(torch: Any, fix: str | None) -> Step:
    """A conformer learns sounds of speech, and the training loop adds an echo and noise to 16 recordings each step.

    numpy convolves them by Fourier transforms, on one core and before the GPU may begin. Worker processes do that
    while the GPU learns from earlier batches.
    """
    nn, functional, numpy = torch.nn, torch.nn.functional, importlib.import_module("numpy")
    width, layers, heads, kinds, batch, frames, piece = sizes((768, 4, 12, 128, 16, 512, 64), (16, 1, 2, 5, 2, 8, 4))
    samples = frames * piece
    chance = numpy.random.default_rng(0)
    clean = chance.standard_normal((2 * batch, samples), dtype=numpy.float32)
    room = (chance.standard_normal(samples) * numpy.exp(-numpy.arange(samples) / (samples / 20))).astype(numpy.float32)

    def echoed(index: int) -> Any:
        draw = numpy.random.default_rng(index)
        speech = clean[draw.permutation(2 * batch)[:batch]]
        heard = numpy.fft.irfft(numpy.fft.rfft(speech, 2 * samples) * numpy.fft.rfft(room, 2 * samples))  # planted
        heard = heard[:, :samples] / heard.std() + 0.1 * draw.standard_normal((batch, samples))  # planted
        return torch.from_numpy(heard.astype(numpy.float32))

    kind = {"device": "cuda", "dtype": torch.bfloat16}

    class Blur(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.enter, self.leave = nn.Linear(width, 2 * width, **kind), nn.Linear(width, width, **kind)
            self.weights = nn.Parameter(torch.randn(width, 7, **kind) / 7)

        def forward(self, x: Any) -> Any:
            gated = functional.pad(functional.glu(self.enter(x), -1), (0, 0, 3, 3))
            near = sum(gated[:, shift : shift + x.shape[1]] * self.weights[:, shift] for shift in range(7))
            return x + self.leave(functional.silu(near))

    blocks = [part for _ in range(layers) for part in (transformer(torch, width, 1, heads), Blur())]
    model = nn.Sequential(nn.Linear(piece, width, **kind), *blocks, nn.Linear(width, kinds, **kind))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    truth = torch.randint(0, kinds, (batch * frames,), device="cuda")
    ready = batches(torch, Samples(echoed), None, sizes(WORKERS, 1) if fix else 0)

    def step() -> Any:
        sound = next(ready).to("cuda", non_blocking=True)
        logits = model(sound.view(batch, frames, piece).to(torch.bfloat16)).flatten(0, 1)
        return learn(optimizer, functional.cross_entropy(logits.float(), truth))

    return step
