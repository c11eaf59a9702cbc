"""Cause `cold_start`: a variant of a compiled function that no warm-up asked for."""

from __future__ import annotations

import itertools
import time
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import compiled, weights


@planted("cold_start", "warm_up", stacks=False)
def penalty_that_was_never_warmed_up(torch: Any, fix: str | None) -> Step:
    """A compiled sampler was warmed up without a penalty for repetition, and the third request is the first to ask.

    The flag is part of what was compiled, so that request waits for a compiler. A warm-up with both values of the flag
    moves this to before the service starts.
    """
    requests, vocabulary, width = 256, 32000, 4096
    (head,) = weights(torch, 1, width, vocabulary, torch.bfloat16)
    hidden = torch.randn(requests, width, device="cuda", dtype=torch.bfloat16)
    counts = torch.randint(0, 3, (requests, vocabulary), device="cuda").float()
    temperature = 0.7 + time.time_ns() % 1_000_000 * 1e-8  # new, so that no cache on disk has the compiled function

    def sample(logits: Any, used: Any, penalised: bool) -> Any:
        scores = logits.float() / temperature
        if penalised:
            scores = scores - 0.5 * used - 0.2 * (used > 0)
        return scores.softmax(-1).amax(-1)

    fast = compiled(torch, sample)
    for penalised in (False, True) if fix else (False,):
        fast(hidden @ head, counts, penalised)
    torch.cuda.synchronize()
    numbers = itertools.count()

    def step() -> Any:
        return fast(hidden @ head, counts, next(numbers) >= 2)  # planted

    return step
