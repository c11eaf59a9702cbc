"""Aligns the clocks of all ranks: the members of an all-reduce leave it together, whatever their clocks say.

Offset and drift of all ranks are one least-squares problem: each end lies as near as possible to the mean of its
collective, with less weight for outliers. Groups that only overlap (tensor × data parallel) are chained by the same
problem. A clock that was stepped has a jump where its time between two collectives differs from everybody's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from warpline.ranks.match import Collectives
from warpline.ranks.timeline import RankOutline, RankTimeline
from warpline.ranks.waits import gathered
from warpline.trace.arrays import Bools, Floats, Int64s, combinations, grouped

DEVIATION_OVER_MEDIAN = 1.4826
"""The standard deviation of normal values over the median of their distances from their mean."""
USUAL_DRIFT = 50e-6
"""Drift that quartz clocks have without correction: the prior of each rank's drift."""
PRIOR_NS = 5_000.0
"""How much the ends may contradict that prior."""
SYSTEMATIC_NS = 10_000
"""Ranks leave a collective a few microseconds apart, always in the same order, which no averaging removes: 4 µs in the
median and 24 µs at most on four MI300, a constant 22 µs between two GPUs with one host clock."""
ROUNDS, SETTLED_NS = 12, 1.0
"""The problem is solved anew with other weights so often, or until it changes by less than this."""
MIN_SCALE_NS = 300.0
"""Ends that agree better than this count as no more exact: else the few that agree by chance would decide."""
AT_ONCE = 1 << 20
"""Ends that are handled at once: more only take more memory."""
STEP_NS, STEP_SHARE = 60_000.0, 3e-4
"""A clock was stepped if it differs from the others' between two collectives by more than this, and by more than this
share of the time between them, which drift explains."""
MIN_TO_BLAME = 3
"""With fewer ranks nobody can say whose clock was stepped."""


Timed = TypeVar("Timed", RankTimeline, RankOutline)
TIMES = ("launch_ns", "start_ns", "end_ns", "waits", "inputs", "steps", "begin_ns", "done_ns")
"""Fields that are times, of a timeline or an outline."""


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

    def applied(self, line: Timed) -> Timed:
        """The rank's timeline or outline by the common clock."""
        return replace(line, **{name: self.common(getattr(line, name)) for name in TIMES if hasattr(line, name)})

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
    place: Int64s
    time_ns: Floats


class _Jump(Struct, frozen=True):
    """A clock that was stepped: whose (by position), and when."""

    place: int
    at_ns: float


def align(outlines: Sequence[RankOutline], collectives: Collectives) -> list[Clock]:
    """The clock of each rank."""
    ends = _ends(outlines, collectives)
    count = len(outlines)
    if not len(ends.time_ns):
        return [Clock(line.rank, 0, 0.0, 1 << 62, 0.0, 0.0, 0.0, ()) for line in outlines]
    jumps = _jumps(ends, count)
    span = float(np.ptp(ends.time_ns)) or 1.0
    middle = float(ends.time_ns.min()) + span / 2
    found, residual = _Problem(ends, count, jumps, middle, span, collectives.rank_marks).solved()
    shift, slope, sizes = found[:count], found[count : 2 * count] / span, found[2 * count :].tolist()
    shift, slope = shift - shift[0], slope - slope[0]
    doubts = _doubts(ends, residual, count)
    clocks = []
    for place, line in enumerate(outlines):
        own = tuple((jump.at_ns, size) for jump, size in zip(jumps, sizes, strict=True) if jump.place == place)
        clocks.append(Clock(line.rank, 0, 0.0, doubts[place], float(shift[place]), float(slope[place]), middle, own))
    common_middle = float(clocks[0].common(np.array([middle]))[0])
    return [_with_offset(clock, line, outlines[0], common_middle) for clock, line in zip(clocks, outlines, strict=True)]


def _doubts(ends: _Ends, residual: Floats, count: int) -> list[int]:
    """The uncertainty of each rank's clock."""
    found = [1 << 62] * count
    for place, own in grouped(np.arange(len(residual)), ends.place):
        spread = DEVIATION_OVER_MEDIAN * float(np.median(np.abs(residual[own])))
        found[place] = int(np.hypot(spread / np.sqrt(len(own)), SYSTEMATIC_NS))
    return found


def _with_offset(clock: Clock, line: RankOutline, first: RankOutline, common_ns: float) -> Clock:
    """The clock with its offset at a moment of the common clock."""
    time = np.array([common_ns])
    for _ in range(4):  # the drift is so small that this converges at once
        time = common_ns + (time - clock.common(time))
    offset_ns = line.zero_ns - first.zero_ns + round(float(time[0]) - common_ns)
    return replace(clock, offset_ns=offset_ns, drift_ppm=clock.slope * 1e6)


def _ends(outlines: Sequence[RankOutline], collectives: Collectives) -> _Ends:
    """The ends to align by: of collectives whose members leave together, and of others only where a rank has none."""
    arrivals = collectives.arrivals
    chosen = collectives.synchronises[arrivals.collective]
    if len(np.unique(arrivals.place[chosen])) < len(outlines):
        chosen[:] = True
    times = gathered(outlines, collectives, "end_ns")
    return _Ends(arrivals.collective[chosen], arrivals.place[chosen], times[chosen])


class _Problem:
    """The least-squares problem. Unknown are each rank's offset, its drift over the whole span, and the size of each
    jump."""

    def __init__(
        self, ends: _Ends, count: int, jumps: Sequence[_Jump], middle: float, span: float, marks: Int64s
    ) -> None:
        self.ends, self.count, self.jumps = ends, count, jumps
        self.position = (ends.time_ns - middle) / span
        self.blocks = list(_blocks(ends, marks))
        self.prior = np.full(2 * count + len(jumps), 1e-9)
        self.prior[count : 2 * count] = (PRIOR_NS / (USUAL_DRIFT * span)) ** 2

    def solved(self) -> tuple[Floats, Floats]:
        """The unknowns, and how far each end is from the mean of its collective."""
        weight, found = np.ones(len(self.position)), np.zeros(len(self.prior))
        residual = np.zeros(len(weight))
        for _ in range(ROUNDS):
            before, found = found, self._solution(weight)
            for rows in self.blocks:
                residual[rows] = self._residual(rows, weight[rows], found)
            if np.abs(found - before).max() < SETTLED_NS:
                break
            scale = max(DEVIATION_OVER_MEDIAN * float(np.median(np.abs(residual))), MIN_SCALE_NS)
            weight = 1.0 / np.maximum(1.0, np.abs(residual) / (2 * scale)) ** 2
        return found, residual

    def _columns(self, rows: Int64s) -> tuple[Int64s, list[tuple[int, int, Bools]]]:
        """The ranks of a block; and its jumps: number, column of the rank, and which ends come after it."""
        places = self.ends.place[rows[0]]
        after = []
        for number, jump in enumerate(self.jumps):
            for column in np.flatnonzero(places == jump.place).tolist():
                after.append((number, column, self.ends.time_ns[rows[:, column]] > jump.at_ns))
        return places, after

    def _solution(self, weight: Floats) -> Floats:
        """The unknowns for these weights, by the normal equations."""
        normal, right = np.diag(self.prior), np.zeros(len(self.prior))
        for rows in self.blocks:
            places, after = self._columns(rows)
            own, position, times = weight[rows], self.position[rows], self._times(rows)
            parts = [own, own * position, *(own[:, [column]] * is_after[:, None] for _, column, is_after in after)]
            weighted = np.concatenate(parts, axis=1)
            unknowns = np.concatenate([places, self.count + places, [2 * self.count + number for number, *_ in after]])
            unknowns = unknowns.astype(np.int64)
            total = own.sum(axis=1)
            normal[np.ix_(unknowns, unknowns)] -= weighted.T @ (weighted / total[:, None])
            right[unknowns] -= weighted.T @ ((own * times).sum(axis=1) / total)
            factors = [(places, np.ones_like(position)), (self.count + places, position)]
            for number, column, is_after in after:
                only = np.zeros_like(position)
                only[:, column] = is_after
                factors.append((np.full(len(places), 2 * self.count + number), only))
            for unknown, factor in factors:
                np.add.at(right, unknown, (own * factor * times).sum(axis=0))
                for other, second in factors:
                    np.add.at(normal, (unknown, other), (own * factor * second).sum(axis=0))
        return np.asarray(np.linalg.lstsq(normal, right, rcond=None)[0])

    def _times(self, rows: Int64s) -> Floats:
        """The ends of a block, less the mean of each collective."""
        times = self.ends.time_ns[rows]
        return np.asarray(times - times.mean(axis=1, keepdims=True))

    def _residual(self, rows: Int64s, weight: Floats, found: Floats) -> Floats:
        places, after = self._columns(rows)
        left = self._times(rows) - found[places] - found[self.count + places] * self.position[rows]
        for number, column, is_after in after:
            left[:, column] -= found[2 * self.count + number] * is_after
        return np.asarray(left - (weight * left).sum(axis=1, keepdims=True) / weight.sum(axis=1, keepdims=True))


def _blocks(ends: _Ends, marks: Int64s) -> Iterator[Int64s]:
    """The ends as tables: a row for each collective, a column for each of its ranks, which are the same in all rows."""
    first = np.flatnonzero(np.diff(ends.collective, prepend=-1))
    sizes = np.diff(first, append=len(ends.collective))
    for _, same in grouped(np.arange(len(first)), marks[ends.collective[first]]):
        size = int(sizes[same[0]])
        for part in np.array_split(same, -(-len(same) * size // AT_ONCE)):
            yield first[part][:, None] + np.arange(size)


def _jumps(ends: _Ends, count: int) -> list[_Jump]:
    """Where clocks were stepped."""
    order = np.lexsort((ends.time_ns, ends.place))
    is_next = ends.place[order[1:]] == ends.place[order[:-1]]
    before, after = order[:-1][is_next], order[1:][is_next]
    length = ends.time_ns[after] - ends.time_ns[before]
    which = combinations(ends.collective[before], ends.collective[after])[1]
    ordered = length[np.lexsort((length, which))]
    number = np.bincount(which)
    first = np.cumsum(number) - number
    usual = ((ordered[first + (number - 1) // 2] + ordered[first + number // 2]) / 2)[which]
    is_stepped = (number[which] >= MIN_TO_BLAME) & (np.abs(length - usual) > STEP_NS + STEP_SHARE * np.abs(usual))
    rows = np.flatnonzero(is_stepped)
    if len(rows) > 2 * count:
        return []  # that many are not clocks: the ends are not of one collective
    middles = (ends.time_ns[before[rows]] + ends.time_ns[after[rows]]) / 2
    return [_Jump(int(ends.place[before[row]]), float(at)) for row, at in zip(rows.tolist(), middles, strict=True)]
