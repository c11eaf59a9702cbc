"""Cause `transfer`: copies between CPU and GPU that are too many or too slow."""

from __future__ import annotations

import random
from itertools import cycle
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.sealed.parts import sizes
from faults.programs.unseen.decoder import decoder


@planted("transfer", "pin_memory")
def scans_from_ordinary_memory(torch: Any, fix: str | None) -> Step:
    """A U-Net finds organs in CT scans, 48 slices at a time, which it takes from ordinary memory with `.to("cuda")`.

    The driver copies the 50 MB piece by piece through a buffer of its own, and the CPU waits for the last one before
    it launches anything. From pinned memory the copy runs at the full speed of the bus and the CPU goes on.
    """
    nn, functional = torch.nn, torch.nn.functional
    slices, pixels, width, organs = sizes((48, 512, 64, 16), (2, 32, 4, 3))

    def convolutions(inputs: int, outputs: int) -> Any:
        layers = [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(inplace=True)]
        return nn.Sequential(*layers, nn.Conv2d(outputs, outputs, 3, padding=1), nn.ReLU(inplace=True))

    class UNet(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Conv2d(1, width, 4, stride=4)
            self.down = nn.ModuleList(convolutions(size, 2 * size) for size in (width, 2 * width))
            self.middle = convolutions(4 * width, 4 * width)
            self.up = nn.ModuleList(convolutions(8 * width // n, 2 * width // n) for n in (1, 2))
            self.head = nn.Conv2d(width, organs, 1)

        def forward(self, x: Any) -> Any:
            x, kept = self.stem(x), []
            for block in self.down:
                x = block(x)
                kept.append(x)
                x = functional.max_pool2d(x, 2)
            x = self.middle(x)
            for block, other in zip(self.up, reversed(kept), strict=True):
                x = block(torch.cat((functional.interpolate(x, scale_factor=2), other), 1))
            return self.head(x)

    model = UNet().to("cuda", torch.bfloat16).to(memory_format=torch.channels_last).eval()
    stored = [torch.randn(slices, 1, pixels, pixels) for _ in range(4)]
    scans = cycle([scan.pin_memory() for scan in stored] if fix else stored)

    def step() -> Any:
        with torch.inference_mode():
            scan = next(scans)
            images = scan.to("cuda", non_blocking=True) if fix else scan.to("cuda")  # planted
            images = images.clamp(-3, 3).to(torch.bfloat16)
            return model(images).argmax(1).to(torch.uint8)

    return step


class Request:
    """A text that is being written: its blocks of cache, where it stands, its last token and its temperature."""

    def __init__(self, number: int, blocks: int, block: int, vocabulary: int) -> None:
        dice = random.Random(number)
        self.blocks = list(range(number * blocks, (number + 1) * blocks))
        self.start = dice.randrange(block * blocks // 2, block * (blocks - 1))
        self.written, self.room = 0, block
        self.token, self.temperature = dice.randrange(vocabulary), dice.uniform(0.5, 1.0)

    @property
    def place(self) -> int:
        """Where its next token goes."""
        return self.start + self.written

    def write(self, token: int) -> None:
        """Adds a token; one that is full begins again."""
        self.token, self.written = token, (self.written + 1) % self.room


@planted("transfer", "coalesce_copies", steps=3)
def engine_that_sends_each_request_by_itself(torch: Any, fix: str | None) -> Step:
    """An engine writes 48 texts at once with a paged cache, and sends each request's state in tensors of its own.

    Three tensors per request are 144 copies of a few bytes per token, and the CPU waits for each of them. All requests'
    numbers fit into one table of integers and one row of temperatures, which are two copies.
    """
    functional = torch.nn.functional
    width, inner, layers, heads, vocabulary, count, blocks, block = sizes(
        (1024, 2816, 6, 8, 16384, 48, 16, 32), (32, 48, 2, 2, 60, 3, 4, 4)
    )
    model = decoder(torch, width, inner, layers, heads, vocabulary, blocks * block)
    shape = (count * blocks, block, heads, width // heads)
    caches = torch.randn(layers, 2, *shape, device="cuda").to(torch.bfloat16)
    requests = [Request(number, blocks, block, vocabulary) for number in range(count)]
    everywhere = torch.arange(blocks * block, device="cuda")

    def states() -> tuple[Any, Any, Any]:
        if fix:
            table = torch.tensor([[request.token, request.place, *request.blocks] for request in requests]).to("cuda")
            heat = torch.tensor([request.temperature for request in requests]).to("cuda")
            return table[:, :2], table[:, 2:], heat
        standing = [torch.tensor([request.token, request.place]).to("cuda") for request in requests]  # planted
        tables = [torch.tensor(request.blocks).to("cuda") for request in requests]  # planted
        heats = [torch.tensor(request.temperature).to("cuda") for request in requests]  # planted
        return torch.stack(standing), torch.stack(tables), torch.stack(heats)

    def step() -> Any:
        with torch.inference_mode():
            standing, tables, heat = states()
            tokens, places = standing.split(1, 1)
            held = tables.gather(1, places // block).squeeze(1)
            slot = (places % block).squeeze(1)
            visible = (everywhere <= places)[:, None, None]

            def attend(layer: int, q: Any, k: Any, v: Any) -> Any:
                keys, values = caches[layer]
                keys[held, slot], values[held, slot] = k.squeeze(2), v.squeeze(2)
                k, v = (kept[tables].flatten(1, 2).transpose(1, 2) for kept in (keys, values))
                return functional.scaled_dot_product_attention(q, k, v, attn_mask=visible)

            logits = model(tokens, places, attend).float() / heat.unsqueeze(1)
            chosen = (logits - torch.empty_like(logits).exponential_().log()).argmax(-1).tolist()
        for request, token in zip(requests, chosen, strict=True):
            request.write(token)
        return chosen

    return step
