"""Aligns the clocks of all ranks: the members of an all-reduce leave it together, whatever their clocks say.

Offset and drift of all ranks are one least-squares problem: each end lies as near as possible to the mean of its
collective, with less weight for outliers. Groups that only overlap (tensor × data parallel) are chained by the same
problem. A clock that was stepped has a jump where its time between two collectives differs from everybody's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from scipy import sparse

from warpline.ranks.match import Collective
from warpline.ranks.timeline import RankTimeline
from warpline.trace.arrays import Floats, Int64s

USUAL_DRIFT = 50e-6
"""Drift that quartz clocks have without correction: the prior of each rank's drift."""
PRIOR_NS = 5_000.0
"""How much the ends may contradict that prior."""
SYSTEMATIC_NS = 10_000
"""Ranks leave a collective a few microseconds apart, always in the same order, which no averaging removes: 4 µs in the
median and 24 µs at most on four MI300, a constant 22 µs between two GPUs with one host clock."""
ROUNDS = 12
MIN_SCALE_NS = 300.0
STEP_NS, STEP_SHARE = 60_000.0, 3e-4
"""A clock was stepped if it differs from the others' between two collectives by more than this, and by more than this
share of the time between them, which drift explains."""
MIN_TO_BLAME = 3
"""With fewer ranks nobody can say whose clock was stepped."""


class Clock(Struct, frozen=True):
    """The clock of one rank against the common one, which is that of the first rank."""

    rank: int
    offset_ns: int
    """The rank's clock minus the common clock, in the middle of the recording."""
    drift_ppm: float
    uncertainty_ns: int
    shift_ns: float
    slope: float
    middle_ns: float
    jumps: tuple[tuple[float, float], ...]
    """When the clock was stepped, and by how much."""

    def common(self, times_ns: Floats) -> Floats:
        """Times of the rank's timeline by the common clock."""
        result = times_ns - self.shift_ns - self.slope * (times_ns - self.middle_ns)
        for at_ns, size_ns in self.jumps:
            result = result - np.where(times_ns > at_ns, size_ns, 0.0)
        return np.asarray(result, np.float64)

    def applied(self, line: RankTimeline) -> RankTimeline:
        """The rank's timeline by the common clock."""
        times = ("launch_ns", "start_ns", "end_ns", "waits", "inputs", "steps")
        return replace(line, **{name: self.common(getattr(line, name)) for name in times})

    def to_dict(self) -> dict[str, Any]:
        """As the JSON contract has it."""
        return {
            "rank": self.rank,
            "offset_ns": self.offset_ns,
            "uncertainty_ns": self.uncertainty_ns,
            "drift_ppm": round(self.drift_ppm, 3),
            "jumps": [{"at_ns": round(at_ns), "size_ns": round(size_ns)} for at_ns, size_ns in self.jumps],
        }


class _Ends(Struct, frozen=True):
    """Ends of collectives: which collective, which rank (by position), and when by the rank's clock."""

    collective: Int64s
    rank: Int64s
    time_ns: Floats


def align(timelines: Sequence[RankTimeline], collectives: Sequence[Collective]) -> list[Clock]:
    """The clock of each rank."""
    ends = _ends(timelines, collectives)
    count = len(timelines)
    if not len(ends.time_ns):
        return [Clock(line.rank, 0, 0.0, 1 << 62, 0.0, 0.0, 0.0, ()) for line in timelines]
    jumps = _jumps(ends, count)
    span = float(np.ptp(ends.time_ns)) or 1.0
    middle = float(ends.time_ns.min()) + span / 2
    found, residual = _fit(ends, count, jumps, middle, span)
    shift, slope, sizes = found[:count], found[count : 2 * count] / span, found[2 * count :]
    shift, slope = shift - shift[0], slope - slope[0]
    clocks = []
    for place, line in enumerate(timelines):
        own = ends.rank == place
        spread = 1.4826 * float(np.median(np.abs(residual[own]))) if own.any() else np.inf
        doubt = np.hypot(spread / np.sqrt(max(int(own.sum()), 1)), SYSTEMATIC_NS) if own.any() else 1 << 62
        own_jumps = tuple((at, float(size)) for (rank, at), size in zip(jumps, sizes, strict=True) if rank == place)
        clock = Clock(line.rank, 0, 0.0, int(doubt), float(shift[place]), float(slope[place]), middle, own_jumps)
        clocks.append(clock)
    common_middle = float(clocks[0].common(np.array([middle]))[0])
    return [
        _with_offset(clock, line, timelines[0], common_middle) for clock, line in zip(clocks, timelines, strict=True)
    ]


def _with_offset(clock: Clock, line: RankTimeline, first: RankTimeline, common_ns: float) -> Clock:
    """The clock with its offset at a moment of the common clock."""
    time = np.array([common_ns])
    for _ in range(4):  # the drift is so small that this converges at once
        time = common_ns + (time - clock.common(time))
    offset_ns = line.zero_ns - first.zero_ns + round(float(time[0]) - common_ns)
    return replace(clock, offset_ns=offset_ns, drift_ppm=clock.slope * 1e6)


def _ends(timelines: Sequence[RankTimeline], collectives: Sequence[Collective]) -> _Ends:
    """The ends to align by: of collectives whose members leave together, and of others only where a rank has none."""
    place = {line.rank: position for position, line in enumerate(timelines)}
    used = [one for one in collectives if one.synchronises]
    if {rank for one in used for rank in one.rows} != set(place):
        used = list(collectives)
    rows = [
        (number, place[rank], timelines[place[rank]].end_ns[row])
        for number, one in enumerate(used)
        for rank, row in one.rows.items()
    ]
    table = np.array(rows, np.float64).reshape(-1, 3)
    return _Ends(table[:, 0].astype(np.int64), table[:, 1].astype(np.int64), table[:, 2])


def _fit(
    ends: _Ends, count: int, jumps: Sequence[tuple[int, float]], middle: float, span: float
) -> tuple[Floats, Floats]:
    """Offset, drift over the whole span, and size of each jump; and how far each end is from its collective's mean."""
    rows = np.arange(len(ends.time_ns))
    columns = [(rows, ends.rank, np.ones(len(rows))), (rows, count + ends.rank, (ends.time_ns - middle) / span)]
    for number, (rank, at) in enumerate(jumps):
        after = np.flatnonzero((ends.rank == rank) & (ends.time_ns > at))
        columns.append((after, np.full(len(after), 2 * count + number), np.ones(len(after))))
    size = 2 * count + len(jumps)
    places, numbers, values = (np.concatenate(part) for part in zip(*columns, strict=True))
    design = sparse.csr_matrix((values, (places, numbers)), (len(rows), size))
    belongs = sparse.csr_matrix((np.ones(len(rows)), (rows, ends.collective)))
    prior = np.full(size, 1e-9)
    prior[count : 2 * count] = (PRIOR_NS / (USUAL_DRIFT * span)) ** 2
    weight, found, residual = np.ones(len(rows)), np.zeros(size), np.zeros(len(rows))
    for _ in range(ROUNDS):
        weighted = belongs.T @ sparse.diags(weight)
        total = np.asarray(weighted.sum(axis=1)).ravel()
        mean_design = sparse.diags(1 / total) @ (weighted @ design)
        mean_time = (weighted @ ends.time_ns) / total
        centred = design - belongs @ mean_design
        centred_time = ends.time_ns - belongs @ mean_time
        scaled = centred.T @ sparse.diags(weight)
        normal = (scaled @ centred).toarray() + np.diag(prior)
        found = np.linalg.lstsq(normal, scaled @ centred_time, rcond=None)[0]
        residual = centred_time - centred @ found
        scale = max(1.4826 * float(np.median(np.abs(residual))), MIN_SCALE_NS)
        weight = 1.0 / np.maximum(1.0, np.abs(residual) / (2 * scale)) ** 2
    return found, residual


def _jumps(ends: _Ends, count: int) -> list[tuple[int, float]]:
    """Where clocks were stepped: rank and time."""
    order = np.lexsort((ends.time_ns, ends.rank))
    between: dict[tuple[int, int], list[tuple[int, float, float]]] = defaultdict(list)
    for before, after in zip(order[:-1].tolist(), order[1:].tolist(), strict=True):
        if ends.rank[before] == ends.rank[after]:
            pair = int(ends.collective[before]), int(ends.collective[after])
            start, end = float(ends.time_ns[before]), float(ends.time_ns[after])
            between[pair].append((int(ends.rank[before]), end - start, (start + end) / 2))
    found = []
    for lengths in between.values():
        if len(lengths) < MIN_TO_BLAME:
            continue
        usual = float(np.median([length for _, length, _ in lengths]))
        allowed = STEP_NS + STEP_SHARE * abs(usual)
        found += [(rank, at) for rank, length, at in lengths if abs(length - usual) > allowed]
    return found if len(found) <= 2 * count else []  # that many are not clocks: the ends are not of one collective
