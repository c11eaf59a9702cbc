"""Splits each collective of each rank into waiting for the last member and transfer; the two sum to its time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from warpline.ranks.match import Collectives
from warpline.ranks.timeline import RankOutline, RankTimeline
from warpline.trace.arrays import Floats, Int64s

MIN_TRANSFER_NS = 1_000.0
"""What a transfer counts as where the aligned clocks leave less: none takes no time."""


class Waits(Struct, frozen=True):
    """How the collectives of a job split."""

    transfer_ns: Floats
    """For each collective, from the last arrival to the end."""
    last: Int64s
    """For each collective, the rank that arrived last."""
    blame_ns: Mapping[int, float]
    """For each rank, how much earlier the next to last arrived where it was last: what its lateness cost the others."""
    wait_ns: Mapping[int, Floats]
    """For each rank and each of its collectives, the time it waited for others."""
    longest_ns: Floats
    """For each collective, the longest of these waits."""

    def of_operations(self, line: RankTimeline) -> Floats:
        """For each operation of a rank, the time it waited for others; 0 for those that are no collectives."""
        found = np.zeros(len(line.start_ns))
        found[line.is_comm] = self.wait_ns[line.rank]
        return found


def split(outlines: Sequence[RankOutline], collectives: Collectives) -> Waits:
    """The split of all collectives, by the common clock."""
    arrivals = collectives.arrivals
    starts, ends = (gathered(outlines, collectives, name) for name in ("start_ns", "end_ns"))
    # Of ranks that arrive together the first one counts as last.
    order = np.lexsort((-arrivals.place, starts, arrivals.collective))
    beyond = collectives.first[1:]
    last, before = order[beyond - 1], order[beyond - 2]
    latest = starts[last]
    transfer = np.maximum(medians(ends, collectives) - latest, MIN_TRANSFER_NS)
    ranks = np.array(collectives.ranks)
    blame = np.bincount(arrivals.place[last], latest - starts[before], len(ranks))
    own = np.clip(latest[arrivals.collective] - starts, 0.0, np.maximum(ends - starts, 0.0))
    wait = {}
    for place, outline in enumerate(outlines):
        chosen = collectives.arrivals_of(place)
        wait[outline.rank] = np.zeros(len(outline.start_ns))
        wait[outline.rank][arrivals.row[chosen]] = own[chosen]
    return Waits(
        transfer,
        ranks[arrivals.place[last]],
        dict(zip(ranks.tolist(), blame.tolist(), strict=True)),
        wait,
        np.maximum.reduceat(own, collectives.first[:-1]) if len(own) else own,
    )


def gathered(outlines: Sequence[RankOutline], collectives: Collectives, name: str) -> Floats:
    """A column of the outlines for each arrival at a collective."""
    arrivals = collectives.arrivals
    found = np.empty(len(arrivals.row))
    for place, outline in enumerate(outlines):
        chosen = collectives.arrivals_of(place)
        found[chosen] = getattr(outline, name)[arrivals.row[chosen]]
    return found


def medians(values: Floats, collectives: Collectives) -> Floats:
    """The median over the arrivals of each collective."""
    ordered = values[np.lexsort((values, collectives.arrivals.collective))]
    first, count = collectives.first[:-1], collectives.arrived
    return np.asarray((ordered[first + (count - 1) // 2] + ordered[first + count // 2]) / 2)
