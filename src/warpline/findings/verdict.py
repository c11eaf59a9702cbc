"""The verdict in two halves: what the step waits for and what that costs; what to do first and what it brings.

The cause is the first row of the limits. No rule about fixes, effort or order touches it.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from warpline.estimate import CLEAR_GAIN, NOTICEABLE_GAIN, SHOWN_GAIN, Estimate
from warpline.findings.doubts import doubt_of_verdict
from warpline.findings.limits import MIN_GAIN, Limits
from warpline.findings.model import MEASURE_IT, Finding, Verdict
from warpline.findings.plan import PlanStep
from warpline.findings.state import State, percent
from warpline.fixes.claim import CAUSES, Cause
from warpline.fixes.evidence import Evidence
from warpline.fixes.registry import all_fixes
from warpline.fixes.words import listed
from warpline.replay.patterns.loading import loader_limit
from warpline.replay.ranges import Idle, ranges_of
from warpline.units import duration, speedup, uncapitalised

MIN_PART = 0.5
"""Share of the recording's time below which the verdict on the steps says how much of it they are."""


class CauseWords(Struct, frozen=True):
    """How a verdict speaks of a cause."""

    waits: str
    """What is waited for, by a step or a recording (`{unit}`)."""
    without: str
    """The condition of its limit."""
    shortened: str
    """What its fixes are for."""


WORDS: dict[str, CauseWords] = {
    "dispatch": CauseWords("the GPU waits for the CPU to launch its work", "if it launched at once", "launches"),
    "sync": CauseWords(
        "the CPU waits for the GPU, which is idle until the next launch", "without these waits", "waits"
    ),
    "transfer": CauseWords(
        "{unit} waits for copies between host and device",
        "if these copies took no time",
        "copies between host and device",
    ),
    "input": CauseWords("the GPU waits for data", "with data always ready", "loading data"),
    "memory": CauseWords(
        "{unit} waits for allocations and for copies on the device",
        "without them",
        "allocations and copies on the device",
    ),
    "comm": CauseWords(
        "{unit} waits for collectives, and in them for other ranks", "if collectives took no time", "communication"
    ),
    "cold_start": CauseWords("code is loaded, compiled or tuned", "once all of it is warm", "cold starts"),
    "kernel": CauseWords(
        "the GPU is busy with kernels that can be faster", "with the fixes of kernels below", "kernels"
    ),
}
OUTSIDE = {
    "cold_start": "load, initialise or unload code",
    "memory": "allocate and free memory",
    "profiler": "are the profiler's",
    "sync": "wait for the GPU",
    "transfer": "wait for copies",
    "input": "wait for data or load it",
    "dispatch": "are ops and calls on the CPU",
    "unknown": "are code of which nothing is recorded",
}
"""What a program does in the time before it uses the GPU and after, by what its thread is seen to do."""


def verdict_of(limits: Limits, plan: Sequence[PlanStep], state: State, findings: Sequence[Finding] = ()) -> Verdict:
    """The cause, and what to do first; `findings` are what is known of the fixes."""
    named = limits.named or limits.pair
    part = _part_of_recording(state)
    doubt = doubt_of_verdict(named, limits, state)
    if doubt is not None:
        return _verdict("unclear", f"Unclear: {doubt}.{part if state.rest else ''}", [], state)
    if not named:
        return _verdict("healthy", _healthy(limits, plan, findings, state) + part, [], state)
    causes = sorted((cause for cause in CAUSES if cause in named), key=named.index)
    also = causes[1] if len(causes) > 1 else None
    what = _bound(causes, limits, state) + _loader_limit(causes, limits, plan, state)
    verdict = _verdict(causes[0], what + part, plan, state, also)
    elsewhere = _why_elsewhere(causes, plan, findings)
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
    bare = evidence.bare
    old = bare.step_ns.plus(set_aside.once_ns / set_aside.recorded)
    new = cold.new_step_ns.expected
    busy_ns = (1 - bare.idle_share) * bare.expected_ns
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
        return f"no fix for {WORDS[causes[0]].shortened} gains here"
    if best.gain.expected >= first[-1].gain.expected:
        return None  # the plan has its own reason
    return f"{best.words}, for {WORDS[best.cause].shortened}, gains {best.gain_words}"


def _bound(causes: Sequence[Cause], limits: Limits, state: State) -> str:
    """The first half: what the step waits for, and what it would take without that."""
    first, *others = (state.name_of(cause) for cause in causes)
    name = listed([first, *map(uncapitalised, others)])
    if len(limits.pair) > 1:
        return f"{name}: {_both_waits(causes, limits, state)}"
    if len(causes) > 1:
        return f"{name}: {_several_waits(causes, limits, state)}"
    return f"{name}: {_one_wait(causes[0], limits, state)}"


def _both_waits(causes: Sequence[Cause], limits: Limits, state: State) -> str:
    both = " and ".join(_waits(cause, limits, state) for cause in causes)
    return f"{both}; without both, {_would_take(state.step_ns / limits.pair_gain, state)}; neither alone gives a tenth."


def _several_waits(causes: Sequence[Cause], limits: Limits, state: State) -> str:
    waits = listed(
        f"{_waits(cause, limits, state)} ({WORDS[cause].without}: {duration(limits.row(cause).step_ns.expected)})"
        for cause in causes
    )
    return f"in {state.the_step} of {duration(state.step_ns)}, {waits}."


def _one_wait(cause: Cause, limits: Limits, state: State) -> str:
    after = _would_take(limits.row(cause).step_ns.expected, state)
    said = f"{_waits_more_exactly(cause, limits, state)}; {WORDS[cause].without}, {after}."
    if cause == "comm" and state.is_one_rank:
        return f"{said} The files of all ranks show who is late (warpline diagnose FOLDER)."
    return said


def _waits(cause: Cause, limits: Limits, state: State) -> str:
    """What is waited for; without allocations, what remains of memory is copies."""
    if cause == "memory" and not state.allocates:
        return "the GPU is busy with copies within its own memory"
    waits = WORDS[cause].waits.format(unit=state.the_step)
    if cause == "transfer" and state.copies_ns < limits.row(cause).now_ns / 2:
        return f"{waits}, mostly for the CPU's part in them"
    return waits


def _waits_more_exactly(cause: Cause, limits: Limits, state: State) -> str:
    """What is waited for, where it is the only cause: there is room for what the file says of it."""
    if cause == "comm" and state.comm_ns:
        return _in_collectives(state)
    if cause == "dispatch" and state.own_code_ns > limits.row(cause).now_ns / 2:
        own = duration(state.own_code_ns)
        return f"the GPU waits for the CPU, which spends {own} of {state.each_step} in the program's own code"
    return _waits(cause, limits, state)


def _would_take(step_ns: float, state: State) -> str:
    return f"{state.the_step} would take {duration(step_ns)} instead of {duration(state.step_ns)}"


def _in_collectives(state: State) -> str:
    """What the file says of its collectives: equal ones have equal transfers, so the rest of the longer ones waits."""
    known = f"about {duration(state.rank_wait_ns)} of it waiting" if state.rank_wait_ns else "with any waiting"
    return f"collectives take {duration(state.comm_ns)} of {state.each_step}, {known} for other ranks"


def _loader_limit(causes: Sequence[Cause], limits: Limits, plan: Sequence[PlanStep], state: State) -> str:
    """Says so where the workers of a DataLoader decide how short the step could be."""
    if state.loader is None:
        return ""
    said = [limits.row(cause).step_ns.expected for cause in causes] + [step.new_step_ns.expected for step in plan[:1]]
    return f" {loader_limit(state.loader, state.step_ns)}" if min(said) <= SHOWN_GAIN * state.loader.step_ns else ""


def _part_of_recording(state: State) -> str:
    """Says so where the steps, or a program's use of the GPU, are the smaller part of the recording."""
    if state.share_of_recording >= MIN_PART:
        return ""
    rest = state.rest
    if rest is not None:
        other, active = duration(rest.time_ns), duration(rest.activity_ns)
        outside = f"the other {other}" if active == other else f"of the other {other}, {active}"
        return (
            f" That is {percent(state.share_of_recording)} of what is recorded, from the first GPU operation to the "
            f"last; {outside} {OUTSIDE[rest.activity]}."
        )
    return f" The steps are {percent(state.share_of_recording)} of the recording."


def _what_to_do(plan: Sequence[PlanStep], state: State) -> str:
    """The second half: what to do first, and what it brings; with what needs it, or where it brings little alone."""
    subjects = [step.words for step in plan[:2]]
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
    rest = f"free launches, waits, copies, data and communication would give {speedup(limits.together)} together"
    others = " of kernels" if any(step.gain.low >= CLEAR_GAIN for step in plan) else ""
    sure = f"no fix{others} is certain to gain 5 %{_doubtful_fix(findings, state)}"
    return f"Healthy: the GPU is {state.busy}; {rest}, and {sure}.{_as_sparse_matmul(state)}"


def _doubtful_fix(findings: Sequence[Finding], state: State) -> str:
    """The fix with the largest gain, where it is expected to be a cause's and may be nothing."""
    known = all_fixes()
    changes = [one for one in findings if known[one.fix].keeps_result and not known[one.fix].is_limit]
    best = max(changes, key=lambda one: one.gain.expected, default=None)
    if best is None or best.gain.expected < MIN_GAIN:
        return ""
    gain = best.gain
    expected = "" if gain.is_wide else f"{speedup(gain.expected)}, range "
    return f"; {best.words} might gain some ({expected}{gain.speedups}): {MEASURE_IT}"


def _as_sparse_matmul(state: State) -> str:
    """What the timeline cannot predict: the same result by another formulation."""
    if not state.rows_ns:
        return ""
    return (
        f" For {duration(state.rows_ns)}, kernels gather rows and add them at indices (index_add, scatter_add): a "
        f"sparse matmul (torch.sparse, CSR) does both without writing the gathered rows; {MEASURE_IT}."
    )
