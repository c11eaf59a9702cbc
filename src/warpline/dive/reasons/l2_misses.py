"""L2 misses: data that is read again after the cache has lost it."""

from __future__ import annotations

from warpline.dive.gains import ATTAINED, LEAST, kept, ordered
from warpline.dive.model import Found
from warpline.dive.reasons.base import Case, Reason

MIN_DRAM = 0.5
"""Misses cost little where DRAM is half idle."""
REUSE_HITS = (0.2, 0.8)
"""Read hits that show reuse, part of which misses: a stream has none, a working set that fits has nearly all."""
MIN_REREAD = 1.25
"""DRAM reads over the memory that the program has: above 1, something was read twice for certain."""
ACCESSIBLE = "profiler__replayer_bytes_mem_accessible.avg"


def look(case: Case) -> Found | None:
    """Reads each byte from DRAM once where that is known, else finds an unknown part of the misses in L2."""
    measured, load = case.measured, case.load
    dram, l2 = load.shares.get("dram"), load.shares.get("l2", 0.0)
    read, hits = measured.get("dram_read"), measured.share("l2_read_hits")
    if dram is None or dram < MIN_DRAM or dram < load.top - 0.1 or read is None:
        return None
    accessible = measured.kernel.number(ACCESSIBLE)
    reread = None if not accessible else read / accessible
    if reread is not None and reread >= MIN_REREAD:
        proof = f"it reads {reread:.1f} times as many bytes from DRAM as the program has allocated"
        dram_left = (1 / reread) * read / (measured.dram_bytes or read)
    elif hits is not None and REUSE_HITS[0] <= hits <= REUSE_HITS[1]:
        proof = f"{100 * hits:.0f} % of the reads hit L2, so data is reused, and the rest misses"
        dram_left = 0.5
    else:
        return None
    others = max((share for name, share in load.shares.items() if name not in {"dram", "memory"}), default=0.0)
    after = min(load.top, max(dram * dram_left, others, l2, LEAST))
    same, usual = load.top / after, max(load.top / after, ATTAINED / after)
    return Found(
        "l2_misses",
        f"Reused data misses the L2 cache: DRAM is {100 * dram:.0f} % busy, and {proof}",
        ordered(1.0, kept(measured, (same * usual) ** 0.5), 1 / after),  # another order brings work of its own
        "Bring the uses of the same data close in time: sort the indices, walk the grid in tiles (block swizzle), "
        "split the work into chunks that fit the L2 cache, or fuse the passes.",
        (measured.name("l2_read_hits"), measured.name("dram_read")),
    )


REASON = Reason(
    "l2_misses",
    "Is data read from DRAM again?",
    ("l2_read_hits", "dram_read"),
    "DRAM over 50 % busy, and more bytes read than the program has, or 20 to 80 % of the reads hit L2",
    look,
)
