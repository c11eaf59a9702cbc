"""Cause `transfer`: copies between the CPU and the GPU take the time."""

from __future__ import annotations

import itertools
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.sealed.parts import hugging_face, sizes
from faults.programs.ward.networks import on_gpu


@planted("transfer", "pin_memory")
def points_of_a_laser_from_ordinary_memory(torch: Any, fix: str | None) -> Step:
    """A network sorts the points of 32 laser sweeps into kinds, and `.to("cuda")` takes 77 MB from ordinary memory.

    The driver copies ordinary memory through a small buffer of its own, and the CPU waits for it. From pinned memory
    the GPU reads at the full rate of the bus, and nobody waits.
    """
    nn = torch.nn
    batch, points, features, width, kinds = sizes((32, 120_000, 5, 64, 20), (2, 50, 5, 8, 3))

    def mixed(*widths: int) -> Any:
        pairs = itertools.pairwise(widths)
        return nn.Sequential(*(layer for pair in pairs for layer in (nn.Linear(*pair), nn.ReLU())))

    local, wide = mixed(features, width, width), mixed(width, width)
    head = nn.Sequential(mixed(2 * width, width), nn.Linear(width, kinds))
    network = nn.ModuleList((local, wide, head)).to("cuda", torch.bfloat16).requires_grad_(False)
    sweeps = torch.randn(batch, points, features)
    if fix:
        sweeps = sweeps.pin_memory()

    def step() -> Any:
        with torch.inference_mode():
            cloud = sweeps.to("cuda", non_blocking=bool(fix)).to(torch.bfloat16)  # planted
            near = network[0](cloud)
            whole = network[1](near).amax(1, keepdim=True).expand_as(near)
            kind = network[2](torch.cat((near, whole), -1)).argmax(-1)
            return torch.stack([(kind == each).sum() for each in range(kinds)])

    return step


@planted("transfer", "reduce_before_copy", steps=3)
def patches_chosen_from_all_attention(torch: Any, fix: str | None) -> Step:
    """A ViT's attention chooses the patches that a second network looks at: all maps go to the CPU, indices come back.

    The CPU gets 12 heads of all pairs of patches, and needs one row of them, averaged over the heads. The GPU
    averages that row in no time, and a copy of a few kilobytes is left.
    """
    transformers = hugging_face()
    width, layers, heads, side, batch, chosen = sizes((768, 4, 12, 224, 32, 48), (32, 2, 2, 64, 2, 3))
    config = transformers.ViTConfig(
        image_size=side,
        patch_size=16,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        attn_implementation="eager",
    )
    with on_gpu(torch):
        model = transformers.ViTModel(config, add_pooling_layer=False)
        closer = torch.nn.Sequential(
            torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width)
        )
    model = model.to("cuda", torch.bfloat16).eval().requires_grad_(False)
    closer = closer.to("cuda", torch.bfloat16).requires_grad_(False)
    images = torch.randn(batch, 3, side, side, device="cuda", dtype=torch.bfloat16)

    def best(maps: Any) -> Any:
        needed = maps[:, :, :1].float().mean(1) if fix else maps.float()
        maps = needed.cpu()  # planted
        seen = maps[:, 0, 1:] if fix else maps.mean(1)[:, 0, 1:]
        return seen.topk(chosen, dim=-1).indices.to("cuda")

    def step() -> Any:
        with torch.inference_mode():
            output = model(pixel_values=images, output_attentions=True)
            places = best(output.attentions[-1]).unsqueeze(-1).expand(-1, -1, width)
            patches = output.last_hidden_state[:, 1:].gather(1, places)
            return closer(patches).float().mean(1)[:, :8]

    return step
