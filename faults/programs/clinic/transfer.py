"""Cause `transfer`: copies between CPU and GPU that are too many, too large or too slow."""

from __future__ import annotations

from itertools import cycle
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.sealed.parts import hugging_face, sizes


@planted("transfer", "pin_memory")
def forecaster_fed_from_an_array(torch: Any, fix: str | None) -> Step:
    """A forecaster of mixing layers learns from windows of sensor data, which `.to("cuda")` takes from an array.

    The driver copies the 67 MB of a batch piece by piece through a buffer of its own, and the CPU waits for the last
    one before it launches anything. From pinned memory the copy runs at the full speed of the bus.
    """
    nn, functional = torch.nn, torch.nn.functional
    windows, past, sensors, future, width, layers = sizes((2048, 512, 16, 96, 1024, 4), (3, 8, 2, 4, 8, 1))

    class Mixer(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.up, self.down = nn.LayerNorm(past), nn.Linear(past, width), nn.Linear(width, past)

        def forward(self, x: Any) -> Any:
            return x + self.down(functional.gelu(self.up(self.norm(x))))

    model = nn.Sequential(*(Mixer() for _ in range(layers)), nn.Linear(past, future)).to("cuda", torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    stored = [torch.randn(windows, sensors, past) for _ in range(4)]
    batches = cycle([batch.pin_memory() for batch in stored] if fix else stored)
    following = torch.randn(windows, sensors, future, device="cuda")

    def step() -> Any:
        batch = next(batches)
        seen = batch.to("cuda", non_blocking=True) if fix else batch.to("cuda")  # planted
        optimizer.zero_grad(set_to_none=True)
        level = seen.mean(-1, keepdim=True)
        guess = model((seen - level).to(torch.bfloat16)).float() + level
        loss = functional.l1_loss(guess, following)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


@planted("transfer", "reduce_before_copy")
def images_described_by_all_their_patches(torch: Any, fix: str | None) -> Step:
    """A DINOv2 describes 64 images by their first vector, `last_hidden_state.float().cpu()[:, 0]`.

    That copies the vectors of all 257 patches to the CPU, which throws 256 of them away. Taken before the copy, the
    first vectors are 200 KB.
    """
    transformers = hugging_face()
    width, layers, heads, pixels, batch = sizes((768, 6, 12, 224, 64), (32, 1, 2, 28, 2))
    config = transformers.Dinov2Config(
        hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads, image_size=pixels, patch_size=14
    )
    model = transformers.AutoModel.from_config(config).to("cuda", torch.bfloat16).eval()
    images = torch.randn(batch, 3, pixels, pixels, device="cuda", dtype=torch.bfloat16)

    def step() -> Any:
        with torch.inference_mode():
            vectors = model(pixel_values=images).last_hidden_state
            first = vectors[:, 0].float().cpu() if fix else vectors.float().cpu()[:, 0]  # planted
            return torch.nn.functional.normalize(first, dim=-1)

    return step


@planted("transfer", "coalesce_copies", steps=3)
def proteins_sent_one_by_one(torch: Any, fix: str | None) -> Step:
    """A graph network learns from 64 proteins a step, and the atoms, edges and label of each are copied by themselves.

    That is 192 copies of a few kilobytes, and the CPU waits for each of them. Joined on the CPU they are three copies.
    """
    nn, functional = torch.nn, torch.nn.functional
    torch.backends.cuda.matmul.allow_tf32 = True
    proteins, atoms, degree, kinds, width, layers = sizes((64, 120, 8, 30, 128, 3), (3, 5, 2, 4, 8, 1))
    count = proteins * atoms
    stored = [
        (torch.randint(0, kinds, (atoms,)), torch.randint(0, atoms, (2, atoms * degree)), torch.randn(1))
        for _ in range(4 * proteins)
    ]
    turns = cycle(range(0, 4 * proteins, proteins))
    starts = torch.arange(proteins, device="cuda").repeat_interleave(atoms * degree) * atoms
    owner = torch.arange(proteins, device="cuda").repeat_interleave(atoms)

    class Layer(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.message, self.own, self.norm = (
                nn.Linear(2 * width, width),
                nn.Linear(width, width),
                nn.LayerNorm(width),
            )

        def forward(self, x: Any, source: Any, target: Any) -> Any:
            sent = functional.silu(self.message(torch.cat((x.index_select(0, source), x.index_select(0, target)), -1)))
            return self.norm(x + self.own(torch.zeros_like(x).index_add_(0, target, sent)))

    embed, head = nn.Embedding(kinds, width).to("cuda"), nn.Linear(width, 1).to("cuda")
    network = nn.ModuleList(Layer() for _ in range(layers)).to("cuda")
    parameters = [*embed.parameters(), *network.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, fused=True)

    def joined(chosen: list[Any]) -> tuple[Any, Any, Any]:
        if fix:
            names, edges, labels = (torch.cat(parts, -1) for parts in zip(*chosen, strict=True))
            return names.to("cuda"), edges.to("cuda"), labels.to("cuda")
        moved = [[part.to("cuda") for part in protein] for protein in chosen]  # planted
        names, edges, labels = (torch.cat(parts, -1) for parts in zip(*moved, strict=True))
        return names, edges, labels

    def step() -> Any:
        first = next(turns)
        names, edges, labels = joined(stored[first : first + proteins])
        source, target = edges + starts
        optimizer.zero_grad(set_to_none=True)
        x = embed(names)
        for layer in network:
            x = layer(x, source, target)
        whole = torch.zeros(proteins, width, device="cuda").index_add_(0, owner, x) / count
        loss = functional.mse_loss(head(whole).squeeze(-1), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
