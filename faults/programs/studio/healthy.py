"""Cause `healthy`: steps that use the GPU as it can be used; one of them looks guilty."""

from __future__ import annotations

import itertools
from typing import Any

from faults.programs.case import Step, planted

from .models import transformer


@planted("healthy", None, innocent="pin_memory")
def wide_block_fitted_to_a_teacher(torch: Any, fix: str | None) -> Step:
    """A wide transformer block is trained in bfloat16 with fused attention and a fused optimizer.

    Nine tenths of the step are large matmuls. The token ids come from ordinary memory, a hundred kilobytes of them.
    """
    nn = torch.nn
    width = 4096
    with torch.device("cuda"):
        table = nn.Embedding(8192, width).to(torch.bfloat16).requires_grad_(False)
        model = transformer(torch, width, 32, 1, causal=True).to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    teacher = torch.randn(6, 2048, width, device="cuda", dtype=torch.bfloat16)
    loaded = [torch.randint(0, 8192, (6, 2048)) for _ in range(4)]
    if fix:
        loaded = [tokens.pin_memory() for tokens in loaded]
    batches = itertools.cycle(loaded)

    def step() -> Any:
        tokens = next(batches).to("cuda", non_blocking=True)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(table(tokens)), teacher)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


@planted("healthy", None, innocent="remove_sync", trap=True)
def prompt_answered_and_awaited(torch: Any, fix: str | None) -> Step:
    """A server reads eight prompts with two wide blocks, and waits for the eight next tokens with `.tolist()`.

    The ids come from ordinary memory, the answer is read back, and the next request is sent only then. Ten
    milliseconds of large matmuls lie between, and what the waits leave idle is under a hundredth of it.
    """
    nn = torch.nn
    width = 4096
    with torch.device("cuda"):
        table = nn.Embedding(16384, width).to(torch.bfloat16)
        model = transformer(torch, width, 32, 2, causal=True).to(torch.bfloat16).eval()
        head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 16384, bias=False)).to(torch.bfloat16)
    requests = itertools.cycle([torch.randint(0, 16384, (8, 1024)) for _ in range(4)])

    def step() -> Any:
        with torch.no_grad():
            tokens = next(requests).to("cuda", non_blocking=True)
            hidden = model(table(tokens))[:, -1]
            following = head(hidden).argmax(-1)
            return following if fix else following.tolist()

    return step
