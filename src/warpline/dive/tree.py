"""Walks the tree for one kernel, and ends in one reason."""

from __future__ import annotations

import math

from msgspec.structs import replace

from warpline.dive import branches
from warpline.dive.gains import MINOR, NO_GAIN, WORTH, cap_of, headroom, is_short, not_below_a_launch
from warpline.dive.hot_lines import hot_lines
from warpline.dive.measured import Measured
from warpline.dive.metrics import METRICS
from warpline.dive.model import NOT_KNOWN, Found, KernelDive
from warpline.dive.reasons import REASONS, Case
from warpline.dive.speed_of_light import bound_of, branch, limiter_of, pipes, roofline
from warpline.dive.utilisation import WORDS, load_of
from warpline.replay.costs.device import SMALLEST_KERNEL
from warpline.sources.ncu.model import KernelReport

NO_COUNTERS = (
    "The report has no counters for this kernel (the speed of light is missing), so that the reason cannot be told."
)
SHORT = (
    " It is so short that launching it is a large part of its time: fuse it with its neighbours, batch it, or capture "
    "a CUDA graph first."
)
NO_FAULT = f" Seen too, but worth less than {WORTH:.1f}×, which is no fault: {{}}."
FEW_WARPS = frozenset({"small_grid", "low_occupancy"})
"""Flaws that are why a kernel waits."""
PROFILE_AGAIN = "Profile it again with the counters: ncu --set full --import-source yes --clock-control none."


def explain(kernel: KernelReport, needed_bytes: float | None = None) -> KernelDive:
    """The tree of one kernel; `needed_bytes` are those of its op, where a trace tells them."""
    measured = Measured(kernel, needed_bytes)
    load = load_of(measured)
    case = Case(measured, load, bound_of(load))
    unit, busy = limiter_of(load)
    tree = (
        branch(measured, load),
        pipes(measured, load),
        branches.memory(measured),
        branches.shared(measured),
        branches.warps(measured, load),
        branches.instruction_mix(measured),
        branches.launch(measured),
    )
    missing = _missing(measured)
    if not load.known:
        return KernelDive(
            kernel, "unknown", "", None, NOT_KNOWN, NO_COUNTERS, NO_GAIN, 1.0, PROFILE_AGAIN, tree, missing=missing
        )
    first, others, small = reason_of(case)
    longest = measured.duration_ns or math.inf
    return KernelDive(
        kernel=kernel,
        bound=case.bound,
        limiter=WORDS.get(unit, unit),
        limiter_pct=None if busy is None else 100 * busy,
        reason=first.reason,
        sentence=first.sentence + "." + (NO_FAULT.format(", ".join(small)) if small else ""),
        gain=first.gain,
        cap=max(min(cap_of(load), longest / SMALLEST_KERNEL.low), first.gain.high),
        how=first.how + (SHORT if is_short(measured.duration_ns) else ""),
        tree=tree,
        evidence=first.evidence,
        also=others,
        roofline=roofline(measured, load),
        hot_lines=hot_lines(kernel),
        missing=missing,
    )


def reason_of(case: Case) -> tuple[Found, tuple[Found, ...], tuple[str, ...]]:
    """The flaw that gains most, if any gains enough, else what limits; the others that are true; and those that are
    too, but gain too little to be a fault.
    """
    found: dict[str, list[Found]] = {"flaw": [], "fallback": [], "end": []}
    for reason in REASONS:
        one = reason.look(case)
        if one is not None:
            bounded = not_below_a_launch(one.gain, case.measured.duration_ns)
            found[reason.rank].append(replace(one, gain=bounded))
    flaws = sorted((one for one in found["flaw"] if one.gain.expected >= WORTH), key=lambda one: -one.gain.expected)
    small = tuple(one.reason for one in found["flaw"] if one.gain.expected < WORTH)
    waits = [one for one in found["fallback"] if one.reason == "latency"]
    if flaws and waits and _is_minor(flaws[0], waiting_gain(case)):
        return waits[0], tuple(flaws), small
    chosen = [*flaws, *found["fallback"], *found["end"]]
    return chosen[0], tuple(chosen[1 : len(flaws)] if flaws else ()), small


def _is_minor(flaw: Found, without_waits: float) -> bool:
    """Whether a flaw of a kernel that waits explains less of its time than the waits do."""
    return flaw.reason not in FEW_WARPS and flaw.gain.expected < min(MINOR, without_waits)


def waiting_gain(case: Case) -> float:
    """What a kernel without its waits is expected to gain, while its SMs are active: unequal ends are no waits."""
    return headroom(case.load, active=case.measured.activity or 1.0).expected


def _missing(measured: Measured) -> tuple[str, ...]:
    """Sections that would answer questions that are open in this report."""
    open_keys = {key for reason in REASONS for key in reason.needs if measured.get(key) is None}
    if not measured.stalls:
        open_keys.add("warp_latency")
    return tuple(sorted({METRICS[key].section for key in open_keys}))
