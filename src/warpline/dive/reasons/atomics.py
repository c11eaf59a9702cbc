"""Atomics: many threads that update few addresses, one after the other."""

from __future__ import annotations

from warpline.dive.gains import MIN_UTILISATION, POOR_PEAK_SHARE, gain_of_less_work, in_order, with_overhead
from warpline.dive.metrics import WARP
from warpline.dive.model import FoundReason
from warpline.dive.reasons.bank_conflicts import MIN_SHARE as MIN_CONFLICTS
from warpline.dive.reasons.bank_conflicts import conflict_share, of_atomics, without_conflicts
from warpline.dive.reasons.base import Case, Reason

MIN_SHARE = 0.05
"""Of the global memory requests."""
MIN_HOT_SLICE = 0.25
"""Busy part of the L2 slice that serves most. Float atomics on one address keep it 33 % busy, integers 83 % (H200)."""


_WAVEFRONTS = ("load_wavefronts", "store_wavefronts", "atomic_wavefronts", "reduction_wavefronts")
_SECTORS = ("l2_read_sectors", "l2_write_sectors", "atomic_sectors", "reduction_sectors")


def hot_slice(case: Case) -> float | None:
    """How busy the busiest L2 slice was with atomics: the mean times how far it is above the mean."""
    most, mean = case.metrics.share("atomic_unit_max"), case.metrics.share("atomic_unit")
    if most is not None:
        return min(1.0, most)
    spread = case.metrics.ratio("l2_slice_max", "l2_slice_avg")
    return None if mean is None or spread is None else min(1.0, mean * max(spread, 1.0))


def _in_shared_memory(case: Case, requests: float) -> float | None:
    """How busy the same atomics would keep shared memory, at worst: all lanes on one word, a wavefront for each."""
    room = (case.metrics.get("cycles") or 0.0) * (case.metrics.get("sms") or 0.0)
    return WARP * requests / room if room else None


def look(case: Case) -> FoundReason | None:
    """Removes the atomics' part of the requests; or, in shared memory, their conflicts."""
    metrics = case.metrics
    conflicts = conflict_share(metrics)
    if conflicts is not None and conflicts >= MIN_CONFLICTS and of_atomics(metrics):
        return FoundReason(
            "atomics",
            f"Atomics on few words of shared memory: {100 * conflicts:.0f} % of its wavefronts repeat an access, most "
            "of them for atomics",
            without_conflicts(case, conflicts),
            "Give each warp or thread its own counters and add them at the end, or sum within the warp "
            "(__match_any_sync, __reduce_add_sync) before the atomic.",
            (metrics.name("shared_atomic_conflicts"), metrics.name("shared_wavefronts")),
        )
    atomics = metrics.total("atomic_requests", "reduction_requests")
    if not atomics:
        return None
    plain = metrics.total("load_requests", "store_requests") or 0.0
    share = atomics / (atomics + plain)
    busy = hot_slice(case)
    if share < MIN_SHARE or (busy is not None and busy < MIN_HOT_SLICE):
        return None
    left = {"l2": 1 - share, "l1": 1 - share, "lsu": 1 - share, "memory": 1 - share}
    of_l1 = metrics.ratio(("atomic_wavefronts", "reduction_wavefronts"), _WAVEFRONTS)
    of_l2 = metrics.ratio(("atomic_sectors", "reduction_sectors"), _SECTORS)
    left |= {} if of_l1 is None else {"l1": 1 - of_l1}
    left |= {} if of_l2 is None else {"l2": 1 - of_l2, "memory": 1 - of_l2}
    pace = None if busy is None else max(busy, case.utilisation.top)
    gain = gain_of_less_work(metrics, case.utilisation, left, pace=pace)
    in_shared = _in_shared_memory(case, atomics)
    if pace is not None and in_shared is not None:
        worst = max(case.utilisation.after(left), in_shared, MIN_UTILISATION)
        gain = in_order(with_overhead(metrics, min(pace, POOR_PEAK_SHARE) / worst), gain.expected, gain.high)
    slice_words = "" if busy is None else f"; the busiest L2 slice works on them {100 * busy:.0f} % of the time"
    return FoundReason(
        "atomics",
        f"Atomics on few addresses: {100 * share:.0f} % of the global memory requests are atomics{slice_words}",
        gain,
        "Sum within the warp (__reduce_add_sync) and the block (shared memory) first, then add once a block; or write "
        "partial results and sum them in a second pass; or sort by key.",
        (metrics.name("atomic_requests"), metrics.name("reduction_requests")),
    )


REASON = Reason(
    "atomics",
    "Do atomics on few addresses serialise?",
    ("atomic_requests", "reduction_requests"),
    "5 % of the global requests, and the busiest L2 slice at least 25 % busy with them; or most of the bank conflicts",
    look,
)
