"""The verdict on a recording of a cold start, whatever its warm steps could gain."""

from __future__ import annotations

from collections.abc import Sequence

from warpline.findings.model import Finding, Verdict
from warpline.fixes.claim import CAUSES
from warpline.fixes.evidence import Evidence


def cold_start_verdict(findings: Sequence[Finding], evidence: Evidence) -> Verdict | None:
    """A cold start that takes most of the recorded steps' time, with few warm steps after it; None for others.

    It promises no gain: the step time is that of the warm steps, and the rest is lost once.
    """
    cold = next((finding for finding in findings if finding.cause == "cold_start"), None)
    if cold is None or not evidence.mostly_cold:
        return None
    sentence = f"{CAUSES[cold.cause]}: {cold.claim[0].lower()}{cold.claim[1:]}"
    return Verdict(cold.cause, cold.fix, sentence, cold.gain, cold.new_step_ns)
