"""The verdict in two halves: what the step waits for and what that costs; what to do first and what it brings.

The cause is the first row of the limits. No rule about fixes, effort or order touches it.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from warpline.estimate import CLEAR_GAIN, NOTICEABLE_GAIN, SHOWN_GAIN, Estimate
from warpline.findings.distortion import LEAST_DISTORTION
from warpline.findings.limits import MIN_GAIN, Limits
from warpline.findings.model import MEASURE_IT, Finding, Verdict
from warpline.findings.plan import PlanStep
from warpline.findings.state import HalfEmpty, State, percent
from warpline.fixes.claim import CAUSES, Cause
from warpline.fixes.evidence import Evidence
from warpline.fixes.registry import all_fixes
from warpline.fixes.words import listed
from warpline.replay.ranges import Idle, ranges_of
from warpline.units import duration, several, speedup, uncapitalised

MIN_PART = 0.5
"""Share of the recording's time below which the verdict on the steps says how much of it they are."""
MIN_DIFFERENCE = 0.02
"""Busy shares with and without the profiler that differ by less are shown as one."""
WAITS: dict[str, tuple[str, str]] = {
    "dispatch": ("the GPU waits for the CPU to launch its work", "if it launched at once"),
    "sync": ("the CPU waits for the GPU, which is idle until the next launch", "without these waits"),
    "transfer": ("{unit} waits for copies between host and device", "if these copies took no time"),
    "input": ("the GPU waits for data", "with data always ready"),
    "memory": ("{unit} waits for allocations and for copies on the device", "without them"),
    "comm": ("{unit} waits for collectives, and in them for other ranks", "if collectives took no time"),
    "cold_start": ("code is loaded, compiled or tuned", "once all of it is warm"),
    "kernel": ("the GPU is busy with kernels that can be faster", "with the fixes of kernels below"),
}
"""For each cause what is waited for, by a step or a recording, and the condition of its limit."""
OUTSIDE = {
    "cold_start": "load and initialise code",
    "memory": "allocate and free memory",
    "profiler": "are the profiler's",
    "sync": "wait for the GPU",
    "transfer": "wait for copies",
    "input": "wait for data or load it",
    "dispatch": "are ops and calls on the CPU",
    "unknown": "are code of which nothing is recorded",
}
"""What a program does in the time before it uses the GPU and after, by what its thread is seen to do."""
COPIES = ("Copies on the device", "the GPU is busy with copies within its own memory")
"""The name of the cause `memory`, and what is waited for, where nothing is allocated."""
OWN_FIX: dict[str, str] = {
    "dispatch": "launches",
    "sync": "waits",
    "transfer": "copies between host and device",
    "input": "loading data",
    "memory": "allocations and copies on the device",
    "comm": "communication",
    "kernel": "kernels",
}
"""For each cause what a fix is for that shortens it."""
CAUSE_OF: dict[str, Cause] = {cause: cause for cause in CAUSES}


def verdict_of(limits: Limits, plan: Sequence[PlanStep], state: State, findings: Sequence[Finding] = ()) -> Verdict:
    """The cause, and what to do first; `findings` are what is known of the fixes."""
    causes = limits.named or limits.pair
    unclear = _unclear(causes, limits, state)
    part = _part_of_recording(state)
    if unclear is not None:
        return _verdict("unclear", f"Unclear: {unclear}.{part if state.rest else ''}", [], state)
    if not causes:
        return _verdict("healthy", _healthy(limits, plan, findings, state) + part, [], state)
    known = [CAUSE_OF[cause] for cause in causes if cause != "unknown"]
    verdict = _verdict(known[0], _bound(known, limits, state) + part, plan, state, known[1] if len(known) > 1 else None)
    elsewhere = _why_elsewhere(known, plan, findings)
    if elsewhere is None:
        return verdict
    return replace(verdict, why=f"{verdict.why or 'first because it gains more'}; {elsewhere}")


def cold_start_verdict(findings: Sequence[Finding], evidence: Evidence) -> Verdict | None:
    """A cold start that takes most of the recorded steps' time, with few warm steps after it; None for others.

    Its gain is what a stopwatch over all recorded steps would show, cold ones included: their time over that of as many
    warm ones. All other gains count from the warm steps.
    """
    cold = next((finding for finding in findings if finding.cause == "cold_start"), None)
    if cold is None or not evidence.mostly_cold:
        return None
    sentence = f"{CAUSES[cold.cause]}: {uncapitalised(cold.claim)}"
    set_aside = evidence.trace.cold
    if set_aside is None or cold.gain.expected >= NOTICEABLE_GAIN:
        return Verdict(cold.cause, cold.fix, sentence, cold.gain, cold.new_step_ns)
    question = evidence.question
    old = question.bare.step_ns.plus(set_aside.once_ns / set_aside.recorded)
    new = cold.new_step_ns.expected
    busy_ns = (1 - question.bare.idle_share) * question.bare.step_ns.expected
    idle = Idle(1 - busy_ns / old.expected, max(0.0, 1 - busy_ns / new))
    known = ranges_of([cold.fix], old, new, spread=evidence.ask(cold.fix).spread, idle=idle)
    gain = known.gain.rounded(4)
    recorded = (
        f" Without a cold start, all {set_aside.recorded} recorded steps together would take "
        f"{duration(set_aside.recorded * new)} instead of {duration(set_aside.recorded * old.expected)} "
        f"({speedup(gain.expected)})."
    )
    return Verdict(cold.cause, cold.fix, sentence + recorded, gain, cold.new_step_ns)


def _verdict(cause: Cause, sentence: str, plan: Sequence[PlanStep], state: State, also: Cause | None = None) -> Verdict:
    if not plan:
        step = round(state.step_ns)
        return Verdict(cause, None, sentence, Estimate(1.0, 1.0, 1.0), Estimate(step, step, step), also=also)
    first = plan[0]
    return Verdict(
        cause, first.fix, f"{sentence} {_what_to_do(plan, state)}", first.gain, first.new_step_ns, first.why, also
    )


def _why_elsewhere(causes: Sequence[Cause], plan: Sequence[PlanStep], findings: Sequence[Finding]) -> str | None:
    """Why the first fix is not for what the step waits for; None where it is, or is needed by one that is."""
    first = plan[: 2 if _is_prerequisite(plan) else 1]
    if not first or any(rule.cause in causes for step in first for rule in all_fixes()[step.fix].findings):
        return None
    own = [one for one in findings if one.cause in causes and not all_fixes()[one.fix].is_limit]
    best = max(own, key=lambda one: one.gain.expected, default=None)
    if best is None or best.gain.expected < SHOWN_GAIN:
        return f"no fix for {OWN_FIX[causes[0]]} gains here"
    if best.gain.expected >= first[-1].gain.expected:
        return None  # the plan has its own reason
    return f"{all_fixes()[best.fix].words}, for {OWN_FIX[best.cause]}, gains {best.gain_words}"


def _bound(causes: Sequence[Cause], limits: Limits, state: State) -> str:
    """The first half: what the step waits for, and what it would take without that."""
    first, *others = (_words(cause, state)[0] for cause in causes)
    name = listed([first, *map(uncapitalised, others)])
    unit = _the(state)
    now = duration(state.step_ns)
    waited = {cause: _words(cause, state)[1].format(unit=unit) for cause in causes}
    if "transfer" in waited and state.copies_ns < limits.row("transfer").now_ns / 2:
        waited["transfer"] += ", mostly for the CPU's part in them"
    if len(limits.pair) > 1:
        both = " and ".join(waited.values())
        after = duration(state.step_ns / limits.pair_gain)
        return f"{name}: {both}; without both, {unit} would take {after} instead of {now}; neither alone gives a tenth."
    waits = listed(
        f"{waited[cause]} ({WAITS[cause][1]}: {duration(limits.row(cause).step_ns.expected)})" for cause in causes
    )
    if len(causes) > 1:
        return f"{name}: in {unit} of {now}, {waits}."
    what, free = waited[causes[0]], WAITS[causes[0]][1]
    after = duration(limits.row(causes[0]).step_ns.expected)
    if causes[0] == "comm" and state.comm_ns:
        what = _in_collectives(state)
    if causes[0] == "dispatch" and state.own_code_ns > limits.row("dispatch").now_ns / 2:
        own = duration(state.own_code_ns)
        what = f"the GPU waits for the CPU, which spends {own} of {_each(state)} in the program's own code"
    other = " The files of all ranks show who is late (warpline diagnose FOLDER)." if "comm" in causes else ""
    return f"{name}: {what}; {free}, {unit} would take {after} instead of {now}.{other if state.is_one_rank else ''}"


def _words(cause: Cause, state: State) -> tuple[str, str]:
    """The name of a cause, and what is waited for: most of a collective's time may be a wait for other ranks, and not
    communication; without allocations, what remains of memory is copies."""
    if cause == "comm" and state.rank_wait_ns > state.comm_ns / 2:
        return "Waiting for other ranks", WAITS[cause][0]
    return COPIES if cause == "memory" and not state.allocates else (CAUSES[cause], WAITS[cause][0])


def _in_collectives(state: State) -> str:
    """What the file says of its collectives: equal ones have equal transfers, so the rest of the longer ones waits."""
    known = f"about {duration(state.rank_wait_ns)} of it waiting" if state.rank_wait_ns else "with any waiting"
    return f"collectives take {duration(state.comm_ns)} of {_each(state)}, {known} for other ranks"


def _part_of_recording(state: State) -> str:
    """Says so where the steps, or a program's use of the GPU, are the smaller part of the recording."""
    if state.share_of_recording >= MIN_PART:
        return ""
    rest = state.rest
    if rest is not None:
        return (
            f" That is {percent(state.share_of_recording)} of what is recorded, from the first GPU operation to the "
            f"last; of the other {duration(rest.time_ns)}, {duration(rest.activity_ns)} {OUTSIDE[rest.activity]}."
        )
    return f" The steps are {percent(state.share_of_recording)} of the recording."


def _what_to_do(plan: Sequence[PlanStep], state: State) -> str:
    """The second half: what to do first, and what it brings; with what needs it, or where it brings little alone."""
    subjects = [all_fixes()[step.fix].subject(state.framework) for step in plan[:2]]
    if len(plan) > 1 and (_is_prerequisite(plan) or plan[0].gain.expected < CLEAR_GAIN):
        both = "together" if plan[1].gain.is_wide else "both"
        return f"First, {subjects[0]}, then {subjects[1]}: {both} {_brings(plan[1])}."
    return f"First, {subjects[0]}{':' if plan[0].gain.is_wide else ''} {_brings(plan[0])}."


def _is_prerequisite(plan: Sequence[PlanStep]) -> bool:
    """Whether the first fix of a plan is part of the second one."""
    return len(plan) > 1 and plan[0].is_needed and plan[0].larger == plan[1].fix


def _brings(step: PlanStep) -> str:
    gain = step.gain
    if gain.is_wide:
        return f"{gain.speedups}, {MEASURE_IT}"
    verb = "would" if gain.low >= 1.0 else "might"
    return f"{verb} bring it to {duration(step.new_step_ns.expected)} ({speedup(gain.expected)}, range {gain.speedups})"


def _healthy(limits: Limits, plan: Sequence[PlanStep], findings: Sequence[Finding], state: State) -> str:
    busy = f"the GPU is {_busy(state)}"
    rest = f"free launches, waits, copies, data and communication would give {speedup(limits.together)} together"
    others = " of kernels" if any(step.gain.low >= CLEAR_GAIN for step in plan) else ""
    doubtful = _doubtful_fix(findings, state)
    return f"Healthy: {busy}; {rest}, and no fix{others} is certain to gain 5 %{doubtful}.{_as_sparse_matmul(state)}"


def _doubtful_fix(findings: Sequence[Finding], state: State) -> str:
    """The fix with the largest gain, where it is expected to be a cause's and may be nothing."""
    known = all_fixes()
    changes = [one for one in findings if known[one.fix].keeps_result and not known[one.fix].is_limit]
    best = max(changes, key=lambda one: one.gain.expected, default=None)
    if best is None or best.gain.expected < MIN_GAIN:
        return ""
    gain = best.gain
    subject = known[best.fix].subject(state.framework)
    expected = "" if gain.is_wide else f"{speedup(gain.expected)}, range "
    return f"; {subject} might gain some ({expected}{gain.speedups}): {MEASURE_IT}"


def _as_sparse_matmul(state: State) -> str:
    """What the timeline cannot predict: the same result by another formulation."""
    if not state.rows_ns:
        return ""
    return (
        f" For {duration(state.rows_ns)}, kernels gather rows and add them at indices (index_add, scatter_add): a "
        f"sparse matmul (torch.sparse, CSR) does both without writing the gathered rows; {MEASURE_IT}."
    )


def _busy(state: State) -> str:
    """The busy share, without what recording visibly took from it."""
    if state.idle_share - state.bare_idle_share < MIN_DIFFERENCE:
        return f"busy {percent(1 - state.idle_share)} of {_each(state)}"
    bare = percent(1 - state.bare_idle_share)
    return f"busy {bare} of {_each(state)} without the profiler ({percent(1 - state.idle_share)} as recorded)"


def _unclear(causes: Sequence[str], limits: Limits, state: State) -> str | None:
    """What makes it impossible to name a cause, or to call a step without one healthy."""
    reason = why_unclear(state)
    if reason is not None:
        return reason
    if limits.is_of_slow_host:
        return _slow_host(limits, state)
    if causes:
        return _unknown(limits, state) if causes[0] == "unknown" else None
    if limits.hangs_on_host and state.distortion >= LEAST_DISTORTION:
        return _host_in_doubt(limits, state)
    doubt = _doubt_of_health(state)
    return None if doubt is None else f"the GPU is {_busy(state)}, but {doubt}"


def _doubt_of_health(state: State) -> str | None:
    """What contradicts that a step without a cause is healthy."""
    empty = state.half_empty
    if empty is not None:
        return (
            f"{duration(empty.time_ns)} of it with kernels whose grids can use half of the device at most (the "
            f"longest: {several(empty.blocks, 'block')} of {several(empty.threads, 'thread')}, for {empty.sms} "
            f"multiprocessors). {_fill(empty)}; the timeline does not show what that gives"
        )
    if state.graph_bars_ns > (1 - 1 / MIN_GAIN) * state.step_ns:
        return (
            f"{duration(state.graph_bars_ns)} of it with CUDA graphs that are recorded as one event each, so that "
            "their kernels are not known. Record with nsys profile --cuda-graph-trace=node"
        )
    if state.unexplained_ns <= (1 - 1 / MIN_GAIN) * state.step_ns:
        return None
    moves = (
        f": unified memory moves page by page ({several(state.migrations, 'migration')}) when the CPU or the GPU "
        "touches it. Move it ahead (cudaMemPrefetchAsync), or copy it"
        if state.migrations
        else ". Record the CPU side too (ops, Python stacks or OS calls)"
    )
    return f"for {duration(state.unexplained_ns)} it is idle without a recorded reason{moves}"


def _fill(empty: HalfEmpty) -> str:
    """What a grid lacks: blocks, threads in each, or both."""
    if empty.blocks >= empty.sms:
        return f"Use blocks of whole warps ({empty.warp_size} threads)"
    return "Launch more blocks" if empty.threads >= empty.warp_size else "Launch more blocks, of whole warps"


def why_unclear(state: State) -> str | None:
    """Why nothing can be said of the program's steps, or of a gain; None where something can."""
    if state.obstacle is not None:
        return state.obstacle
    if state.replay_error <= MIN_GAIN - 1:
        return None
    missing = (
        f"{percent(state.unlaunched_share)} of the GPU's work was launched before the recording began, or its launches "
        "were lost; start to record earlier"
        if state.unlaunched_share >= state.replay_error
        else "calls or work wait for something that is not in the recording, such as another process on this GPU; "
        "record every process that uses it"
    )
    return (
        f"the replay misses the recorded {state.noun.one('').strip()} by {percent(state.replay_error)}, so no gain can "
        f"be told: {missing}"
    )


def _unknown(limits: Limits, state: State) -> str:
    row = limits.row("unknown")
    if 2 * state.unrecorded_ns >= state.step_ns - row.step_ns.expected:
        return (
            f"for {duration(state.unrecorded_ns)} of {_the(state)}, work is launched and does not start, on a "
            f"GPU without recorded work: it waits for what is not in the recording; without that, {_the(state)} would "
            f"take {duration(row.step_ns.expected)} instead of {duration(state.step_ns)}. Start to record earlier, and "
            "record every process that uses this GPU"
        )
    return (
        f"delays without a recorded reason come first; without them, {_the(state)} would take "
        f"{duration(row.step_ns.expected)} instead of {duration(state.step_ns)}. Record the CPU side too (ops, Python "
        "stacks or OS calls) to see what it waits for"
    )


def _the(state: State) -> str:
    return state.noun.one("the")


def _each(state: State) -> str:
    return state.noun.one("each")


def _slow_host(limits: Limits, state: State) -> str:
    """Nobody knows whether the host is always so slow."""
    calm = limits.first_on_calm_host
    otherwise = "nothing gives a tenth" if calm is None else f"it is {_bound_by(calm.cause, state)}"
    return (
        f"the host launched {state.slowness:.1f}× more slowly than the reference host. If it is always so, "
        f"{_the(state)} of {duration(state.step_ns)} is {_bound_by(limits.named[0], state)}; if not, {otherwise}. "
        "Record it again, or with `warpline run`, which also times the step without a profiler"
    )


def _bound_by(cause: str, state: State) -> str:
    return uncapitalised(_words(CAUSE_OF[cause], state)[0]) if cause in CAUSE_OF else "waiting"


def _host_in_doubt(limits: Limits, state: State) -> str:
    """A step that seems bound by its kernels, whose host may be no faster than they are."""
    step = limits.row("kernel").step_ns
    return (
        f"recording made {_the(state)} {state.distortion:.1f}× as long, so that how fast the host is without "
        f"it is known only roughly: with the fixes of kernels, {_the(state)} of {duration(state.step_ns)} would take "
        f"{duration(step.low)} to {duration(step.high)}. Record it again, or measure one of them (warpline try)"
    )
