"""The metrics that the tree reads (``data/metrics.toml``), each with its names and its section.

Of the names, the first one that a report has counts. What a warp waits for is in ``data/stalls.toml``.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from warpline.package_data import read_table

LAUNCH = "LaunchStats"
STALL_SECTION = "WarpStateStats"


class Metric(Struct, frozen=True):
    """One quantity."""

    names: tuple[str, ...]
    """Equivalent metric names, the preferred one first: chips and versions of ncu differ."""
    section: str
    """The section of Nsight Compute that records it."""


METRICS: Mapping[str, Metric] = {
    key: Metric(names, section)
    for section, metrics in read_table("dive", "metrics", dict[str, dict[str, tuple[str, ...]]]).items()
    for key, names in metrics.items()
}
"""By the name that the tree uses."""

BYTES_PER_SECTOR = 32
"""A sector is the unit in which L1, L2 and DRAM move data on every chip since Maxwell (CUDA C++ Programming Guide)."""
WARP = 32

STALLS = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
STALL_WORDS = read_table("dive", "stalls", dict[str, str])
"""What a warp waits for. `selected` and `not_selected` are no waits."""
NO_WAIT = frozenset({"selected", "not_selected"})
