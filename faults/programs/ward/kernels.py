"""Cause `kernel`: the GPU is busy, with kernels that take longer than they need to."""

from __future__ import annotations

import itertools
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.sealed.parts import compiled, hugging_face, sizes
from faults.programs.ward.networks import on_gpu, scaled


@planted("kernel", "tf32", also=("bf16",))
def esm_in_the_precision_of_its_checkpoint(torch: Any, fix: str | None) -> Step:
    """An ESM embeds 32 proteins of 256 residues in float32, as its checkpoint was stored.

    PyTorch multiplies float32 matrices without tensor cores unless it is told otherwise. The vectors are compared by
    their angles, for which ten bits of a mantissa are plenty.
    """
    transformers = hugging_face()
    width, layers, heads, batch, length = sizes((1280, 4, 20, 32, 256), (32, 1, 2, 2, 8))
    config = transformers.EsmConfig(
        vocab_size=33,
        pad_token_id=1,
        mask_token_id=32,
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        max_position_embeddings=length + 2,
        position_embedding_type="rotary",
        token_dropout=False,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    with on_gpu(torch):
        model = transformers.EsmModel(config, add_pooling_layer=False)
    model = model.to("cuda").eval().requires_grad_(False)  # planted
    torch.backends.cuda.matmul.allow_tf32 = fix == "tf32"
    if fix == "bf16":
        model = model.to(torch.bfloat16)
    proteins = torch.randint(4, 24, (batch, length), device="cuda")

    def step() -> Any:
        with torch.inference_mode():
            vectors = model(input_ids=proteins).last_hidden_state.float().mean(1)
            return torch.nn.functional.normalize(vectors, dim=-1)[:, :8]

    return step


@planted("kernel", "sdpa", steps=3)
def videos_learned_with_eager_attention(torch: Any, fix: str | None) -> Step:
    """A VideoMAE learns actions from eight videos of 1568 patches in bfloat16 with `attn_implementation="eager"`.

    Each layer writes the scores of all pairs of patches to memory, reads them for the softmax, and reads them again for
    the mixture and for the gradients. Fused attention keeps them on the chip.
    """
    transformers = hugging_face()
    width, layers, heads, side, frames, batch = sizes((768, 4, 12, 224, 16, 8), (32, 1, 2, 32, 4, 2))
    config = transformers.VideoMAEConfig(
        image_size=side,
        patch_size=16,
        num_frames=frames,
        tubelet_size=2,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        num_labels=100,
        attn_implementation="sdpa" if fix else "eager",  # planted
    )
    with on_gpu(torch):
        model = transformers.VideoMAEForVideoClassification(config)
    model = model.to("cuda", torch.bfloat16).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    videos = torch.randn(batch, frames, 3, side, side, device="cuda", dtype=torch.bfloat16)
    actions = torch.randint(0, 100, (batch,), device="cuda")

    def step() -> Any:
        logits = model(pixel_values=videos).logits
        loss = torch.nn.functional.cross_entropy(logits.float(), actions)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return step


@planted("kernel", "torch_compile", stacks=False, steps=3)
def quantiles_of_returns_compared_in_pairs(torch: Any, fix: str | None) -> Step:
    """A QR-DQN learns 200 quantiles of its return, and its loss compares all pairs of them operation by operation.

    Each of a dozen operations writes a tensor of 80 million numbers to memory, and the gradient reads them all again.
    Compiled, the loss needs no such tensor: one kernel makes each pair, weighs it and adds it up.
    """
    nn = torch.nn
    batch, frames, moves, quantiles = sizes((2048, 4, 18, 200), (4, 4, 3, 5))
    layers = (nn.Conv2d(frames, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3))
    network = nn.Sequential(
        *layers, nn.ReLU(), nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, moves * quantiles)
    )
    network = network.to("cuda", torch.bfloat16, memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(network.parameters(), lr=5e-5, eps=1e-3, fused=True)
    seen = torch.randint(0, 256, (batch, frames, 84, 84), device="cuda", dtype=torch.uint8)
    seen = seen.contiguous(memory_format=torch.channels_last)
    moved = torch.randint(0, moves, (batch,), device="cuda")
    wanted = torch.randn(batch, quantiles, device="cuda")
    levels = (torch.arange(quantiles, device="cuda") + 0.5) / quantiles
    rows = torch.arange(batch, device="cuda")

    def quantile_loss(guess: Any, target: Any) -> Any:
        error = target.unsqueeze(1) - guess.unsqueeze(2)  # planted
        size = error.abs()  # planted
        huber = torch.where(size < 1, 0.5 * error.square(), size - 0.5)  # planted
        weight = (levels.view(1, -1, 1) - (error.detach() < 0).float()).abs()  # planted
        return (weight * huber).mean(2).sum(1).mean()  # planted

    loss_of = compiled(torch, quantile_loss) if fix else quantile_loss

    def step() -> Any:
        frames_seen = seen.to(torch.bfloat16) / 255
        guess = network(frames_seen).view(batch, moves, quantiles)[rows, moved].float()
        loss = loss_of(guess, wanted)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return step


@planted("kernel", "bf16")
def images_decoded_in_float32_for_safety(torch: Any, fix: str | None) -> Step:
    """The decoder of a latent diffusion model turns four latents into images in float32, "against black images".

    Float16 once overflowed in such decoders, and pipelines have raised them to float32 ever since. Bfloat16 has the
    range of float32, and its eight bits are as many as a pixel has.
    """
    nn, functional = torch.nn, torch.nn.functional
    widths, batch, side = sizes(((512, 512, 256, 128), 4, 32), ((32, 32), 2, 4))

    class Block(torch.nn.Module):  # type: ignore[misc]
        def __init__(self, before: int, after: int) -> None:
            super().__init__()
            self.norms = nn.ModuleList((nn.GroupNorm(32, before), nn.GroupNorm(32, after)))
            self.convolutions = nn.ModuleList(
                (nn.Conv2d(before, after, 3, padding=1), nn.Conv2d(after, after, 3, padding=1))
            )
            self.short = nn.Conv2d(before, after, 1) if before != after else nn.Identity()

        def forward(self, x: Any) -> Any:
            inner = self.convolutions[0](functional.silu(self.norms[0](x)))
            return self.short(x) + self.convolutions[1](functional.silu(self.norms[1](inner)))

    class Larger(torch.nn.Module):  # type: ignore[misc]
        def __init__(self, width: int) -> None:
            super().__init__()
            self.convolution = nn.Conv2d(width, width, 3, padding=1)

        def forward(self, x: Any) -> Any:
            return self.convolution(functional.interpolate(x, scale_factor=2.0, mode="nearest"))

    layers = [nn.Conv2d(4, widths[0], 3, padding=1), Block(widths[0], widths[0])]
    for before, after in itertools.pairwise(widths):
        layers += [Block(before, before), Larger(before), Block(before, after)]
    layers += [nn.GroupNorm(32, widths[-1]), nn.SiLU(), nn.Conv2d(widths[-1], 3, 3, padding=1)]
    kind = torch.bfloat16 if fix else torch.float32  # planted
    decoder = scaled(torch, nn.Sequential(*layers), 0.5).to("cuda", kind).eval().requires_grad_(False)
    latents = torch.randn(batch, 4, side, side, device="cuda")

    def step() -> Any:
        with torch.inference_mode():
            images = decoder(latents.to(kind)).float()
            return (images / 2 + 0.5).clamp(0, 1).mean((1, 2, 3))

    return step
