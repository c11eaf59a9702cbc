"""Why a verdict is `unclear`. Each function gives one reason, or None where it does not hold; the first is said."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from warpline.findings.distortion import LEAST_DISTORTION
from warpline.findings.limits import MIN_GAIN, Limits
from warpline.findings.state import HalfEmpty, State, percent
from warpline.fixes.words import StepNoun
from warpline.units import duration, several, uncapitalised

A_TENTH = 1 - 1 / MIN_GAIN
"""Share of a step that gives a tenth when it is gone."""


def doubt_of_verdict(named: Sequence[str], limits: Limits, state: State) -> str | None:
    """What makes it impossible to say that the step waits for these causes, or, without any, that it is healthy."""
    doubt = why_unclear(state) or _of_slow_host(limits, state)
    if doubt is not None:
        return doubt
    if named:
        return _of_unknown_delays(named, limits, state)
    return _of_unknown_host(limits, state) or _of_health(state)


def why_unclear(state: State) -> str | None:
    """Why nothing can be said of the program's steps, or of a gain; None where something can."""
    return obstacle(state) or _of_replay(state)


def obstacle(state: State) -> str | None:
    """Why nothing can be said of the program's steps; None where something can."""
    return _first((_of_errors, _of_capture, _of_few_steps, _of_one_operation, _of_short_steps), state)


def _first(doubts: Sequence[Callable[[State], str | None]], state: State) -> str | None:
    return next((said for doubt in doubts if (said := doubt(state)) is not None), None)


# Of the recording.


def _of_errors(state: State) -> str | None:
    if not state.errors:
        return None
    codes = ", ".join(dict.fromkeys(state.errors))
    return f"the profile has an error ({codes}), so nothing is known of the program's steps; record it again"


def _of_capture(state: State) -> str | None:
    if not state.is_capture:
        return None
    of = f" ({percent(state.captured)} of it)" if state.captured < 1 else ""
    return (
        f"the recording is of a graph capture{of}: launches go into the graph and do not run; record the steps "
        "that replay it"
    )


def _of_few_steps(state: State) -> str | None:
    if state.is_covered:
        return None
    return (
        f"the steps that were found hold only {percent(state.covered)} of the recording's GPU time; mark the "
        "steps (prof.step(), or --step-range NAME)"
    )


def _of_one_operation(state: State) -> str | None:
    return "the recording has a single GPU operation; record several steps" if state.is_one_operation else None


def _of_short_steps(state: State) -> str | None:
    if state.fits_devices:
        return None
    return (
        f"a step of {duration(state.step_ns)} is shorter than the GPU work that belongs to it, so no gain can "
        "be told; mark the steps (prof.step(), or --step-range NAME)"
    )


# Of the replay.


def _of_replay(state: State) -> str | None:
    misses = misses_recording(state.replay_error, state.noun)
    if misses is None:
        return None
    missing = (
        f"{percent(state.unlaunched_share)} of the GPU's work was launched before the recording began, or its launches "
        "were lost; start to record earlier"
        if state.unlaunched_share >= state.replay_error
        else "calls or work wait for something that is not in the recording, such as another process on this GPU; "
        "record every process that uses it"
    )
    return f"{misses}: {missing}"


def misses_recording(replay_error: float, noun: StepNoun) -> str | None:
    """What is said where the replay does not even give the recording as it is; None where it does."""
    if replay_error <= MIN_GAIN - 1:
        return None
    return f"the replay misses {noun.one('the recorded')} by {percent(replay_error)}, so no gain can be told"


def _of_slow_host(limits: Limits, state: State) -> str | None:
    """Nobody knows whether the host is always so slow."""
    if not limits.is_of_slow_host:
        return None
    now, calm = uncapitalised(state.name_of(limits.named[0])), limits.first_on_calm_host
    otherwise = "nothing gives a tenth" if calm is None else f"it is {uncapitalised(state.name_of(calm.cause))}"
    return (
        f"the host launched {state.slowness:.1f}× more slowly than the reference host. If it is always so, "
        f"{state.the_step} of {duration(state.step_ns)} is {now}; if not, {otherwise}. "
        "Record it again, or with `warpline run`, which also times the step without a profiler"
    )


def _of_unknown_delays(named: Sequence[str], limits: Limits, state: State) -> str | None:
    """Delays without a recorded reason come first."""
    if named[0] != "unknown":
        return None
    after_ns = limits.row("unknown").step_ns.expected
    would_take = f"{state.the_step} would take {duration(after_ns)} instead of {duration(state.step_ns)}"
    if 2 * state.unrecorded_ns >= state.step_ns - after_ns:
        return (
            f"for {duration(state.unrecorded_ns)} of {state.the_step}, work is launched and does not start, on a GPU "
            f"without recorded work: it waits for what is not in the recording; without that, {would_take}. Start to "
            "record earlier, and record every process that uses this GPU"
        )
    more = _record_more(state)
    to_see = f"{more} to see what it waits for" if more else ""
    return f"delays without a recorded reason come first; without them, {would_take}{to_see}"


def _record_more(state: State) -> str:
    """What of the CPU's side to record too; empty where nothing of it is missing."""
    if not state.lacks:
        return ""
    *others, last = state.lacks
    kinds = f"{', '.join(others)} or {last}" if others else last
    return f". Record the CPU side too ({kinds})"


# Of a step without a cause.


def _of_unknown_host(limits: Limits, state: State) -> str | None:
    """A step that seems bound by its kernels, whose host may be no faster than they are."""
    if not limits.hangs_on_host or state.distortion < LEAST_DISTORTION:
        return None
    step = limits.row("kernel").step_ns
    return (
        f"recording made {state.the_step} {state.distortion:.1f}× as long, so that how fast the host is without "
        f"it is known only roughly: with the fixes of kernels, {state.the_step} of {duration(state.step_ns)} would "
        f"take {duration(step.low)} to {duration(step.high)}. Record it again, or measure one of them (warpline try)"
    )


def _of_health(state: State) -> str | None:
    doubt = _first((_of_half_empty_grids, _of_unknown_kernels, _of_idle_time), state)
    return None if doubt is None else f"the GPU is {state.busy}, but {doubt}"


def _of_half_empty_grids(state: State) -> str | None:
    empty = state.half_empty
    if empty is None:
        return None
    return (
        f"{duration(empty.time_ns)} of it with kernels whose grids can use half of the device at most (the "
        f"longest: {several(empty.blocks, 'block')} of {several(empty.threads, 'thread')}, for {empty.sms} "
        f"multiprocessors). {_fill(empty)}; the timeline does not show what that gives"
    )


def _fill(empty: HalfEmpty) -> str:
    """What a grid lacks: blocks, threads in each, or both."""
    if empty.blocks >= empty.sms:
        return f"Use blocks of whole warps ({empty.warp_size} threads)"
    return "Launch more blocks" if empty.threads >= empty.warp_size else "Launch more blocks, of whole warps"


def _of_unknown_kernels(state: State) -> str | None:
    if state.graph_bars_ns <= A_TENTH * state.step_ns:
        return None
    return (
        f"{duration(state.graph_bars_ns)} of it with CUDA graphs that are recorded as one event each, so that "
        "their kernels are not known. Record with nsys profile --cuda-graph-trace=node"
    )


def _of_idle_time(state: State) -> str | None:
    if state.unexplained_ns <= A_TENTH * state.step_ns:
        return None
    moves = (
        f": unified memory moves page by page ({several(state.migrations, 'migration')}) when the CPU or the GPU "
        "touches it. Move it ahead (cudaMemPrefetchAsync), or copy it"
        if state.migrations
        else _record_more(state)
    )
    return f"for {duration(state.unexplained_ns)} it is idle without a recorded reason{moves}"
