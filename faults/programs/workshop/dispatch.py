"""Cause `dispatch`: small networks whose kernels end sooner than the CPU can launch them."""

from __future__ import annotations

import copy
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import graphed, weights


@planted("dispatch", "cuda_graph", innocent="remove_sync", trap=True)
def q_learning_on_small_batches(torch: Any, fix: str | None) -> Step:
    """A small Q-network is updated three times with 128 transitions each, and the last loss is read with `.item()`.

    Every kernel takes some two microseconds and every launch longer than that, so the GPU has nothing left to do
    when the loss is read. What helps is to launch the updates as one graph, not to leave the loss where it is.
    """
    nn, functional = torch.nn, torch.nn.functional
    online = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 18)).to("cuda")
    target = copy.deepcopy(online).requires_grad_(False)
    optimizer = torch.optim.Adam(online.parameters(), lr=1e-5, fused=True, capturable=True)
    states, following = torch.randn(2, 3, 128, 64, device="cuda").unbind(0)
    actions = torch.randint(0, 18, (3, 128, 1), device="cuda")
    rewards, alive = torch.randn(3, 128, device="cuda"), (torch.rand(3, 128, device="cuda") > 0.1).float()
    seen = torch.zeros((), device="cuda")

    def updates() -> None:
        for index in range(3):
            optimizer.zero_grad(set_to_none=True)
            best = target(following[index]).max(-1).values
            wanted = rewards[index] + 0.99 * alive[index] * best
            values = online(states[index]).gather(1, actions[index]).squeeze(1)
            loss = functional.smooth_l1_loss(values, wanted)
            loss.backward()
            optimizer.step()
        seen.copy_(loss.detach())

    run = graphed(torch, updates) if fix == "cuda_graph" else updates

    def step() -> Any:
        run()  # planted
        return seen if fix == "remove_sync" else seen.item()

    return step


@planted("dispatch", "cuda_graph")
def completion_by_a_small_model(torch: Any, fix: str | None) -> Step:
    """A language model of five narrow layers generates two tokens for four prompts, kernel by kernel.

    A layer is some twenty launches of next to no work. The cache is static and the position lies on the GPU, so that
    the whole generation can be replayed as one graph.
    """
    functional = torch.nn.functional
    width, heads, context, batch, prompt, new = 384, 6, 256, 4, 100, 2
    size, half = (batch, heads, context, width // heads), torch.bfloat16
    layers = [
        (
            weights(torch, 1, 3 * width, width, half)[0],
            weights(torch, 1, width, width, half)[0],
            weights(torch, 1, 4 * width, width, half)[0],
            weights(torch, 1, width, 4 * width, half)[0],
            torch.randn(size, device="cuda", dtype=half),
            torch.randn(size, device="cuda", dtype=half),
        )
        for _ in range(5)
    ]
    table = torch.randn(5000, width, device="cuda").to(half)
    places = torch.randn(context, width, device="cuda").to(half)
    first, slots = torch.randint(0, 5000, (batch, 1), device="cuda"), torch.arange(context, device="cuda")
    position = torch.zeros(1, device="cuda", dtype=torch.long)
    generated = torch.zeros(batch, new, device="cuda", dtype=torch.long)

    def forward(token: Any) -> Any:
        x = functional.embedding(token, table) + places[position]
        mask = (slots <= position).view(1, 1, 1, context)
        for project, out, up, down, keys, values in layers:
            y = functional.layer_norm(x, (width,))
            q, k, v = functional.linear(y, project).view(batch, 1, 3, heads, -1).permute(2, 0, 3, 1, 4)
            keys.index_copy_(2, position, k)
            values.index_copy_(2, position, v)
            y = functional.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
            x = x + functional.linear(y.transpose(1, 2).reshape(batch, 1, width), out)
            y = functional.gelu(functional.linear(functional.layer_norm(x, (width,)), up))
            x = x + functional.linear(y, down)
        return functional.linear(functional.layer_norm(x, (width,)), table)

    def generate() -> None:
        position.fill_(prompt)
        token = first
        for index in range(new):
            token = forward(token).argmax(-1)
            generated[:, index : index + 1].copy_(token)
            position.add_(1)

    run = graphed(torch, generate) if fix else generate

    def step() -> Any:
        run()  # planted
        return generated

    return step


@planted("dispatch", "fused_optimizer")
def autoencoder_with_a_looping_optimizer(torch: Any, fix: str | None) -> Step:
    """A variational autoencoder of twelve layers is trained with `AdamW(foreach=False)`.

    The matmuls keep the GPU busy while the CPU launches them; then the optimiser launches half a dozen small kernels
    for each of 24 parameters, and the GPU waits. The fused optimiser is one launch or two.
    """
    nn = torch.nn
    width, latent = 1024, 512

    def stack(first: int, last: int) -> Any:
        layers: list[Any] = [nn.Linear(first, width), nn.GELU()]
        for _ in range(4):
            layers += [nn.Linear(width, width), nn.GELU()]
        return nn.Sequential(*layers, nn.Linear(width, last)).to("cuda", torch.bfloat16)

    encoder, decoder = stack(width, 2 * latent), stack(latent, width)
    parameters = [*encoder.parameters(), *decoder.parameters()]
    kind = {"fused": True} if fix else {"foreach": False}
    optimizer = torch.optim.AdamW(parameters, lr=1e-5, **kind)
    images = torch.randn(4096, width, device="cuda", dtype=torch.bfloat16)

    def step() -> Any:
        optimizer.zero_grad(set_to_none=True)
        mean, spread = encoder(images).chunk(2, -1)
        drawn = mean + torch.randn_like(mean) * (0.5 * spread).exp()
        loss = nn.functional.mse_loss(decoder(drawn), images)
        loss = loss - 0.0005 * (1 + spread - mean.square() - spread.exp()).mean()
        loss.backward()
        optimizer.step()  # planted
        return loss.detach()

    return step


@planted("dispatch", "batch", also=("cuda_graph",))
def importance_samples_decoded_in_turn(torch: Any, fix: str | None) -> Step:
    """The likelihood under an autoencoder is estimated from 20 latent samples, and each is decoded on its own.

    The loop launches 20 times the kernels that one batch of all the samples needs, each for 64 digits.
    """
    nn, functional = torch.nn, torch.nn.functional
    count, batch, latent, pixels = 20, 64, 32, 784
    decoder = nn.Sequential(
        nn.Linear(latent, 400), nn.Tanh(), nn.Linear(400, 400), nn.Tanh(), nn.Linear(400, pixels)
    ).to("cuda")
    decoder.requires_grad_(False)
    digits = (torch.rand(batch, pixels, device="cuda") > 0.5).float()
    mean, noise = torch.randn(batch, latent, device="cuda"), torch.randn(count, batch, latent, device="cuda")
    bound = torch.zeros(batch, device="cuda")

    def estimate() -> None:
        if fix == "batch":
            logits = decoder(mean + 0.5 * noise)
            wanted = digits.expand(count, -1, -1)
            terms = -functional.binary_cross_entropy_with_logits(logits, wanted, reduction="none").sum(-1)
        else:
            rows = []
            for sample in noise:
                logits = decoder(mean + 0.5 * sample)  # planted
                rows.append(-functional.binary_cross_entropy_with_logits(logits, digits, reduction="none").sum(-1))
            terms = torch.stack(rows)
        bound.copy_(terms.logsumexp(0))

    run = graphed(torch, estimate) if fix == "cuda_graph" else estimate

    def step() -> Any:
        run()
        return bound

    return step
