"""Healthy steps: three in which nothing is wrong, and one in which something looks wrong and costs nothing."""

from __future__ import annotations

import random
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.sealed.parts import graphed, sizes
from faults.programs.unseen.decoder import decoder


def encoder(torch: Any, width: int, layers: int, heads: int) -> Any:
    """A transformer that sees the whole sequence."""
    nn, functional = torch.nn, torch.nn.functional

    class Layer(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
            self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            q, k, v = self.project(self.before(x)).unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
            x = x + self.out(functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
            return x + self.down(functional.gelu(self.up(self.between(x))))

    return nn.Sequential(*(Layer() for _ in range(layers)), nn.LayerNorm(width))


@planted("healthy", None, innocent="preallocate", steps=3)
def masked_autoencoder_with_fresh_masks(torch: Any, fix: str | None) -> Step:
    """A masked autoencoder is trained under autocast with a fused AdamW, and draws its masks anew in every step.

    The masks, their order and the places of hidden patches are new tensors each time. They are small, and their memory
    comes from the allocator's cache: buffers that are kept save nothing that can be seen.
    """
    nn, functional = torch.nn, torch.nn.functional
    width, layers, heads, narrow, batch, patches, seen, pixels = sizes(
        (2048, 3, 16, 512, 128, 196, 49, 768), (32, 1, 2, 16, 2, 16, 4, 12)
    )

    class Autoencoder(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.shrink = nn.Linear(pixels, width), nn.Linear(width, narrow)
            self.places, self.narrow_places = (nn.Parameter(torch.randn(patches, w) * 0.02) for w in (width, narrow))
            self.hidden = nn.Parameter(torch.zeros(narrow))
            self.encoder, self.decoder = encoder(torch, width, layers, heads), encoder(torch, narrow, 1, 8)
            self.head = nn.Linear(narrow, pixels)

        def forward(self, images: Any, order: Any, back: Any) -> Any:
            shown = order[:, :seen]
            x = images.gather(1, shown.unsqueeze(-1).expand(-1, -1, pixels))
            x = self.shrink(self.encoder(self.embed(x) + self.places[shown]))
            x = torch.cat((x, self.hidden.to(x.dtype).expand(batch, patches - seen, narrow)), 1)
            x = x.gather(1, back.unsqueeze(-1).expand(-1, -1, narrow))
            return self.head(self.decoder(x + self.narrow_places))

    model = Autoencoder().to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    images = torch.randn(batch, patches, pixels, device="cuda")
    kept = torch.empty(batch, patches, device="cuda")
    masked = torch.empty(batch, patches, device="cuda")

    def draw() -> tuple[Any, Any, Any]:
        noise = kept.uniform_() if fix else torch.rand(batch, patches, device="cuda")
        order = noise.argsort(1)
        back = order.argsort(1)
        mask = masked.fill_(0) if fix else torch.zeros(batch, patches, device="cuda")
        return order, back, mask.masked_fill_(back >= seen, 1)

    def step() -> Any:
        order, back, mask = draw()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            guess = model(images, order, back)
        errors = functional.mse_loss(guess.float(), images, reduction="none").mean(-1)
        loss = (errors * mask).sum() / mask.sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


@planted("healthy", None, innocent="batch", steps=3)
def speech_embedded_chunk_by_chunk(torch: Any, fix: str | None) -> Step:
    """A wide speech encoder in bfloat16 embeds 48 utterances, and a loop does 16 of them at a time to save memory.

    The 8192 frames of a chunk already fill the GPU with every matmul, and the CPU is far ahead of it. All 48 in one
    batch take as long as three chunks.
    """
    nn, functional = torch.nn, torch.nn.functional
    width, layers, heads, utterances, chunk, frames = sizes((2048, 3, 16, 48, 16, 512), (32, 1, 2, 6, 2, 8))
    front = nn.Linear(320, width)
    model = nn.Sequential(front, encoder(torch, width, layers, heads)).to("cuda", torch.bfloat16).eval()
    speech = torch.randn(utterances, frames, 320, device="cuda").to(torch.bfloat16)

    def step() -> Any:
        with torch.inference_mode():
            vectors = [model(part).mean(1) for part in speech.split(utterances if fix else chunk)]
            return functional.normalize(torch.cat(vectors).float(), dim=-1)

    return step


@planted("healthy", None, innocent="cuda_graph", steps=3)
def decoder_that_reads_a_large_cache(torch: Any, fix: str | None) -> Step:
    """A decoder writes one token for each of 96 texts of 2048 tokens, with a cache that was allocated in advance.

    Every layer launches many small kernels, but its attention reads over a gigabyte of keys and values at the memory's
    bandwidth, and meanwhile the CPU launches the next layer. A CUDA graph saves time that nobody waits for.
    """
    functional = torch.nn.functional
    width, inner, layers, heads, vocabulary, batch, length = sizes(
        (2048, 5632, 8, 16, 16384, 96, 2048), (32, 48, 2, 2, 60, 2, 8)
    )
    model = decoder(torch, width, inner, layers, heads, vocabulary, length)
    shape = (layers, 2, batch, heads, length, width // heads)
    caches = torch.empty(shape, device="cuda", dtype=torch.bfloat16).normal_()
    tokens = torch.randint(0, vocabulary, (batch, 1), device="cuda")
    place = torch.tensor([length - 1], device="cuda")

    def attend(layer: int, q: Any, k: Any, v: Any) -> Any:
        keys, values = caches[layer]
        keys[:, :, -1:], values[:, :, -1:] = k, v
        return functional.scaled_dot_product_attention(q, keys, values)

    def write() -> None:
        tokens.copy_(model(tokens, place, attend).argmax(-1, keepdim=True))

    with torch.inference_mode():
        run = graphed(torch, write) if fix else write

    def step() -> Any:
        with torch.inference_mode():
            run()
            return tokens

    return step


@planted("healthy", None, innocent="pin_memory", trap=True, steps=3)
def classifier_told_how_to_mix(torch: Any, fix: str | None) -> Step:
    """A wide residual network learns from pairs of images mixed on the GPU; labels and pairs come from lists in Python.

    The copies of these few kilobytes come from pageable memory, and the CPU waits in them for all of the step before.
    The GPU then idles only until the next kernels come, and the convolutions let the CPU get ahead again.
    """
    nn, functional = torch.nn, torch.nn.functional
    images, pixels, width, blocks, classes = sizes((96, 32, 256, 3, 100), (4, 8, 8, 1, 5))

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, inputs: int, outputs: int, stride: int) -> None:
            super().__init__()
            self.first = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
            self.second = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
            self.before, self.between = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
            self.past = nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False) if stride > 1 else nn.Identity()

        def forward(self, x: Any) -> Any:
            y = functional.relu(self.before(self.first(x)), inplace=True)
            return functional.relu(self.between(self.second(y)) + self.past(x), inplace=True)

    layers: list[Any] = [nn.Conv2d(3, width, 3, padding=1)]
    layers += [Block(width, width, 1) for _ in range(blocks)]
    layers += [Block(width, 2 * width, 2), *(Block(2 * width, 2 * width, 1) for _ in range(blocks - 1))]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2 * width, classes))
    model = model.to("cuda", memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, fused=True)
    stored = torch.randint(0, 256, (4096, 3, pixels, pixels), device="cuda", dtype=torch.uint8)
    names = [index % classes for index in range(len(stored))]
    dice = random.Random(0)

    def moved(values: list[Any]) -> Any:
        tensor = torch.tensor(values)
        return tensor.pin_memory().to("cuda", non_blocking=True) if fix else tensor.to("cuda")

    def step() -> Any:
        chosen = dice.sample(range(len(names)), 2 * images)
        known, shares = [names[index] for index in chosen], [dice.betavariate(0.2, 0.2) for _ in range(images)]
        (one, two), (labels, others), share = moved(chosen).chunk(2), moved(known).chunk(2), moved(shares)
        part = share.view(-1, 1, 1, 1)
        batch = (stored[one] * part + stored[two] * (1 - part)) / 127.5 - 1
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            logits = model(batch.to(memory_format=torch.channels_last))
        errors = [functional.cross_entropy(logits.float(), truth, reduction="none") for truth in (labels, others)]
        loss = (share * errors[0] + (1 - share) * errors[1]).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
