"""The process groups of a job: transfer, waiting, and bus bandwidth against the peak of the link."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from msgspec import Struct

from warpline.hardware.chips import PCIE
from warpline.hardware.find import find_device
from warpline.ranks.match import Collectives
from warpline.ranks.summary import RankSummary
from warpline.ranks.waits import Waits
from warpline.trace.arrays import Int64s, combinations, grouped
from warpline.work.collective import bus_factor

RANKS_PER_NODE = 8
"""GPUs that share NVLink in most machines; a group beyond one block of so many uses a network."""


LinkName = Literal["NVLink", "Infinity Fabric", "PCIe", "network", "unknown"]


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
    """Peak of the link in bytes per second, one direction; of a network, that of NVIDIA's own machine with this chip.
    None if it is not known."""
    link: LinkName
    """What the group's data moves over."""

    def to_dict(self) -> dict[str, Any]:
        """As the JSON contract has it."""
        return {name: getattr(self, name) for name in self.__struct_fields__} | {"ranks": list(self.ranks)}


def group_times(
    collectives: Collectives, waits: Waits, steps: int, summaries: Mapping[int, RankSummary]
) -> tuple[GroupTime, ...]:
    """Each group, the one with most communication first."""
    wait_ns = np.zeros(len(collectives))
    for place, rank in enumerate(collectives.ranks):
        own = collectives.arrivals_of(place)
        numbers = collectives.arrivals.collective[own]
        wait_ns += np.bincount(numbers, waits.wait_ns[rank][collectives.arrivals.row[own]], len(wait_ns))
    result = []
    for (name, members), same in _by_group(collectives).items():
        rows = np.concatenate(list(same.values()))
        ranks = len({rank for recorded in same for rank in recorded})
        result.append(
            GroupTime(
                name,
                members,
                len(rows),
                round(float(waits.transfer_ns[rows].sum()) / steps),
                round(float(wait_ns[rows].sum()) / ranks / steps),
                _bus_bandwidth(collectives, waits, rows, len(members)),
                *_link(members, summaries),
            )
        )
    return tuple(sorted(result, key=lambda group: -(group.transfer_ns + group.wait_ns)))


def _by_group(collectives: Collectives) -> dict[tuple[str, tuple[int, ...]], dict[tuple[int, ...], Int64s]]:
    """The collectives of each group and its ranks, by the ranks that recorded them."""
    which = combinations(collectives.table.group.codes, collectives.rank_marks)[1]
    found: dict[tuple[str, tuple[int, ...]], dict[tuple[int, ...], Int64s]] = defaultdict(dict)
    for _, rows in grouped(np.arange(len(collectives)), which):
        sample = collectives[int(rows[0])]
        found[sample.group, tuple(sorted(sample.members))][tuple(sample.rows)] = rows
    return found


def _bus_bandwidth(collectives: Collectives, waits: Waits, rows: Int64s, members: int) -> float | None:
    table = collectives.table
    sized = rows[table.message_bytes[rows] > 0]
    factors = np.array([*(bus_factor(kind, members) for kind in table.kind.words), 0.0])
    moved = float((table.message_bytes[sized] * factors[table.kind.codes[sized]]).sum())
    time_ns = float(waits.transfer_ns[sized].sum())
    return moved / time_ns * 1e9 if moved and time_ns else None


def _link(members: Sequence[int], summaries: Mapping[int, RankSummary]) -> tuple[float | None, LinkName]:
    """The peak of the link, and its name. Between nodes each rank has a port of its own, and the node with the fewest
    ranks of the group bounds it."""
    about = next((summaries[rank].about for rank in members if rank in summaries), None)
    chip = find_device(about.device) if about is not None else None
    on_node = Counter(rank // RANKS_PER_NODE for rank in members)
    if len(on_node) > 1:
        port = chip.bandwidth.get("network") if chip is not None else None
        return port.value * min(on_node.values()) if port is not None else None, "network"
    if about is None or chip is None:
        return None, "unknown"
    if about.link_bytes_per_second is not None:
        return about.link_bytes_per_second, "Infinity Fabric" if chip.vendor == "amd" else "NVLink"
    pcie = chip.bandwidth.get(PCIE)
    return (pcie.value, "PCIe") if pcie is not None else (None, "unknown")
