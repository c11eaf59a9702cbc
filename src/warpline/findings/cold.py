"""The verdict on a recording of a cold start, whatever its warm steps could gain."""

from __future__ import annotations

from collections.abc import Sequence

from warpline.estimate import NOTICEABLE_GAIN
from warpline.findings.model import Finding, Verdict
from warpline.fixes.claim import CAUSES
from warpline.fixes.evidence import Evidence
from warpline.replay.ranges import Idle, ranges_of
from warpline.units import duration, speedup


def cold_start_verdict(findings: Sequence[Finding], evidence: Evidence) -> Verdict | None:
    """A cold start that takes most of the recorded steps' time, with few warm steps after it; None for others.

    Its gain is what a stopwatch over all recorded steps would show, cold ones included: their time over that of as many
    warm ones. All other gains count from the warm steps.
    """
    cold = next((finding for finding in findings if finding.cause == "cold_start"), None)
    if cold is None or not evidence.mostly_cold:
        return None
    sentence = f"{CAUSES[cold.cause]}: {cold.claim[0].lower()}{cold.claim[1:]}"
    set_aside = evidence.trace.cold
    if set_aside is None or cold.gain.expected >= NOTICEABLE_GAIN:
        return Verdict(cold.cause, cold.fix, sentence, cold.gain, cold.new_step_ns)
    question = evidence.question
    old = question.bare_step_ns.plus(set_aside.once_ns / set_aside.recorded)
    new = cold.new_step_ns.expected
    busy_ns = (1 - question.bare_idle_share) * question.bare_step_ns.expected
    idle = Idle(1 - busy_ns / old.expected, max(0.0, 1 - busy_ns / new))
    known = ranges_of([cold.fix], old, new, spread=evidence.ask(cold.fix).spread, idle=idle)
    gain = known.gain.rounded(4)
    recorded = (
        f" Without a cold start, all {set_aside.recorded} recorded steps together would take "
        f"{duration(set_aside.recorded * new)} instead of {duration(set_aside.recorded * old.expected)} "
        f"({speedup(gain.expected)})."
    )
    return Verdict(cold.cause, cold.fix, sentence + recorded, gain, cold.new_step_ns)
