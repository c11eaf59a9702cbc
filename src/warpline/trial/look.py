"""What follows from the first run: which calls are the steps, and how many of them are timed at a time."""

from __future__ import annotations

from itertools import pairwise

from msgspec import Struct

from warpline.capture.trial.plan import FORWARD, GENERATE, OPTIMIZER, StepKind
from warpline.capture.trial.results import LOSS
from warpline.errors import WarplineError
from warpline.trial.judge import LOOKS
from warpline.trial.process import HeardEvent, LookReport

WINDOW_S, MIN_WINDOW_S, WINDOW_SHARE = 0.6, 0.25, 1 / 400
"""Length of a window: long against the clock and a pause, short against the drift of a machine; of a small budget, this
share."""
ROUNDS, MAX_ROUNDS = LOOKS[0], LOOKS[-1]
"""Windows of each process, at least where the program is long enough, and at most."""
SKIP, SETTLE = 8, 2
"""Steps before the first window, and after each pause."""
MAX_WARM_UP_S = 5.0
"""Slow steps are skipped for so long, but at least three of them."""
MIN_CALLS = 3


class TimedSteps(Struct, frozen=True):
    """The steps to time, for all processes of the session."""

    step: StepKind
    words: str
    step_s: float
    """As the first run saw it: not exact."""
    skip: int
    settle: int
    per_window: int
    windows: int
    """That a process can run at most."""
    result: str
    """Name of the results that are compared."""


def timed_steps(look: LookReport, budget_s: float) -> TimedSteps:
    """Choose the steps: optimizer steps, else calls of generate(), else calls of the largest module called often."""
    event = _chosen(look)
    window_s = min(WINDOW_S, max(MIN_WINDOW_S, WINDOW_SHARE * budget_s))
    times = event.times_s
    later = times[len(times) // 2 :] if len(times) > MIN_CALLS else times
    gaps = [two - one for one, two in pairwise(later)]
    step_s = max(sum(gaps) / len(gaps) if gaps else window_s, 1e-6)
    step = StepKind(event.kind, event.who, event.name)
    words = {OPTIMIZER: f"{event.name}.step()", GENERATE: f"generate() of {event.name}"}
    skip = SKIP if SKIP * step_s < MAX_WARM_UP_S else 3
    settle = SETTLE
    per_window, windows = max(1, round(window_s / step_s)), MAX_ROUNDS
    if look.ended:
        count = len(times)
        skip = min(skip, max(1, count // 8))
        settle = min(settle, count // 20)
        per_window = min(per_window, max(1, (count - skip) // ROUNDS - settle))
        windows = min(MAX_ROUNDS, (count - skip) // (settle + per_window))
    if windows < 1:
        raise WarplineError("too-few-steps", f"the program ended after {len(times)} steps", "give it more steps")
    result = LOSS if event.kind == OPTIMIZER else f"{event.kind} {event.who}"
    said = words.get(event.kind, f"forward of {event.name}")
    return TimedSteps(step, said, step_s, skip, settle, per_window, windows, result)


def _chosen(look: LookReport) -> HeardEvent:
    by_kind = {kind: [one for one in look.events if one.kind == kind] for kind in (OPTIMIZER, GENERATE, FORWARD)}
    if by_kind[OPTIMIZER]:
        return by_kind[OPTIMIZER][-1]  # of several, as a GAN has, the one that appears last ends an iteration
    if by_kind[GENERATE]:
        return by_kind[GENERATE][0]
    if not by_kind[FORWARD]:
        raise WarplineError(
            "no-steps",
            "the program called no optimizer.step(), no generate() and no module",
            "warpline try needs a PyTorch program that does",
        )

    def size(event: HeardEvent) -> tuple[bool, int]:
        return len(event.times_s) >= MIN_CALLS, look.use.modules[event.who].parameters

    return max(by_kind[FORWARD], key=size)


def alive_together(look: LookReport, host_free_bytes: int, most: int) -> int:
    """How many processes of the program fit into memory at once."""
    fits = most
    if look.use.on_gpu:
        one = 1.3 * look.gpu_reserved_bytes + CONTEXT_BYTES
        fits = min(fits, int(0.9 * (look.gpu_free_bytes + look.gpu_reserved_bytes + CONTEXT_BYTES) / one))
    return max(1, min(fits, int(0.8 * host_free_bytes / max(1.3 * look.host_bytes, 1))))


CONTEXT_BYTES = 700_000_000
"""What a process holds on a GPU beside its tensors: about what CUDA and its libraries take."""
