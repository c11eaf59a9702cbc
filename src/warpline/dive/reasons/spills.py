"""Local memory: registers that did not fit, and arrays that are indexed at run time."""

from __future__ import annotations

from warpline.dive.gains import gain_of_less_work
from warpline.dive.model import FoundReason
from warpline.dive.reasons.base import Case, Reason

MIN_SHARE = 0.02
"""Of all instructions. Register files are there so that this is 0; a call's stack frame alone stays below it."""


def look(case: Case) -> FoundReason | None:
    """Removes the instructions and the traffic of local memory."""
    metrics = case.metrics
    accesses = metrics.total("local_load_instructions", "local_store_instructions")
    instructions = metrics.get("instructions")
    if not accesses or not instructions or accesses / instructions < MIN_SHARE:
        return None
    others = metrics.total(
        "global_load_instructions",
        "global_store_instructions",
        "shared_load_instructions",
        "shared_store_instructions",
    )
    sectors = metrics.total("local_load_sectors", "local_store_sectors") or 0.0
    global_sectors = metrics.total("load_sectors", "store_sectors") or 0.0
    missed = metrics.total("local_load_missed", "local_store_sectors") or 0.0  # L1 passes every store on
    l2_sectors = metrics.total("l2_read_sectors", "l2_write_sectors")
    left = {"issue": 1 - accesses / instructions}
    left["lsu"] = 1 - accesses / (accesses + (others or 0.0))
    left["l1"] = left["lsu"] if not sectors else 1 - sectors / (sectors + global_sectors)
    if l2_sectors:
        left["l2"] = left["dram"] = max(0.0, 1 - missed / l2_sectors)
    left["memory"] = left["l1"]
    spilled = metrics.get("spill_requests")
    what = "registers spill to" if spilled or spilled is None else "arrays indexed at run time live in"
    count = metrics.get("registers")
    registers = "" if count is None else f" ({count:.0f} registers a thread)"
    return FoundReason(
        "spills",
        f"{what.capitalize()} local memory{registers}: {100 * accesses / instructions:.0f} % of the instructions are "
        "its loads and stores",
        gain_of_less_work(metrics, case.utilisation, left, adds=False),
        "Give the kernel more registers (smaller blocks, fewer blocks an SM in __launch_bounds__, a larger "
        "maxrregcount, more warps in Triton), keep fewer values alive (smaller tiles, less unrolling), and index local "
        "arrays by constants.",
        (metrics.name("local_load_instructions"), metrics.name("local_store_instructions")),
    )


REASON = Reason(
    "spills",
    "Do registers spill to local memory?",
    ("local_load_instructions", "local_store_instructions"),
    "2 % of the instructions; without spills it is 0",
    look,
)
