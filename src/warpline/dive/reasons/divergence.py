"""Branches: lanes of a warp that take different ways, one after the other."""

from __future__ import annotations

from warpline.dive.gains import gain_of_less_work
from warpline.dive.model import FoundReason
from warpline.dive.reasons.base import Case, Reason

MAX_THREADS = 24.0
"""Of 32. Above, full warps would gain at most a third of the issue slots, which is rarely the limit by itself."""
UNITS = ("issue", "fma", "alu", "xu", "fp64", "lsu", "control", "sm")


def look(case: Case) -> FoundReason | None:
    """Packs the active lanes into full warps."""
    metrics = case.metrics
    threads = metrics.get("threads_per_instruction")
    if threads is None or threads > MAX_THREADS:
        return None
    gain = gain_of_less_work(metrics, case.utilisation, dict.fromkeys(UNITS, threads / 32))
    return FoundReason(
        "divergence",
        f"Warps diverge: an instruction runs for {threads:.1f} of 32 threads on average",
        gain,
        "Let all lanes of a warp take the same way: sort or group the work by kind or length, move the branch to whole "
        "warps or blocks, or replace it by arithmetic.",
        (metrics.name("threads_per_instruction"),),
    )


REASON = Reason(
    "divergence",
    "Do all lanes of a warp take the same way?",
    ("threads_per_instruction",),
    "24 of 32 threads active on average; without divergence it is 32",
    look,
)
