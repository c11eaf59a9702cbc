"""The verdict: the cause of the largest replayed gain, in one sentence; healthy if no fix gains 5 %."""

from __future__ import annotations

from warpline.estimate import Estimate
from warpline.findings.model import Finding, Verdict
from warpline.fixes.claim import CAUSES, Cause
from warpline.fixes.evidence import Evidence
from warpline.fixes.registry import all_fixes, rules
from warpline.units import duration, speedup

LEAST_GAIN = 1.05
LEAST_DOUBTFUL_GAIN = 1.15
"""Minimum gain of a finding whose confidence is not high."""
MOST_IDLE = 0.3
"""A step with a larger idle share is not healthy, whatever the replay predicts."""
WAITS: tuple[Cause, ...] = ("dispatch", "sync", "transfer", "input", "memory", "comm", "cold_start")
SPECIFIC_ENOUGH = 0.33
"""A specific finding is preferred to a general fix if it saves at least this share of the time: a graph or a compiler
removes nearly all host time, whatever the fault is. In 16 recorded profiles a specific finding is worth fixing and
saves less than a general fix, 0.37 to 0.96 of it; the planted fault is the specific one in all of them."""
HALF = 0.5
"""A finding that saves this share of the roofline gain, or of the gain from removing waits, is named instead."""
SURE_ENOUGH = 0.8
"""A finding of high confidence is preferred to another if it saves at least this share of the time."""
LEAST_ROOFLINE_GAIN = 1.6
"""Kernels below the roofline are a fault only if they are far below: libraries reach 60 to 95 % of it."""
LEAST_FUSION_GAIN = 1.3
"""Missing fusion is a fault only above this gain: in 28 recorded healthy programs fusion is worth
up to 1.2×, and in the eleven programs with this fault at least 3.3×."""


def verdict_of(findings: list[Finding], evidence: Evidence) -> Verdict:
    """The finding to fix first, or healthy; `findings` are sorted by gain, the largest first."""
    chosen = _chosen(findings, evidence.idle["input"] / evidence.steps)
    if chosen is None:
        return _without_a_fix(findings, evidence)
    gain, after, before = chosen.gain, chosen.new_step_ns, duration(evidence.step_ns)
    claim = chosen.claim[0].lower() + chosen.claim[1:].rstrip(".")
    known = any(text in claim for text in (f"{before} step", f"step of {before}"))
    expected, low, high = (speedup(value).removesuffix("×") for value in (gain.expected, gain.low, gain.high))
    spread = f", range {low}–{high}×" if low != high else ""
    sentence = (
        f"{CAUSES[chosen.cause]}: {claim}; {all_fixes()[chosen.fix].words} would bring the step "
        f"{'' if known else f'from {before} '}to {duration(after.expected)} ({expected}×{spread})."
    )
    return Verdict(chosen.cause, chosen.fix, sentence, gain, after)


def _without_a_fix(findings: list[Finding], evidence: Evidence) -> Verdict:
    """Healthy if the device is busy; else the cause of its idle time, although no replayed fix would help."""
    step = round(evidence.step_ns)
    best = max((finding.gain.expected for finding in findings), default=1.0)
    same = Estimate(1.0, 1.0, 1.0), Estimate(step, step, step)
    waited = max(WAITS, key=lambda cause: evidence.idle[cause])
    doubtful = "gains 5 % with high confidence" if best < LEAST_DOUBTFUL_GAIN else "gains enough to be a fault"
    sure = "gains 5 % or more" if best < LEAST_GAIN else doubtful
    tried = f"no replayed fix {sure} (best {best:.2f}×) on a step of {duration(step)}."
    idle_share = min(evidence.idle_share, evidence.bare_idle_share)
    if idle_share < MOST_IDLE or not evidence.idle[waited]:
        busy = f"the GPU is busy {100 * (1 - idle_share):.0f} % of the time"
        share = evidence.roofline_share
        roof = "" if share is None else f", its kernels reach {100 * share:.0f} % of the roofline"
        return Verdict("healthy", None, f"Healthy: {busy}{roof}, and {tried}", *same)
    part = evidence.idle[waited] / evidence.trace.window.length_ns
    idle = f"the GPU is idle {100 * evidence.idle_share:.0f} % of the time, {100 * part:.0f} % for this reason"
    sentence = f"{CAUSES[waited]}: {idle}, but {tried}"
    return Verdict(waited, None, sentence, *same)


def _chosen(findings: list[Finding], loading_ns: float) -> Finding | None:
    """The largest gain; general fixes give way to specific ones, and low confidence to high, if those save enough.

    A wait gives way to loading if the device is idle during loading: a program that reads its loss at the end of
    every step could load the next batch meanwhile.
    """
    known = {rule.name: rule for rule in rules()}
    bound = [finding for finding in findings if finding.fix == "at_roofline"]
    worth = [finding for finding in findings if finding not in bound and _is_worth_it(finding)]
    # The roofline does not explain why a kernel is slow, so it is named only if no finding saves half as much.
    far = [finding for finding in bound if finding.gain.expected >= LEAST_ROOFLINE_GAIN]
    if far and not any(one.lost_ns >= HALF * far[0].lost_ns for one in worth):
        return far[0]
    if not worth:
        return None
    best = worth[0]
    if not known[best.rule].specific:
        best = _instead([one for one in worth if known[one.rule].specific], best, SPECIFIC_ENOUGH)
    if best.confidence != "high" and not known[best.rule].specific:
        best = _instead([one for one in worth if one.confidence == "high"], best, SURE_ENOUGH)
    if best.cause == "sync" and loading_ns >= HALF * best.lost_ns:
        best = _instead([one for one in worth if one.cause == "input"], best, HALF)
    return best


def _is_worth_it(finding: Finding) -> bool:
    least = LEAST_GAIN if finding.confidence == "high" else LEAST_DOUBTFUL_GAIN
    if finding.cause == "kernel" and finding.fix == "torch_compile":
        least = LEAST_FUSION_GAIN
    return finding.gain.expected >= least


def _instead(others: list[Finding], best: Finding, share: float) -> Finding:
    """The first of the others that saves this share of the best one's time, else the best one."""
    return next((one for one in others if one.lost_ns >= share * best.lost_ns), best)
