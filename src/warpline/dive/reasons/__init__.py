"""The reasons, one module for each kind."""

from __future__ import annotations

from warpline.dive.reasons import (
    atomics,
    bank_conflicts,
    divergence,
    ends,
    fp64,
    geometry,
    l2_misses,
    occupancy,
    spills,
    tensor_cores,
    uncoalesced,
)
from warpline.dive.reasons.base import Case, Reason

REASONS: tuple[Reason, ...] = (
    geometry.SMALL_GRID,
    geometry.TAIL,
    geometry.IMBALANCE,
    tensor_cores.REASON,
    fp64.REASON,
    spills.REASON,
    divergence.REASON,
    atomics.REASON,
    bank_conflicts.REASON,
    uncoalesced.REASON,
    l2_misses.REASON,
    occupancy.REASON,
    ends.INSTRUCTION_BOUND,
    ends.LATENCY,
    ends.COMPUTE_PEAK,
    ends.MEMORY_BANDWIDTH,
    ends.HEALTHY,
)
"""Flaws first: of those that gain enough, the one that gains most is the reason."""

__all__ = ["REASONS", "Case", "Reason"]
