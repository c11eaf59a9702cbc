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

    Its gain is the mean of the recorded steps, cold ones included, over a warm step: what a stopwatch over these steps
    would show. All other gains count from the warm steps.
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
    mean = (
        f" The {set_aside.recorded} recorded steps take {duration(old.expected)} on average: {speedup(gain.expected)}."
    )
    return Verdict(cold.cause, cold.fix, sentence + mean, gain, cold.new_step_ns)
