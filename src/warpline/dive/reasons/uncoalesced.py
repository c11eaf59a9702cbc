"""Global memory: lanes of a warp that use only a part of each sector they move."""

from __future__ import annotations

from warpline.dive.gains import gain_of_less_work
from warpline.dive.kernel_metrics import KernelMetrics
from warpline.dive.metrics import BYTES_PER_SECTOR
from warpline.dive.model import FoundReason
from warpline.dive.reasons.base import Case, Reason

MAX_USE = 0.75
"""More than a quarter of the bytes moved for nothing. A warp that reads aligned neighbours uses all of them."""


LINE_BYTES = 128
"""A tag of L2 covers four sectors, and one request can ask for all of them."""


def _l2_left(metrics: KernelMetrics, requested: float, moved: float) -> float:
    """The part of the L2 work that is left: fewer bytes, and fewer requests, each for whole lines."""
    bytes_left = min(1.0, requested / moved)
    requests, tags, data = metrics.get("l2_requests"), metrics.share("l2_tags"), metrics.share("l2_data")
    if not requests or tags is None or data is None or max(tags, data) <= 0:
        return bytes_left
    requests_left = min(1.0, requested / LINE_BYTES / requests)
    return max(tags * requests_left, data * bytes_left) / max(tags, data)


def look(case: Case) -> FoundReason | None:
    """Removes the bytes that nobody asked for, at each level where they were moved."""
    metrics = case.metrics
    use, sectors = metrics.coalesced, metrics.total("load_sectors", "store_sectors")
    if use is None or not sectors or use > MAX_USE:
        return None
    requested = use * sectors * BYTES_PER_SECTOR
    shared, data = metrics.get("shared_wavefronts_pct") or 0.0, metrics.get("data_wavefronts")
    of_global = 1.0 if not data else max(0.0, 1 - shared / data)
    left = {"l1": 1 - of_global * (1 - use)}
    left |= {} if not metrics.dram_bytes else {"dram": min(1.0, requested / metrics.dram_bytes)}
    left |= {} if not metrics.l2_bytes else {"l2": _l2_left(metrics, requested, metrics.l2_bytes)}
    per_request = metrics.ratio(("load_sectors", "store_sectors"), ("load_requests", "store_requests")) or 0.0
    return FoundReason(
        "uncoalesced",
        f"Global memory accesses are not coalesced: a request of a warp touches {per_request:.1f} sectors of "
        f"{BYTES_PER_SECTOR} bytes on average, and threads use {100 * use:.0f} % of their bytes",
        gain_of_less_work(metrics, case.utilisation, left, adds=False),
        "Let neighbouring threads access neighbouring addresses: swap the loops or the thread index, store structures "
        "of arrays instead of arrays of structures, or stage a tile in shared memory to transpose it.",
        (metrics.name("load_bytes_per_sector"), metrics.name("load_sectors"), metrics.name("store_sectors")),
    )


REASON = Reason(
    "uncoalesced",
    "Do warps use the bytes of the sectors they move?",
    ("load_sectors", "load_bytes_per_sector"),
    "under 75 % of the bytes used; aligned neighbours use 100 %",
    look,
)
