"""Splits each collective of each rank into waiting for the last member and transfer; the two sum to its time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from warpline.ranks.match import Collective
from warpline.ranks.timeline import RankTimeline
from warpline.trace.arrays import Floats, Int64s

MIN_TRANSFER_NS = 1_000.0


class Waits(Struct, frozen=True):
    """How the collectives of a job split."""

    transfer_ns: Floats
    """For each collective, from the last arrival to the end."""
    last: Int64s
    """For each collective, the rank that arrived last."""
    blame_ns: Mapping[int, float]
    """For each rank, how much earlier the next to last arrived where it was last: what its lateness cost the others."""
    wait_ns: Mapping[int, Floats]
    """For each rank and row of its timeline, the time it waited for others; 0 for other rows."""


def split(timelines: Sequence[RankTimeline], collectives: Sequence[Collective]) -> Waits:
    """The split of all collectives, by the common clock."""
    by_rank = {line.rank: line for line in timelines}
    wait = {line.rank: np.zeros(len(line.start_ns)) for line in timelines}
    blame = dict.fromkeys(by_rank, 0.0)
    transfer, last = np.zeros(len(collectives)), np.zeros(len(collectives), np.int64)
    for number, one in enumerate(collectives):
        arrivals = {rank: float(by_rank[rank].start_ns[row]) for rank, row in one.rows.items()}
        last[number] = max(arrivals, key=lambda rank: arrivals[rank])
        before, arrival = sorted(arrivals.values())[-2:]
        blame[int(last[number])] += arrival - before
        end = float(np.median([by_rank[rank].end_ns[row] for rank, row in one.rows.items()]))
        transfer[number] = max(end - arrival, MIN_TRANSFER_NS)
        for rank, row in one.rows.items():
            own_ns = by_rank[rank].end_ns[row] - arrivals[rank]
            wait[rank][row] = min(max(arrival - arrivals[rank], 0.0), own_ns)
    return Waits(transfer, last, blame, wait)
