"""Shared memory: lanes of a warp that address the same bank one after the other."""

from __future__ import annotations

from warpline.dive.gains import gain_of_less_work
from warpline.dive.kernel_metrics import KernelMetrics
from warpline.dive.model import FoundReason
from warpline.dive.reasons.base import Case, Reason
from warpline.estimate import Estimate

MIN_SHARE = 0.2
"""A fifth of the shared-memory wavefronts. Below, removing all of them cannot gain more than the time's own spread."""


def conflict_share(metrics: KernelMetrics) -> float | None:
    """Bank conflicts among the wavefronts of shared memory."""
    return metrics.ratio("shared_conflicts", "shared_wavefronts")


def by_addresses(metrics: KernelMetrics) -> float | None:
    """The conflicts that other addresses would avoid. The counter also has those with copies that use the banks."""
    counted, wavefronts = conflict_share(metrics), metrics.get("shared_wavefronts")
    needed, ideal = metrics.get("shared_needed"), metrics.get("shared_ideal")
    if counted is None or not wavefronts or needed is None or ideal is None:
        return counted
    return min(counted, max(0.0, needed - ideal) / wavefronts)


def of_atomics(metrics: KernelMetrics) -> bool:
    """Whether most conflicts are atomics on the same word: no padding removes them."""
    part = metrics.ratio("shared_atomic_conflicts", "shared_conflicts")
    return part is not None and part > 0.5


def without_conflicts(case: Case, conflicts: float) -> Estimate:
    """The gain without these wavefronts."""
    of_all = case.metrics.ratio("shared_wavefronts_pct", "data_wavefronts")
    left = 1 - min(conflicts, 1.0) * min(1.0 if of_all is None else of_all, 1.0)
    return gain_of_less_work(case.metrics, case.utilisation, {"l1": left, "lsu": left, "memory": left}, adds=False)


def look(case: Case) -> FoundReason | None:
    """Removes the wavefronts that are conflicts."""
    metrics = case.metrics
    conflicts = by_addresses(metrics)
    if conflicts is None or conflicts < MIN_SHARE or of_atomics(metrics):
        return None
    ways = 1 / max(1 - min(conflicts, 0.999), 1 / 32)
    return FoundReason(
        "bank_conflicts",
        f"Shared memory has bank conflicts: {100 * conflicts:.0f} % of its wavefronts repeat an access, "
        f"about {ways:.1f} wavefronts where one would do",
        without_conflicts(case, conflicts),
        "Pad the rows of the shared array by one element (tile[32][33]), or swizzle the index, so that the 32 lanes "
        "of a warp hit 32 banks.",
        (metrics.name("shared_conflicts"), metrics.name("shared_wavefronts")),
    )


REASON = Reason(
    "bank_conflicts",
    "Do the lanes of a warp hit different banks of shared memory?",
    ("shared_conflicts", "shared_wavefronts"),
    "20 % of the wavefronts are conflicts that other addresses avoid; without conflicts it is 0",
    look,
)
