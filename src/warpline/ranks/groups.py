"""The process groups of a job: transfer, waiting, and bus bandwidth against the peak of the link."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from warpline.ranks.match import Collective
from warpline.ranks.summary import RankSummary
from warpline.ranks.timeline import RankTimeline
from warpline.ranks.waits import Waits
from warpline.trace.arrays import NONE
from warpline.work.collective import bus_factor

RANKS_PER_NODE = 8
"""GPUs that share NVLink in most machines; a group beyond one block of so many uses a network of unknown peak."""


class GroupTime(Struct, frozen=True):
    """One process group, per step."""

    name: str
    ranks: tuple[int, ...]
    collectives: int
    """Matched collectives in all steps."""
    transfer_ns: int
    wait_ns: int
    """Mean over its ranks."""
    bus_bandwidth: float | None
    """Bytes per second as NCCL's tests count them, over all its transfers; None if sizes were not recorded."""
    link_peak: float | None
    """Peak of the link in bytes per second, one direction; None if it is not known."""

    def to_dict(self) -> dict[str, Any]:
        """As the JSON contract has it."""
        return {name: getattr(self, name) for name in self.__struct_fields__} | {"ranks": list(self.ranks)}


def group_times(
    collectives: Sequence[Collective],
    timelines: Sequence[RankTimeline],
    waits: Waits,
    summaries: Mapping[int, RankSummary],
) -> tuple[GroupTime, ...]:
    """Each group, the one with most communication first."""
    found: dict[tuple[str, tuple[int, ...]], list[int]] = defaultdict(list)
    for number, one in enumerate(collectives):
        found[one.group, tuple(sorted(one.members))].append(number)
    steps = len(timelines[0].steps)
    result = []
    for (name, members), numbers in found.items():
        transfer = float(waits.transfer_ns[numbers].sum())
        recorded = [(rank, row) for number in numbers for rank, row in collectives[number].rows.items()]
        wait = sum(float(waits.wait_ns[rank][row]) for rank, row in recorded)
        ranks = len({rank for rank, _ in recorded})
        sized = [number for number in numbers if collectives[number].message_bytes > 0]
        moved = sum(_bus_bytes(collectives[number]) for number in sized)
        time_ns = float(waits.transfer_ns[sized].sum())
        result.append(
            GroupTime(
                name,
                members,
                len(numbers),
                round(transfer / steps),
                round(wait / ranks / steps),
                moved / time_ns * 1e9 if moved and time_ns else None,
                _link_peak(members, summaries),
            )
        )
    return tuple(sorted(result, key=lambda group: -(group.transfer_ns + group.wait_ns)))


def _bus_bytes(one: Collective) -> float:
    return one.message_bytes * bus_factor(one.kind, len(one.members)) if one.message_bytes != NONE else 0.0


def _link_peak(members: Sequence[int], summaries: Mapping[int, RankSummary]) -> float | None:
    """The peak of the link within a node; a group that spans nodes has none that is known."""
    if len({rank // RANKS_PER_NODE for rank in members}) != 1:
        return None
    return next((summaries[rank].about.link_bytes_per_second for rank in members if rank in summaries), None)
