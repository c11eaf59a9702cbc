"""The first run of the program: which steps it makes, what it uses, and how long it takes to start."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from warpline.errors import WarplineError
from warpline.trial.candidates import Candidate
from warpline.trial.look import NEEDS_STEPS, NO_STEPS, timed_steps
from warpline.trial.process import LookReport, VariantProcess
from warpline.trial.variants import POLL_S, Say, SeenProgram, Variant, VariantProcesses
from warpline.units import duration

CRASHED = "program-failed"
PREFETCH = "prefetch"
"""The change by which a loader has more batches ready."""
LOOK_S = 6.0
"""It listens for so long, from the first call on."""
SAYS_NOTHING_CALLED_S = 20.0
MayWrite = Callable[[str], bool] | None
"""Is asked before the program writes its first file outside its folder; without, it may."""


def look_at_program(
    processes: VariantProcesses, candidates: Sequence[Candidate], may_write: MayWrite, say: Say
) -> SeenProgram:
    """Run the program once, as a rounding twin."""
    say("looking at the program")
    try:
        look, took_s = _first_run(processes, may_write, say, counts_ops=True)
    except WarplineError as error:
        if error.code != CRASHED:
            raise
        say("it failed; once more, without counting its ops")  # which it may not stand
        look, took_s = _first_run(processes, may_write, say, counts_ops=False)
    loads_ahead = any(one.change.name == PREFETCH and not one.change.why_not(look.use) for one in candidates)
    steps = timed_steps(look, loads_ahead)
    say(f"step: {steps.words}, about {duration(1e9 * steps.step_s)}; looked for {took_s:.0f} s")
    return SeenProgram(look, steps, took_s)


def _first_run(
    processes: VariantProcesses, may_write: MayWrite, say: Say, *, counts_ops: bool
) -> tuple[LookReport, float]:
    """What the program showed of itself, and the seconds that this took."""
    budget_s = processes.budget_s
    process = processes.start(
        Variant(),
        is_twin=True,
        look_s=min(LOOK_S, budget_s / 20),
        hang_after_s=budget_s / 3,
        counts=counts_ops,
        asks=may_write is not None,
    )
    says_at = time.monotonic() + SAYS_NOTHING_CALLED_S
    while process.looked() is None and not process.is_over:
        _answer_question(process, processes, may_write)
        if processes.left_s < budget_s / 2:
            raise _too_late(process)
        if time.monotonic() > says_at:
            says_at = math.inf
            if not process.has_called():
                say(f"waiting for its first step: so far it called {NO_STEPS}")
        time.sleep(POLL_S)
    look, took_s = process.looked(), time.monotonic() - process.started
    if look is None or (look.ended and process.has_failed()):
        process.fail_by_itself()
        reason = process.problem() or process.error
        processes.end([process])
        if not process.has_failed() and not process.has_called():
            raise WarplineError("no-steps", f"the program ended, and called {NO_STEPS}", NEEDS_STEPS)
        code = CRASHED if process.has_failed() else "no-steps"
        raise WarplineError(code, f"the program as it is could not be measured: {reason}")
    processes.end([process])
    return look, took_s


def _too_late(process: VariantProcess) -> WarplineError:
    """Half of the budget is over: what was seen of the program till then."""
    waited = f"after {time.monotonic() - process.started:.0f} s{process.place()}"
    if process.has_called():
        return WarplineError("no-steps", f"the program had made too few steps {waited}", "give it a larger --budget")
    hint = f"if it had not begun, give it a larger --budget; {NEEDS_STEPS}"
    return WarplineError("no-steps", f"the program had called {NO_STEPS} {waited}", hint)


def _answer_question(process: VariantProcess, processes: VariantProcesses, may_write: MayWrite) -> None:
    """Ask whether the program may write outside its folder, if it waits for that."""
    path = process.asks_to_write()
    if not path:
        return
    asked = time.monotonic()
    if may_write is None or not may_write(path):
        raise WarplineError("not-started", "nothing was written or tried", "add --yes to permit it")
    process.permit_writing()
    processes.leave_out(time.monotonic() - asked)
