"""Occupancy: so few warps fit on an SM that they cannot hide the latency of memory."""

from __future__ import annotations

from warpline.dive.gains import gain_of_more_parallelism
from warpline.dive.kernel_metrics import KernelMetrics
from warpline.dive.model import FoundReason
from warpline.dive.reasons.base import Case, Reason

MAX_POSSIBLE = 0.5
"""Half of the warps. Above, twice as many fit at most, and few kernels gain from the second half."""
MAX_TOP = 0.6
"""A kernel whose busiest unit is above this hides its latency well enough, with however few warps."""
LIMITS = {
    "limit_registers": "registers",
    "limit_shared": "shared memory",
    "limit_warps": "the block size",
    "limit_blocks": "the number of blocks an SM can hold",
    "limit_barriers": "barriers",
}
ADVICE = {
    "limit_registers": "Use fewer registers a thread: smaller tiles, __launch_bounds__, maxrregcount short of spills.",
    "limit_shared": "Use less shared memory a block: smaller tiles or fewer stages, or reuse one buffer.",
    "limit_warps": "Choose a block size that divides the threads of an SM: 128 or 256.",
    "limit_blocks": "Use larger blocks: 128 or 256 threads.",
    "limit_barriers": "Use fewer named barriers a block.",
}


def limiter(metrics: KernelMetrics) -> str | None:
    """What limits the blocks on an SM: the resource of which fewest blocks fit."""
    known = {key: value for key in LIMITS if (value := metrics.get(key)) is not None}
    return min(known, key=lambda key: known[key]) if known else None


def look(case: Case) -> FoundReason | None:
    """More warps, up to all that an SM can hold."""
    metrics = case.metrics
    possible, achieved = metrics.share("occupancy_possible"), metrics.share("occupancy")
    while_active = case.utilisation.top / (metrics.activity or 1.0)
    if not possible or possible > MAX_POSSIBLE or while_active > MAX_TOP:
        return None
    limit = limiter(metrics)
    words = "" if limit is None else f", limited by {LIMITS[limit]}"
    reached = "" if achieved is None else f" and {100 * achieved:.0f} % are active"
    return FoundReason(
        "low_occupancy",
        f"Too few warps hide the latency: {100 * possible:.0f} % of an SM's warps fit{words}{reached}, and no unit is "
        f"over {100 * case.utilisation.top:.0f} % busy",
        gain_of_more_parallelism(metrics, case.utilisation, 1 / possible),
        ADVICE.get(limit or "", "Let more blocks fit on an SM: fewer registers, less shared memory, other block sizes.")
        + " Or give each thread more independent loads.",
        (metrics.name("occupancy_possible"), metrics.name("occupancy")),
    )


REASON = Reason(
    "low_occupancy",
    "Are there enough warps to hide latency?",
    ("occupancy_possible",),
    "at most half of the warps fit, and no unit is over 60 % busy; a kernel near its peak needs no more warps",
    look,
)
