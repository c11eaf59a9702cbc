"""Walks the tree for one kernel, and ends in one reason."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from warpline.dive import branches
from warpline.dive.gains import (
    MIN_EXPLAINING_GAIN,
    MIN_FLAW_GAIN,
    NO_GAIN,
    cap_of,
    headroom,
    is_short,
    not_below_a_launch,
)
from warpline.dive.kernel_metrics import KernelMetrics
from warpline.dive.metrics import METRICS, NO_WAIT, STALL_WORDS
from warpline.dive.model import NOT_KNOWN, FoundReason, HotLine, KernelDive
from warpline.dive.reasons import REASONS, Case
from warpline.dive.speed_of_light import bound_of, branch, idle_tensor_cores, limiter_of, pipes, roofline
from warpline.dive.utilisation import UNIT_WORDS, utilisation_of
from warpline.replay.costs.device import SMALLEST_KERNEL
from warpline.sources.ncu.model import InstructionCounters, KernelReport

NO_COUNTERS = "The report has no counters for this kernel (the speed of light is missing), so the reason is unknown."
SHORT = (
    " It is so short that launching it is a large part of its time: fuse it with its neighbours, batch it, or capture "
    "a CUDA graph first."
)
NO_FAULT = f" Seen too, but worth less than {MIN_FLAW_GAIN:.1f}×, which is no fault: {{}}."
FEW_WARPS = frozenset({"small_grid", "low_occupancy"})
"""Flaws that are why a kernel waits."""
PROFILE_AGAIN = "Profile it again with the counters: ncu --set full --import-source yes --clock-control none."
STALL_SAMPLES = "smsp__pcsamp_warps_issue_stalled_"
ALL_SAMPLES = "smsp__pcsamp_sample_count"
SAMPLED_STALLS = {"warpgroup_arrive": "gmma", "no_instructions": "no_instruction"}
"""The sampler's own words for two stalls."""
MAX_HOT_LINES = 3


def explain(kernel: KernelReport, needed_bytes: float | None = None) -> KernelDive:
    """The tree of one kernel; `needed_bytes` are those of its op, where a trace tells them."""
    metrics = KernelMetrics(kernel, needed_bytes)
    utilisation = utilisation_of(metrics)
    case = Case(metrics, utilisation, bound_of(utilisation))
    unit, busy = limiter_of(utilisation)
    idle = idle_tensor_cores(metrics, utilisation)
    tree = (
        branch(metrics, utilisation),
        *(() if idle is None else (idle,)),
        pipes(metrics, utilisation),
        branches.memory(metrics),
        branches.shared(metrics),
        branches.warps(metrics, utilisation),
        branches.instruction_mix(metrics),
        branches.launch(metrics),
    )
    missing = _missing(metrics)
    if not utilisation.known:
        return KernelDive(
            kernel, "unknown", "", None, NOT_KNOWN, NO_COUNTERS, NO_GAIN, 1.0, PROFILE_AGAIN, tree, missing=missing
        )
    chosen = reason_of(case)
    first = chosen.first
    longest = metrics.duration_ns or math.inf
    return KernelDive(
        kernel=kernel,
        bound=case.bound,
        limiter=UNIT_WORDS.get(unit, unit),
        limiter_pct=None if busy is None else 100 * busy,
        reason=first.reason,
        sentence=first.sentence + "." + (NO_FAULT.format(", ".join(chosen.small)) if chosen.small else ""),
        gain=first.gain,
        cap=max(min(cap_of(utilisation), longest / SMALLEST_KERNEL.low), first.gain.high),
        how=first.how + (SHORT if is_short(metrics.duration_ns) else ""),
        tree=tree,
        evidence=first.evidence,
        also=chosen.others,
        roofline=roofline(metrics, utilisation),
        hot_lines=hot_lines(kernel),
        missing=missing,
    )


class ChosenReason(Struct, frozen=True):
    """Why a kernel takes its time."""

    first: FoundReason
    """The flaw that gains most, if any gains enough, else what limits."""
    others: tuple[FoundReason, ...]
    """The other flaws."""
    small: tuple[str, ...]
    """Flaws that gain too little to be a fault."""


def reason_of(case: Case) -> ChosenReason:
    """One reason of a kernel, and what else is true of it."""
    found: dict[str, list[FoundReason]] = {"flaw": [], "fallback": [], "end": []}
    for reason in REASONS:
        one = reason.look(case)
        if one is not None:
            bounded = not_below_a_launch(one.gain, case.metrics.duration_ns)
            found[reason.rank].append(replace(one, gain=bounded))
    flaws = sorted(
        (one for one in found["flaw"] if one.gain.expected >= MIN_FLAW_GAIN), key=lambda one: -one.gain.expected
    )
    small = tuple(one.reason for one in found["flaw"] if one.gain.expected < MIN_FLAW_GAIN)
    waits = [one for one in found["fallback"] if one.reason == "latency"]
    if flaws and waits and _is_minor(flaws[0], waiting_gain(case)):
        return ChosenReason(waits[0], tuple(flaws), small)
    chosen = [*flaws, *found["fallback"], *found["end"]]
    return ChosenReason(chosen[0], tuple(chosen[1 : len(flaws)] if flaws else ()), small)


def _is_minor(flaw: FoundReason, without_waits: float) -> bool:
    """Whether a flaw of a kernel that waits explains less of its time than the waits do."""
    return flaw.reason not in FEW_WARPS and flaw.gain.expected < min(MIN_EXPLAINING_GAIN, without_waits)


def waiting_gain(case: Case) -> float:
    """What a kernel without its waits is expected to gain, while its SMs are active: unequal ends are no waits."""
    return headroom(case.utilisation, active=case.metrics.activity or 1.0).expected


def _missing(metrics: KernelMetrics) -> tuple[str, ...]:
    """Sections that would answer questions that are open in this report."""
    open_keys = {key for reason in REASONS for key in reason.needs if metrics.get(key) is None}
    if not metrics.stalls:
        open_keys.add("warp_latency")
    return tuple(sorted({METRICS[key].section for key in open_keys}))


def hot_lines(kernel: KernelReport) -> tuple[HotLine, ...]:
    """The source lines where warps wait most, by the samples of the source counters, longest first; empty where the
    report has no samples or no lines."""
    if kernel.source is None:
        return ()
    stalls: dict[tuple[str, int], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    worst: dict[tuple[str, int], tuple[float, InstructionCounters]] = {}
    for instruction in kernel.source.instructions:
        at = (instruction.file, instruction.line)
        here = _by_stall(instruction.counters)
        total = sum(here.values()) or instruction.counters.get(ALL_SAMPLES, 0.0)
        if not instruction.line or not total:
            continue
        for word, value in (here or {"misc": total}).items():
            stalls[at][word] += value
        if at not in worst or total > worst[at][0]:
            worst[at] = (total, instruction)
    counters = [instruction.counters for instruction in kernel.source.instructions]
    whole = sum(sum(_by_stall(some).values()) or some.get(ALL_SAMPLES, 0.0) for some in counters)
    order = sorted(stalls, key=lambda at: -sum(stalls[at].values()))
    found = []
    for file, line in order[:MAX_HOT_LINES]:
        by_word = stalls[file, line]
        waits = {key: value for key, value in by_word.items() if key not in NO_WAIT} or by_word
        word = max(waits, key=lambda key: waits[key])
        text = _line(kernel.source.files.get(file, ""), line)
        share = sum(by_word.values()) / whole
        found.append(HotLine(file, line, text, share, STALL_WORDS.get(word, word), worst[file, line][1].sass))
    return tuple(found)


def _by_stall(counters: Mapping[str, float]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, value in counters.items():
        if name.startswith(STALL_SAMPLES) and not name.endswith("_not_issued"):
            word = name.removeprefix(STALL_SAMPLES)
            found[SAMPLED_STALLS.get(word, word)] = value
    return found


def _line(text: str, line: int) -> str:
    lines = text.splitlines()
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""
