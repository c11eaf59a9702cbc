"""The verdict: the plan's first step in one sentence; without a plan, where the time goes, healthy, or unclear."""

from __future__ import annotations

import math
from collections.abc import Sequence

from warpline.estimate import Estimate
from warpline.findings.model import Finding, Verdict
from warpline.findings.plan import MIN_GAIN, MIN_LIKELY_GAIN, MOST_OF_DEVICE, PlanStep
from warpline.findings.state import State
from warpline.fixes.claim import CAUSES, Cause
from warpline.fixes.registry import all_fixes
from warpline.units import duration, speedup

MOST_UNEXPLAINED = 0.1
"""Share of the time that may be idle for no known reason in a healthy step."""
MOST_EXPOSED = 0.5
"""Share of the busy time that exposed copies, or exposed communication, may take in a healthy step."""
NEAR_ROOFLINE = 0.6
"""Kernels that reach this share of the roofline are as good as a library's: those reach 60 to 95 %."""
MIN_DIFFERENCE = 0.02
"""Busy shares with and without the profiler that differ by less are told as one."""
WAITS: tuple[Cause, ...] = ("dispatch", "sync", "transfer", "input", "memory", "comm", "cold_start")
EXPOSED: dict[Cause, str] = {
    "transfer": f"{CAUSES['transfer']}: exposed copies take",
    "memory": f"{CAUSES['transfer']}: copies from one place of the GPU's memory to another take",
    "comm": f"{CAUSES['comm']}: exposed communication takes",
}
PART_OF = {"launch_latency": "dispatch"}
UNEXPLAINED = ("dependency", "unknown")
MEANING = {
    "dependency": "waiting for other GPU activity",
    "unknown": "for no recorded reason",
    "profiler": "for the profiler",
}


def verdict_of(plan: Sequence[PlanStep], findings: Sequence[Finding], state: State) -> Verdict:
    """What to fix first, or why nothing is."""
    if not state.is_covered:
        return _about_the_recording(state)
    if _is_mostly_communication(state):
        overlap = next((step for step in plan if _cause(step.fix, findings) == "comm"), None)
        if overlap is None or overlap is not plan[0]:
            return _communication(plan, findings, state)
    if plan:
        return _to_fix(plan[0], findings, state)
    return _without_a_fix(findings, state)


def _cause(fix: str, findings: Sequence[Finding]) -> Cause | None:
    return next((finding.cause for finding in findings if finding.fix == fix), None)


def _to_fix(first: PlanStep, findings: Sequence[Finding], state: State) -> Verdict:
    chosen = next(finding for finding in findings if finding.fix == first.fix)
    gain, after, before = chosen.gain, chosen.new_step_ns, duration(state.step_ns)
    claim = _continued(chosen.claim.rstrip("."))
    known = any(text in claim for text in (f"{before} step", f"step of {before}"))
    expected, low, high = (speedup(value).removesuffix("×") for value in (gain.expected, gain.low, gain.high))
    spread = f", range {low}–{high}×" if low != high else ""
    subject = all_fixes()[chosen.fix].subject(state.framework)
    step = "" if known else f"from {before} "
    change = f"{subject} would bring {state.noun.one('the')} {step}to {duration(after.expected)} ({expected}×{spread})"
    if chosen.is_vague:
        of_step = "" if known else f" on {state.noun.lasting(before)}"
        change = f"{subject} would gain {low}× or more{of_step} (range {low}–{high}×)"
    if chosen.cannot_tell:
        change = _might_gain(chosen, state)
    sentence = f"{CAUSES[chosen.cause]}: {claim}; {change}."
    return Verdict(chosen.cause, chosen.fix, sentence, gain, after, first.why)


def _continued(sentence: str) -> str:
    """A sentence as it goes on after a colon; an abbreviation keeps its capitals."""
    return sentence if sentence[1:2].isupper() else sentence[0].lower() + sentence[1:]


def _is_mostly_communication(state: State) -> bool:
    """Whether exposed communication takes more time than anything else."""
    others = (state.compute, state.copy, *(length for cause, length in state.idle.items() if cause != "comm"))
    return state.comm + state.idle["comm"] > max(others)


def _communication(plan: Sequence[PlanStep], findings: Sequence[Finding], state: State) -> Verdict:
    other = f"; elsewhere, {_gain_of(plan[0], state)}" if plan else f"; {_tried(findings)}"
    sentence = f"{_comm_words(state)}, more than anything else in {state.step_words}{other}."
    return _same_step("comm", sentence, state)


def _comm_words(state: State) -> str:
    share = _percent(state.comm + state.idle["comm"])
    return f"{CAUSES['comm']}: exposed communication takes {share} of {state.noun.one('each')}"


def _gain_of(step: PlanStep, state: State) -> str:
    return f"{all_fixes()[step.fix].subject(state.framework)} would gain {speedup(step.gain.expected)}"


def _without_a_fix(findings: Sequence[Finding], state: State) -> Verdict:
    tried = f"{_tried(findings)} on {state.step_words}"
    if state.errors:
        return _same_step("unclear", f"Unclear: {_broken(state)}.", state)
    if not state.fits_devices:
        return _same_step("unclear", f"Unclear: {_wrong_steps(state)}.", state)
    if state.waits_for_slow_host:
        return _same_step("unclear", f"Unclear: {_slow_host(findings, state)}.", state)
    idle = _idle(tried, state)
    if idle is not None:
        return idle
    exposed = _exposed(state)
    if exposed is not None:
        return _same_step(exposed, f"{_exposed_words(exposed, state)}, and {tried}.", state)
    doubtful = _doubtful(findings, state)
    if doubtful is not None and doubtful.gain.expected >= _most_headroom(doubtful, state):
        return _same_step("unclear", f"Unclear: {_might_gain(doubtful, state)}.", state)
    busy = f"the GPU is busy {_percent(1 - state.program_idle)} of {state.noun.one('each')}{_as_recorded(state)}"
    share = state.roofline_share
    roof = "" if share is None else f", its kernels reach {_percent(share)} of the roofline"
    if doubtful is None:
        return _same_step("healthy", f"Healthy: {busy}{roof}, and {tried}.", state)
    known = f"no fix is known to help {state.step_words}; {_might_gain(doubtful, state)}"
    return _same_step("healthy", f"Healthy: {busy}{roof}, and {known}.", state)


def _as_recorded(state: State) -> str:
    """The busy share as recorded, where the recording made it visibly smaller."""
    if state.idle_share - state.program_idle < MIN_DIFFERENCE:
        return ""
    return f" without the profiler ({_percent(1 - state.idle_share)} as recorded)"


def _about_the_recording(state: State) -> Verdict:
    """What can be said where the steps do not stand for the recording."""
    few = (
        f"the steps that were found hold only {_percent(state.covered)} of the recording's GPU time; mark the steps "
        "(prof.step(), or --step-range NAME)"
    )
    exposed = None if state.errors else _exposed(state)
    # What fills the busy time of a device that is mostly idle does not bound the program.
    if exposed is not None and (state.comm if exposed == "comm" else state.copy) > 1 - state.busy:
        return _same_step(exposed, f"{_exposed_words(exposed, state)} in the whole recording; {few}.", state)
    return _same_step("unclear", f"Unclear: {_broken(state) if state.errors else few}.", state)


def _broken(state: State) -> str:
    codes = ", ".join(dict.fromkeys(state.errors))
    return f"the profile has an error ({codes}), so nothing is known of the program's steps; record it again"


def _exposed(state: State) -> Cause | None:
    """Whether exposed copies or exposed communication take most of the busy time."""
    if state.copy > MOST_EXPOSED * state.busy:
        return "memory" if state.device_copy > state.copy / 2 else "transfer"
    return "comm" if state.comm > MOST_EXPOSED * state.busy else None


def _exposed_words(cause: Cause, state: State) -> str:
    words, part = EXPOSED[cause], state.comm if cause == "comm" else state.copy
    return f"{words} {_percent(part / state.busy)} of the GPU's busy time"


def _idle(tried: str, state: State) -> Verdict | None:
    """The cause of most of the idle time, where that is a large part of the step."""
    unexplained = sum(state.idle[cause] for cause in UNEXPLAINED)
    if not state.waits_long and min(unexplained, state.certain_idle) < MOST_UNEXPLAINED:
        return None
    by_cause: dict[str, float] = {}
    for cause, length in state.idle.items():
        by_cause[PART_OF.get(cause, cause)] = by_cause.get(PART_OF.get(cause, cause), 0.0) + length
    del by_cause["profiler"]
    largest = max(by_cause, key=lambda cause: by_cause[cause])
    idle = f"the GPU is idle {_percent(state.idle_share)} of {state.noun.recorded}, {_percent(by_cause[largest])}"
    waited = next((cause for cause in WAITS if cause == largest), None)
    if waited is not None and state.waits_long:
        return _same_step(waited, f"{CAUSES[waited]}: {idle} for this reason, but {tried}.", state)
    if waited is not None:
        largest = max(UNEXPLAINED, key=lambda cause: by_cause[cause])
        idle = f"the GPU is idle {_percent(state.idle_share)} of {state.noun.recorded}, {_percent(by_cause[largest])}"
    missing = "record the CPU side too (ops, Python stacks or OS calls) to see what it waits for"
    return _same_step("unclear", f"Unclear: {idle} {MEANING[largest]}, and {tried}; {missing}.", state)


def _doubtful(findings: Sequence[Finding], state: State) -> Finding | None:
    """The fix that might gain most, where that is enough to say so; no plan starts with it, because it might gain
    nothing. A limit is no fix: while the GPU is busy, it is the roofline share that says how much is left."""
    open_ones = [
        one
        for one in findings
        if one.gain.expected >= MIN_LIKELY_GAIN and not (state.is_busy and all_fixes()[one.fix].is_limit)
    ]
    return max(open_ones, key=lambda one: one.gain.expected, default=None)


def _most_headroom(doubtful: Finding, state: State) -> float:
    """The doubtful gain from which on a step is not called healthy.

    A GPU that is busy all the time, with kernels near the roofline most of which the fix leaves alone, does its work:
    what the rest might gain is headroom, not a fault. Otherwise that holds for less than what libraries leave. A GPU
    that waits has a reason, and a fix that might remove it leaves open which.
    """
    if not state.is_busy:
        return MIN_LIKELY_GAIN
    is_near = (state.roofline_share or 0.0) >= NEAR_ROOFLINE and doubtful.device_share < MOST_OF_DEVICE
    return math.inf if is_near else MIN_GAIN["low"]


def _might_gain(doubtful: Finding, state: State) -> str:
    return f"{_would_gain(doubtful, state)}: {_to_be_certain(state)}"


def _would_gain(doubtful: Finding, state: State) -> str:
    words, gain = all_fixes()[doubtful.fix].subject(state.framework), doubtful.gain
    spread = f"range {speedup(gain.low).removesuffix('×')}–{speedup(gain.high)}"
    return f"{words} might gain {speedup(gain.expected)} ({spread})"


def _to_be_certain(state: State) -> str:
    if state.recorded_steps < 2:
        return "record several steps to tell"
    return "make the change and time both (warpline bench) to tell"


def _slow_host(findings: Sequence[Finding], state: State) -> str:
    """What is known where the host was slow, and nobody knows whether it always is."""
    likely = max(findings, key=lambda one: one.gain.low, default=None)
    always = f"; if it is always so, {_would_gain(likely, state)}" if likely else ""
    waits, calm = _percent(state.bare_idle_share), _percent(state.calm_idle_share)
    return (
        f"the host launched {state.slowness:.1f}× more slowly than the reference host, and the GPU waits {waits} of "
        f"{state.step_words}; if that was for the moment, it usually waits {calm}{always}; record "
        "it again, or with `warpline run`, which also times the step without a profiler"
    )


def _wrong_steps(state: State) -> str:
    return (
        f"{state.step_words} is shorter than the GPU work that belongs to it, so no gain can be told; "
        "mark the steps (prof.step(), or --step-range NAME)"
    )


def _tried(findings: Sequence[Finding]) -> str:
    best = max((finding.gain.expected for finding in findings), default=1.0)
    enough = "gains 5 % or more" if best < MIN_GAIN["high"] else "gains enough for its confidence"
    return f"no replayed fix {enough} (best {best:.2f}×)"


def _percent(share: float) -> str:
    """A share in percent; 0 % and 100 % only where it is nothing, or all."""
    digits = 1 if 0.0005 <= share < 0.005 or 0.995 <= share < 0.9995 else 0
    return f"{100 * share:.{digits}f} %"


def _same_step(cause: Cause, sentence: str, state: State) -> Verdict:
    step = round(state.step_ns)
    return Verdict(cause, None, sentence, Estimate(1.0, 1.0, 1.0), Estimate(step, step, step))
