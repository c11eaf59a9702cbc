"""Cause `transfer`: copies between host and GPU take longer than they need to."""

from __future__ import annotations

import itertools
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.harbour.networks import transformer
from faults.programs.sealed.parts import sizes
from faults.programs.ward.networks import scaled


@planted("transfer", "pin_memory", steps=3)
def satellite_tiles_from_ordinary_memory(torch: Any, fix: str | None) -> Step:
    """An MLP-Mixer maps eight satellite tiles of 13 bands at a time, which come from ordinary memory.

    The driver copies 109 MB to a buffer of its own first, bit by bit, while the GPU waits. From pinned memory the copy
    engine fetches them itself.
    """
    nn, functional = torch.nn, torch.nn.functional
    width, layers, side, patch, bands, classes, batch = sizes((1024, 10, 512, 16, 13, 11, 8), (16, 1, 16, 8, 3, 4, 2))
    tokens = (side // patch) ** 2
    kind = {"device": "cuda", "dtype": torch.bfloat16}

    class Mixer(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.LayerNorm(width, **kind), nn.LayerNorm(width, **kind)
            self.places = nn.ModuleList((nn.Linear(tokens, width, **kind), nn.Linear(width, tokens, **kind)))
            self.features = nn.ModuleList((nn.Linear(width, 4 * width, **kind), nn.Linear(4 * width, width, **kind)))

        def forward(self, x: Any) -> Any:
            mixed = self.places[1](functional.gelu(self.places[0](self.first(x).transpose(1, 2))))
            x = x + mixed.transpose(1, 2)
            return x + self.features[1](functional.gelu(self.features[0](self.second(x))))

    enter, leave = nn.Linear(bands * patch**2, width, **kind), nn.Linear(width, classes, **kind)
    network = nn.Sequential(enter, *(Mixer() for _ in range(layers)), leave).requires_grad_(False)
    tiles = [torch.randn(batch, tokens, bands * patch**2) for _ in range(2)]
    if fix:
        tiles = [tile.pin_memory() for tile in tiles]
    turns = itertools.cycle(tiles)

    def step() -> Any:
        with torch.inference_mode():
            tile = next(turns).to("cuda", non_blocking=bool(fix))  # planted
            return network(tile.to(torch.bfloat16)).float().softmax(-1).mean((0, 1))

    return step


@planted("transfer", "coalesce_copies", steps=3)
def shares_sent_one_by_one_to_a_forecaster(torch: Any, fix: str | None) -> Step:
    """A transformer forecasts 256 shares, and the history of each one is sent to the GPU by a call of its own.

    A history is 4 KB, and its copy is all latency. Stacked in host memory they are one megabyte and one copy.
    """
    nn = torch.nn
    width, layers, heads, shares, patches, each, ahead = sizes((512, 12, 8, 256, 64, 16, 32), (16, 1, 2, 4, 4, 4, 2))
    kind = {"device": "cuda", "dtype": torch.bfloat16}
    enter, leave = nn.Linear(each, width, **kind), nn.Linear(width, ahead, **kind)
    network = nn.Sequential(enter, *transformer(torch, width, layers, heads), leave).requires_grad_(False)
    histories = [torch.randn(patches, each) for _ in range(shares)]

    def sent() -> Any:
        if fix:
            return torch.stack(histories).to("cuda")
        return torch.stack([history.to("cuda") for history in histories])  # planted

    def step() -> Any:
        with torch.inference_mode():
            return network(sent().to(torch.bfloat16))[:, -1].float().mean(0)

    return step


@planted("transfer", "reduce_before_copy", steps=3)
def poses_read_from_heatmaps_on_the_cpu(torch: Any, fix: str | None) -> Step:
    """An hourglass network marks 133 joints of 16 people in maps, which are copied to the CPU to find the maxima.

    The maps are 59 MB, and what is wanted of them is one place for each joint. The GPU finds the maxima in no time, and
    17 KB remain to be copied.
    """
    nn, functional = torch.nn, torch.nn.functional
    width, stacks, depth, joints, people, height, breadth = sizes((256, 5, 3, 133, 16, 96, 72), (8, 1, 2, 3, 2, 16, 8))

    class Hourglass(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.down = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1, bias=False) for _ in range(depth))
            self.up = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1, bias=False) for _ in range(depth))
            self.after = nn.Conv2d(width, width, 3, padding=1, bias=False)

        def forward(self, x: Any) -> Any:
            kept = []
            for layer in self.down:
                kept.append(x)
                x = functional.max_pool2d(functional.relu(layer(x)), 2)
            for layer, before in zip(self.up, reversed(kept), strict=True):
                x = before + functional.interpolate(functional.relu(layer(x)), scale_factor=2)
            return functional.relu(self.after(x))

    enter, leave = nn.Conv2d(3, width, 7, padding=3, bias=False), nn.Conv2d(width, joints, 1, bias=False)
    network = scaled(torch, nn.Sequential(enter, *(Hourglass() for _ in range(stacks)), leave), 0.7)
    network = network.to("cuda", torch.bfloat16, memory_format=torch.channels_last).requires_grad_(False)
    crops = torch.randn(people, 3, height, breadth, device="cuda", dtype=torch.bfloat16)
    crops = crops.contiguous(memory_format=torch.channels_last)

    def step() -> Any:
        with torch.inference_mode():
            maps = network(crops).float().flatten(2)
            if not fix:
                maps = maps.cpu()  # planted
            return maps.argmax(-1).cpu()

    return step
