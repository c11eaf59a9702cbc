"""Cause `sync`: loops over tokens, environment steps and batches that ask the GPU for a number each time."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import weights


@planted("sync", "remove_sync")
def simulation_that_asks_who_is_done(torch: Any, fix: str | None) -> Step:
    """Environments simulated on the GPU are reset after each of 16 steps `if done.any()`.

    The condition waits for the GPU, which then waits for the next step's launches. The reset is a `where` that is
    right whether or not any environment is done.
    """
    environments, width, hidden = 10240, 512, 1024
    (inner,), (outer,) = (
        weights(torch, 1, width, hidden, torch.bfloat16),
        weights(torch, 1, hidden, width, torch.bfloat16),
    )
    fresh = torch.randn(environments, width, device="cuda", dtype=torch.bfloat16)

    def step() -> Any:
        state, returns = fresh, torch.zeros(environments, device="cuda")
        for _ in range(16):
            action = torch.tanh(torch.relu(state @ inner) @ outer)
            state = torch.add(action, state, alpha=0.9)
            returns += state[:, 1]
            done = state[:, :1] > 2.0
            if fix or done.any():  # planted
                state = torch.where(done, fresh, state)
        return returns

    return step


@planted("sync", "remove_sync")
def generation_that_stops_when_all_have_ended(torch: Any, fix: str | None) -> Step:
    """A generation loop tests after each of twelve tokens whether every sequence has ended, and breaks if so.

    The test reads a boolean back before the next token can be launched. Sequences that have ended are padded anyway,
    so that it is enough to look once, after the last token.
    """
    functional = torch.nn.functional
    batch, width, vocabulary, end = 32, 4096, 8192, 0
    table = torch.randn(vocabulary, width, device="cuda", dtype=torch.bfloat16)
    layers = weights(torch, 3, width, width, torch.bfloat16)
    (head,) = weights(torch, 1, width, vocabulary, torch.bfloat16)
    prompt = torch.randint(1, vocabulary, (batch,), device="cuda")

    def step() -> Any:
        token, ended, text = prompt, torch.zeros(batch, device="cuda", dtype=torch.bool), []
        for _ in range(12):
            x = functional.embedding(token, table)
            for weight in layers:
                x = functional.gelu(x @ weight)
            token = (x @ head).argmax(-1).masked_fill(ended, end)
            text.append(token)
            ended = ended | (token == end)
            if not fix and ended.all():  # planted
                break
        return torch.stack(text), bool(ended.all())

    return step


@planted("sync", "remove_sync")
def recall_of_every_chunk_of_queries(torch: Any, fix: str | None) -> Step:
    """An image-text evaluation looks up twelve chunks of queries and adds up the hits of each with `.item()`.

    Every chunk is half a dozen launches, which the GPU could have waiting while it works on the chunk before; read
    once after the last one, the sum is the same.
    """
    chunks, size, images, width = 12, 1024, 16384, 512
    gallery = torch.randn(images, width, device="cuda", dtype=torch.bfloat16)
    matches = torch.randint(0, images, (chunks, size), device="cuda")
    queries = gallery[matches] + 5 * torch.randn(chunks, size, width, device="cuda", dtype=torch.bfloat16)

    def step() -> Any:
        hits = torch.zeros((), device="cuda", dtype=torch.long) if fix else 0
        for chunk, truth in zip(queries, matches, strict=True):
            scores = chunk @ gallery.T
            right = (scores.argmax(-1) == truth).sum()
            hits = hits + (right if fix else right.item())  # planted
        return int(hits) / (chunks * size)

    return step
