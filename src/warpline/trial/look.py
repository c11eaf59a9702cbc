"""What follows from the first run: which calls are the steps, and how many of them are timed at a time."""

from __future__ import annotations

import math
from itertools import pairwise

from msgspec import Struct

from warpline.capture.trial.changes import MAX_WORKERS, PREFETCH_FACTOR
from warpline.capture.trial.plan import FORWARD, GENERATE, OPTIMIZER, StepKind
from warpline.capture.trial.results import LOSS
from warpline.errors import WarplineError
from warpline.trial.process import HeardEvent, LookReport

ROUND_S = 0.5
"""What a process runs in a round: enough that rounds of uneven steps are alike."""
WINDOW_S, MIN_WINDOW_STEPS = 0.1, 8
"""It runs that in windows by turns with the others, each at least so long. The speed of a shared host wanders: two
windows of one program differ by 6 % when they are 0.3 s apart, and by 9 % at 4 s (TD3 and a VAE on an H200)."""
SETTLE_SHARE = 0.25
"""Of a window: what is not timed after each pause."""
ROUNDS, MAX_ROUNDS = 8, 64
"""At least where the program is long enough, and at most."""
SKIP = 8
"""Steps before the first window."""
LOADED_AHEAD, MAX_DRAIN_S = MAX_WORKERS * PREFETCH_FACTOR, 10.0
"""Batches that loaders with more workers have ready at the start: they are used up before the first window if that does
not take longer, or the loader would look faster than it is."""
MAX_WARM_UP_S = 2.0
"""Slow steps are skipped for so long, but at least three of them: a group's processes make them at once, on one GPU."""
MIN_CALLS = 3
NO_STEPS = "no optimizer.step() of torch.optim, no generate() and no module of torch.nn"
NEEDS_STEPS = "to be tried, a step has to call one of these: put its forward into a torch.nn.Module"


class TimedSteps(Struct, frozen=True):
    """The steps to time, for all processes of the session."""

    step: StepKind
    words: str
    step_s: float
    """As the first run saw it: not exact."""
    skip: int
    settle: int
    per_window: int
    per_round: int
    """Windows of each process in a round."""
    rounds: int
    """At most."""
    result: str
    """Name of the results that are compared."""


def timed_steps(look: LookReport, loads_ahead: bool = False) -> TimedSteps:
    """Choose the steps: optimizer steps, else calls of generate(), else calls of the largest module called often.
    `loads_ahead`: whether a variant has more batches ready."""
    event = _chosen(look)
    times = event.times_s
    later = times[len(times) // 2 :] if len(times) > MIN_CALLS else times
    gaps = [two - one for one, two in pairwise(later)]
    step_s = max(sum(gaps) / len(gaps) if gaps else ROUND_S, 1e-6)
    step = StepKind(event.kind, event.who, event.name)
    words = {OPTIMIZER: f"{event.name}.step()", GENERATE: f"generate() of {event.name}"}
    skip = SKIP if SKIP * step_s < MAX_WARM_UP_S else 3
    if loads_ahead and (SKIP + LOADED_AHEAD) * step_s < MAX_DRAIN_S:
        skip = SKIP + LOADED_AHEAD
    in_round = max(1, round(ROUND_S / step_s))
    per_round = max(1, in_round // max(MIN_WINDOW_STEPS, round(WINDOW_S / step_s)))
    per_window, rounds = in_round // per_round, MAX_ROUNDS
    settle = round(SETTLE_SHARE * per_window)
    if look.ended:
        count = len(times)
        skip = min(skip, max(1, count // 8))
        settle = min(settle, count // 20)
        per_round = max(1, min(per_round, (count - skip) // ROUNDS // (settle + per_window)))
        per_window = min(per_window, max(1, (count - skip) // ROUNDS - settle))
        rounds = min(MAX_ROUNDS, (count - skip) // (settle + per_window) // per_round)
    else:
        per_window = next_prime(settle + per_window) - settle
    if rounds < 1:
        raise WarplineError("too-few-steps", f"the program ended after {len(times)} steps", "give it more steps")
    result = LOSS if event.kind == OPTIMIZER else f"{event.kind} {event.who}"
    said = words.get(event.kind, f"forward of {event.name}")
    return TimedSteps(step, said, step_s, skip, settle, per_window, per_round, rounds, result)


def next_prime(number: int) -> int:
    """The number, or the next prime: of a program that does something else every few steps, windows at such distances
    meet each part of that period alike."""
    while any(number % divisor == 0 for divisor in range(2, math.isqrt(number) + 1)):
        number += 1
    return number


def _chosen(look: LookReport) -> HeardEvent:
    by_kind = {kind: [one for one in look.events if one.kind == kind] for kind in (OPTIMIZER, GENERATE, FORWARD)}
    if by_kind[OPTIMIZER]:
        return by_kind[OPTIMIZER][-1]  # of several, as a GAN has, the one that appears last ends an iteration
    if by_kind[GENERATE]:
        return by_kind[GENERATE][0]
    if not by_kind[FORWARD]:
        raise WarplineError("no-steps", f"the program ended, and called {NO_STEPS}", NEEDS_STEPS)

    def size(event: HeardEvent) -> tuple[bool, int]:
        return len(event.times_s) >= MIN_CALLS, look.use.modules[event.who].parameters

    return max(by_kind[FORWARD], key=size)


def alive_together(look: LookReport, host_free_bytes: int, most: int) -> int:
    """How many processes of the program fit into memory at once."""
    fits = most
    if look.use.on_gpu:
        one = 1.3 * look.gpu_reserved_bytes + CONTEXT_BYTES
        fits = min(fits, int(0.9 * (look.gpu_free_bytes + look.gpu_reserved_bytes + CONTEXT_BYTES) / one))
    return max(1, min(fits, int(0.8 * host_free_bytes / max(1.3 * look.host_bytes * look.use.world_size, 1))))


CONTEXT_BYTES = 700_000_000
"""What a process holds on a GPU beside its tensors: about what CUDA and its libraries take."""
