"""L2 misses: data that is read again after the cache has lost it."""

from __future__ import annotations

from warpline.dive.gains import MIN_UTILISATION, USUAL_PEAK_SHARE, in_order, with_overhead
from warpline.dive.kernel_metrics import KernelMetrics
from warpline.dive.metrics import BYTES_PER_SECTOR
from warpline.dive.model import FoundReason
from warpline.dive.reasons.base import Case, Reason
from warpline.dive.utilisation import UNITS

MIN_DRAM = 0.5
"""Misses cost little where DRAM is half idle."""
REUSE_HITS = (0.2, 0.8)
"""Read hits that show reuse, part of which misses: a stream has none, a working set that fits has nearly all."""
MIN_REREAD = 1.25
"""DRAM reads over the memory that the program has, or bytes moved over those that its op needs: above 1, something was
read twice for certain."""
OWN_MEMORY = 4.0
"""A program that has more memory than this many times what the kernel moves has other data too."""
ACCESSIBLE = "profiler__replayer_bytes_mem_accessible.avg"


def l2_left(metrics: KernelMetrics, read: float, reads_left: float) -> float:
    """How busy L2 would be with this part of the DRAM reads: a miss also fills the cache, and crosses its fabric."""
    requested, whole = metrics.total("l2_read_sectors", "l2_write_sectors"), metrics.get("l2_sectors")
    fills = read / BYTES_PER_SECTOR
    if requested is None or not whole:
        passed = stored = 1.0
    else:
        requested = min(requested, whole)
        passed = (requested + (whole - requested) * reads_left) / whole
        stored = (requested + (whole - requested + fills) * reads_left) / (whole + fills)
    left = {
        "lts__d_sectors_fill_device": reads_left,
        "lts__d_sectors": stored,
        "lts__d_atomic_input_cycles_active": 1.0,
    }
    (unit,) = (unit for unit in UNITS if unit.name == "l2")
    known = {base: part for base in unit.bases if (part := metrics.part(base)) is not None}
    return max((part * left.get(base, passed) for base, part in known.items()), default=1.0)


def _first_reads(metrics: KernelMetrics, read: float) -> bool:
    """Whether one pass over the memory that the program has, without what the kernel writes, explains the reads."""
    accessible, written = metrics.kernel.number(ACCESSIBLE), metrics.get("dram_write") or 0.0
    if not accessible or accessible > OWN_MEMORY * (read + written):
        return False
    return read <= MIN_REREAD * max(0.0, accessible - written)


def look(case: Case) -> FoundReason | None:
    """Reads each byte from DRAM once where that is known, else finds an unknown part of the misses in L2."""
    metrics, utilisation = case.metrics, case.utilisation
    dram = utilisation.shares.get("dram")
    read, hits = metrics.get("dram_read"), metrics.share("l2_read_hits")
    if dram is None or dram < MIN_DRAM or dram < utilisation.top - 0.1 or read is None:
        return None
    moved, needed = metrics.dram_bytes or read, metrics.needed_bytes
    accessible = metrics.kernel.number(ACCESSIBLE)
    reread = None if not accessible else read / accessible
    if needed is not None:
        # The shapes tell what must move. A cache that holds the last writes, or the first reads, moves less.
        if moved / needed < MIN_REREAD:
            return None
        proof = f"it moves {moved / needed:.1f} times the bytes that its op needs"
        reads_left = max(0.0, read - (moved - needed)) / read
    elif reread is not None and reread >= MIN_REREAD:
        proof = f"it reads {reread:.1f} times as many bytes from DRAM as the program has allocated"
        reads_left = 1 / reread
    elif hits is not None and REUSE_HITS[0] <= hits <= REUSE_HITS[1] and not _first_reads(metrics, read):
        proof = f"{100 * hits:.0f} % of the reads hit L2, so data is reused, and the rest misses"
        reads_left = 0.5
    else:
        return None
    others = max(
        (share for name, share in utilisation.shares.items() if name not in {"dram", "l2", "memory"}), default=0.0
    )
    dram_left = 1 - (1 - reads_left) * read / moved
    l2 = min(l2_left(metrics, read, reads_left), utilisation.shares.get("l2", 0.0))
    after = min(utilisation.top, max(dram * dram_left, others, l2, MIN_UTILISATION))
    same, usual = utilisation.top / after, max(utilisation.top / after, USUAL_PEAK_SHARE / after)
    # At best uses come so close that L1 has the data, and reads are as few as the shapes say; else nobody knows them.
    fewest = dram_left if needed is not None else 1 - read / moved
    best = min(after, max(dram * fewest, others, MIN_UTILISATION))
    return FoundReason(
        "l2_misses",
        f"Reused data misses the L2 cache: DRAM is {100 * dram:.0f} % busy, and {proof}",
        in_order(1.0, with_overhead(metrics, (same * usual) ** 0.5), 1 / best),  # another order brings work of its own
        "Bring the uses of the same data close in time: sort the indices, walk the grid in tiles (block swizzle), "
        "split the work into chunks that fit the L2 cache, or fuse the passes.",
        (metrics.name("l2_read_hits"), metrics.name("dram_read")),
    )


REASON = Reason(
    "l2_misses",
    "Is data read from DRAM again?",
    ("l2_read_hits", "dram_read"),
    "DRAM over 50 % busy, and more bytes read than the program has, or 20 to 80 % of the reads hit L2 and first reads "
    "do not explain the rest",
    look,
)
