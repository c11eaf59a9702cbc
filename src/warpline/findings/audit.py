"""The audit: holds every answer against the trace, and against itself, before it is shown.

What the trace contradicts is capped, downgraded or withdrawn, and recorded in `audit` with a code, the finding and what
was wrong: docs/plan.md lists the codes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from warpline.analyses.breakdown import DeviceTime
from warpline.analyses.idle.gaps import Gaps
from warpline.estimate import NOTICEABLE_GAIN, Estimate
from warpline.findings.confidence import one_less
from warpline.findings.model import Finding
from warpline.findings.state import State
from warpline.fixes.evidence import Evidence
from warpline.fixes.registry import all_fixes
from warpline.replay.bounds import DeviceWork, bounded
from warpline.units import duration, speedup

TOLERANCE = 0.02
"""Differences up to this share are rounding and the spread between steps."""
FAR_OFF = 0.5
"""A step shorter than this share of what the device must still do says nothing: the finding is withdrawn."""


class Objection(Struct, frozen=True):
    """Something in an answer that the trace contradicts."""

    code: str
    finding: str | None
    """The finding's rule; None for the answer as a whole."""
    message: str


def audit_finding(finding: Finding, evidence: Evidence, work: DeviceWork) -> tuple[Finding | None, list[Objection]]:
    """The finding as far as it holds, and what was wrong with it."""
    held: Finding | None = finding
    objections = []
    for check in (_in_order, _above_device_work, _as_old_over_new):
        if held is not None:
            held, objection = check(held, evidence, work)
            objections += [objection] if objection else []
    return held, objections


Held = tuple[Finding | None, Objection | None]


def audit_step(evidence: Evidence, work: DeviceWork) -> Iterable[Objection]:
    """What is wrong with the step that all gains are of."""
    step = evidence.bare.step_ns
    if work.busy_ns > (1 + TOLERANCE) * step.high:
        yield Objection(
            "step-below-device-work",
            None,
            f"a step of {duration(step.expected)} is shorter than the {duration(work.busy_ns)} that a device is busy "
            "in it: the steps are not those of the GPU work",
        )


def _in_order(finding: Finding, evidence: Evidence, work: DeviceWork) -> Held:
    """Low, expected and high are in this order."""
    gain, new = (_ordered(estimate) for estimate in (finding.gain, finding.new_step_ns))
    if (gain, new) == (finding.gain, finding.new_step_ns):
        return finding, None
    message = "low, expected and high were not in this order; the range now covers all three"
    return replace(finding, gain=gain, new_step_ns=new), Objection("range-out-of-order", finding.rule, message)


def _ordered(estimate: Estimate) -> Estimate:
    every = (estimate.low, estimate.expected, estimate.high)
    return Estimate(min(every), estimate.expected, max(every))


def _above_device_work(finding: Finding, evidence: Evidence, work: DeviceWork) -> Held:
    """The step is not shorter than what the busiest device must still do: what the fix leaves alone, plus the roofline
    floor of what it changes. So no fix saves more than the time of what it touches and the idle time."""
    same_work = all_fixes()[finding.fix].same_work
    least, prediction = work.least_after(evidence.trial(finding.fix), same_work=same_work), evidence.ask(finding.fix)
    held = bounded(prediction, least)
    said, new = finding.new_step_ns, held.new_step_ns
    capped = replace(
        finding,
        new_step_ns=new.rounded(),
        gain=held.gain.rounded(4),
        lost_ns=max(0, round(held.old_step_ns.expected - new.expected)),
    )
    if said.expected < FAR_OFF * least.expected_ns:
        return None, Objection(
            "below-device-work", finding.rule, f"withdrawn: {_too_short(finding, least.expected_ns)}"
        )
    if said.expected < (1 - TOLERANCE) * least.expected_ns:
        gain = f"the gain is {speedup(capped.gain.expected)}, not {speedup(finding.gain.expected)}"
        message = f"{_too_short(finding, least.expected_ns)}; {gain}"
        lower = replace(capped, confidence=one_less(finding.confidence))
        kept = lower if capped.gain.expected >= NOTICEABLE_GAIN else None
        return kept, Objection("below-device-work", finding.rule, message)
    if said.low < (1 - TOLERANCE) * least.lowest_ns:
        message = (
            f"the range of {finding.fix} began at {duration(said.low)}, but a device must still work at least "
            f"{duration(least.lowest_ns)} a step: it begins there"
        )
        return capped, Objection("range-below-device-work", finding.rule, message)
    return (finding if held is prediction else capped), None


def _too_short(finding: Finding, least_ns: float) -> str:
    return (
        f"{finding.fix} cannot bring the step to {duration(finding.new_step_ns.expected)}: "
        f"a device must still work {duration(least_ns)} a step"
    )


def _as_old_over_new(finding: Finding, evidence: Evidence, work: DeviceWork) -> Held:
    """The gain is the step without a profiler over the new step."""
    gain = evidence.step_ns / max(finding.new_step_ns.expected, 1)
    # A prediction of many hours over a step of milliseconds rounds to no gain at all.
    if abs(gain - finding.gain.expected) <= TOLERANCE * finding.gain.expected:
        return finding, None
    message = (
        f"a step of {duration(evidence.step_ns)} over one of {duration(finding.new_step_ns.expected)} is "
        f"{speedup(gain)}, not {speedup(finding.gain.expected)}"
    )
    right = _ordered(Estimate(finding.gain.low, round(gain, 4), finding.gain.high))
    lower = replace(finding, gain=right, confidence=one_less(finding.confidence))
    return lower, Objection("gain-not-old-over-new", finding.rule, message)


def held_by_steps(finding: Finding, state: State) -> Finding | None:
    """The finding: not certain where the steps do not stand for the recording, and none of a graph capture or of a
    single GPU operation."""
    if state.is_capture or state.is_one_operation:
        return None
    return finding if state.is_covered else replace(finding, confidence="low")


def audit_coverage(state: State) -> Iterable[Objection]:
    """What is wrong with the steps: how little of the recording they say."""
    if state.is_capture:
        message = "launches that are captured into a graph do not run: nothing is known of the steps that replay it"
        yield Objection("recording-of-a-capture", None, message)
    elif state.is_one_operation:
        message = "the recording has a single GPU operation: nothing is known of what a step waits for"
        yield Objection("single-operation", None, message)
    elif not state.is_covered:
        message = (
            f"the steps hold only {100 * state.covered:.0f} % of the recording's GPU time, so that gains on them say "
            "little about the program: no plan, and low confidence"
        )
        yield Objection("steps-hold-little-work", None, message)


def audit_accounting(devices: Sequence[DeviceTime], gaps: Sequence[Gaps]) -> list[Objection]:
    """Busy and idle time sum to the window, their parts to them."""
    found = []
    for device, idle in zip(devices, gaps, strict=True):
        parts = device.compute_ns + device.copy_ns + device.comm_ns + device.memset_ns
        sums = {
            "busy and idle time": (device.busy_ns + device.idle_ns, device.window_ns),
            "the parts of the busy time": (parts, device.busy_ns),
            "the causes of the idle time": (sum(idle.totals().values()), device.idle_ns),
        }
        found += [
            Objection("sums-disagree", None, f"GPU {device.device}: {what} sum to {total} ns, not {whole} ns")
            for what, (total, whole) in sums.items()
            if total != whole
        ]
    return found
