"""Arithmetic on sets of time: half-open intervals of integer nanoseconds, as numpy arrays.

Everything is exact and vectorised. A `Spans` is a *set* of time: sorted, disjoint, without empty parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from msgspec import Struct

Times = npt.NDArray[np.int64]


class Spans(Struct, frozen=True):
    """Sorted, disjoint, non-touching intervals [start, end)."""

    starts: Times
    ends: Times

    def total_ns(self) -> int:
        """The total duration of the set."""
        return int((self.ends - self.starts).sum())

    def __len__(self) -> int:
        return len(self.starts)


AT_ONCE = 1 << 18
"""Intervals that are looked up at once: more only take more memory."""
LARGEST_PLACE = 2**62
"""Places beyond it might not be held by a number of 64 bits."""
EMPTY = Spans(np.empty(0, np.int64), np.empty(0, np.int64))


def union(starts: Times, ends: Times) -> Spans:
    """The set of time covered by any of the intervals, in any order; empty and negative intervals are ignored."""
    real = ends > starts
    if not real.all():
        starts, ends = starts[real], ends[real]
    if not len(starts):
        return EMPTY
    if (starts[1:] < starts[:-1]).any():
        order = np.argsort(starts, kind="stable")
        starts = starts[order]
        ends = ends[order]
        del order  # as large as either of the two
    reach = np.maximum.accumulate(ends)
    del ends
    first = np.empty(len(starts), bool)
    first[0] = True
    first[1:] = starts[1:] > reach[:-1]
    last = np.append(first[1:], True)
    return Spans(starts[first], reach[last])


def joined(parts: Sequence[Spans]) -> Spans:
    """The time that is in any of the sets."""
    parts = [part for part in parts if len(part)]
    if len(parts) < 2:
        return parts[0] if parts else EMPTY
    longest = max(parts, key=len)
    # From cut to cut: to sort all at once would take several times the memory of the sets.
    cuts = longest.starts[AT_ONCE::AT_ONCE]
    bounds = [[0, *np.searchsorted(part.starts, cuts).tolist(), len(part)] for part in parts]
    found: list[Spans] = []
    for number in range(len(cuts) + 1):
        some = [slice(places[number], places[number + 1]) for places in bounds]
        # The last one so far may go on beyond the cut.
        last = [Spans(found[-1].starts[-1:], found[-1].ends[-1:])] if found else []
        pieces = [*last, *(Spans(part.starts[own], part.ends[own]) for part, own in zip(parts, some, strict=True))]
        merged = union(np.concatenate([part.starts for part in pieces]), np.concatenate([part.ends for part in pieces]))
        if found:
            found[-1] = Spans(found[-1].starts[:-1], found[-1].ends[:-1])
        found.append(merged)
    if len(found) == 1:
        return found[0]
    return Spans(np.concatenate([part.starts for part in found]), np.concatenate([part.ends for part in found]))


def at_least(count: int, starts: Times, ends: Times) -> Spans:
    """The time that is in at least so many of the intervals, in any order."""
    if count < 1:
        return EMPTY
    times, change = np.concatenate([ends, starts]), np.repeat([-1, 1], [len(ends), len(starts)])
    order = np.argsort(times, kind="stable")
    times, change = times[order], change[order]
    depth = np.cumsum(change)
    return union(times[(depth == count) & (change == 1)], times[(depth == count - 1) & (change == -1)])


def clip(spans: Spans, start: int, end: int) -> Spans:
    """The part of the set within [start, end)."""
    if end <= start:
        return EMPTY
    inside = slice(np.searchsorted(spans.ends, start, side="right"), np.searchsorted(spans.starts, end, side="left"))
    return Spans(np.maximum(spans.starts[inside], start), np.minimum(spans.ends[inside], end))


def complement(spans: Spans, start: int, end: int) -> Spans:
    """The part of [start, end) that is not in the set."""
    inside = clip(spans, start, end)
    starts, ends = np.append(np.int64(start), inside.ends), np.append(inside.starts, np.int64(end))
    real = ends > starts
    return Spans(starts[real], ends[real])


def intersection(left: Spans, right: Spans) -> Spans:
    """The time that is in both sets."""
    if not len(left) or not len(right):
        return EMPTY
    if len(left) > len(right):  # each interval of the first is looked up in the second
        left, right = right, left
    if len(left) <= AT_ONCE:
        _, _, starts, ends = pieces(left.starts, left.ends, right)
        return Spans(starts, ends)
    found = []
    for first in range(0, len(left), AT_ONCE):
        some = slice(first, first + AT_ONCE)
        found.append(pieces(left.starts[some], left.ends[some], right)[2:])
    return Spans(np.concatenate([starts for starts, _ in found]), np.concatenate([ends for _, ends in found]))


def pieces(starts: Times, ends: Times, spans: Spans) -> tuple[Times, Times, Times, Times]:
    """What of each interval, in any order, lies in each part of the set: positions of interval and part, begin and end.
    The parts may touch one another."""
    # For each interval, the consecutive parts that overlap it.
    first = np.searchsorted(spans.ends, starts, side="right")
    beyond = np.searchsorted(spans.starts, ends, side="left")
    counts = np.maximum(beyond - first, 0)
    which = np.repeat(np.arange(len(starts)), counts)
    part = np.repeat(first + counts - np.cumsum(counts), counts)
    part += np.arange(len(part))
    return which, part, np.maximum(starts[which], spans.starts[part]), np.minimum(ends[which], spans.ends[part])


def difference(left: Spans, right: Spans) -> Spans:
    """The time that is in the first set and not in the second."""
    if not len(left) or not len(right):
        return left
    return intersection(left, complement(right, int(left.starts[0]), int(left.ends[-1])))


def covered_before(spans: Spans, moments: Times) -> Times:
    """Time of the set before each moment."""
    if not len(spans):
        return np.zeros(len(moments), np.int64)
    lengths = np.concatenate(([0], np.cumsum(spans.ends - spans.starts)))
    begun = np.searchsorted(spans.starts, moments, side="right")
    beyond = np.maximum(spans.ends[np.maximum(begun, 1) - 1] - moments, 0)
    return np.where(begun > 0, lengths[begun] - beyond, 0)


class LaneTimes(Struct, frozen=True):
    """The moments of many lanes on one line, lane after lane, so that one call works on the sets of all lanes.

    A place on it counts moments, not nanoseconds: sets can be joined and cut there, but not measured."""

    moments: Times
    """All moments, each once, in order."""

    @classmethod
    def of(cls, *moments: Times) -> LaneTimes:
        """For these moments."""
        return cls(np.unique(np.concatenate(moments)))

    def places(self, lanes: Times, moments: Times) -> Times:
        """Where the moments of these lanes are on the line."""
        return lanes * len(self.moments) + np.searchsorted(self.moments, moments)

    def lanes(self, places: Times) -> Times:
        """The lanes of these places."""
        return places // len(self.moments)

    def times(self, places: Times) -> Times:
        """The moments at these places."""
        return self.moments[places % len(self.moments)]

    def parts(self, spans: Spans) -> tuple[Times, Times, Times]:
        """Lanes, starts and ends of the parts of a set on the line."""
        return self.lanes(spans.starts), self.times(spans.starts), self.times(spans.ends)

    def by_lane(self, spans: Spans) -> Iterator[tuple[int, Spans]]:
        """Each lane that has a part of the set, with its part."""
        lanes, starts, ends = self.parts(spans)
        bounds = (np.flatnonzero(np.diff(lanes)) + 1).tolist()
        for first, beyond in pairwise([0, *bounds, len(lanes)] if len(lanes) else []):
            yield int(lanes[first]), Spans(starts[first:beyond], ends[first:beyond])


class LaneSpans(Struct, frozen=True):
    """A set of time for each of many lanes: their parts by lane, then by start."""

    lanes: Times
    starts: Times
    ends: Times

    @classmethod
    def union(cls, lanes: Times, starts: Times, ends: Times) -> LaneSpans:
        """The time of each lane that any of its intervals covers, in any order."""
        every = [line.taken(line.union(lanes, starts, ends)) for line in LaneLine.lines(lanes, starts, ends)]
        return cls.chained(every)

    @classmethod
    def chained(cls, sets: Sequence[LaneSpans]) -> LaneSpans:
        """Sets of other lanes each, in the order of their lanes."""
        none = np.empty(0, np.int64)
        return cls(
            np.concatenate([none, *(one.lanes for one in sets)]),
            np.concatenate([none, *(one.starts for one in sets)]),
            np.concatenate([none, *(one.ends for one in sets)]),
        )

    def __len__(self) -> int:
        return len(self.lanes)

    def of(self, lane: int) -> Spans:
        """The set of one lane."""
        first, beyond = np.searchsorted(self.lanes, [lane, lane + 1])
        return Spans(self.starts[first:beyond], self.ends[first:beyond])

    def covered_ns(self, lanes: Times, starts: Times, ends: Times) -> Times:
        """How much of each interval of a lane lies in that lane's set."""
        found = np.zeros(len(lanes), np.int64)
        for line in LaneLine.lines(self.lanes, self.starts, self.ends, starts, ends):
            spans, rows = line.put(self), line.rows(lanes)
            before, after = (covered_before(spans, line.places(lanes[rows], side[rows])) for side in (starts, ends))
            found[rows] = after - before
        return found

    def pieces(self, lanes: Times, starts: Times, ends: Times) -> tuple[Times, Times, Times]:
        """What of each interval of a lane lies in each part of that lane's set: position of the interval, in order,
        begin and end."""
        none = np.empty(0, np.int64)
        found = [(none, none, none)]
        for line in LaneLine.lines(self.lanes, self.starts, self.ends, starts, ends):
            rows = line.rows(lanes)
            own = lanes[rows]
            which, _, begins, stops = pieces(
                line.places(own, starts[rows]), line.places(own, ends[rows]), line.put(self)
            )
            found.append((rows[which], line.times(begins), line.times(stops)))
        which, begins, stops = (np.concatenate(column) for column in zip(*found, strict=True))
        order = np.argsort(which, kind="stable")
        return which[order], begins[order], stops[order]


class LaneLine(Struct, frozen=True):
    """Lanes one after another on one line of nanoseconds, so that one call works on the sets of all of them."""

    lanes: Times
    """Those on the line, in order."""
    first: int
    """The earliest moment."""
    length: int
    """Of a lane; longer than from the first to the last moment, so that sets of two lanes do not touch."""

    @classmethod
    def lines(cls, lanes: Times, *moments: Times) -> Iterator[LaneLine]:
        """All of these lanes: on one line, or on several where the moments are so many years apart that a number holds
        only the places of some lanes."""
        lanes = np.unique(lanes)
        first = min((int(each.min()) for each in moments if len(each)), default=0)
        length = max((int(each.max()) for each in moments if len(each)), default=0) - first + 2
        together = max(LARGEST_PLACE // length, 1)
        for begin in range(0, len(lanes), together):
            yield cls(lanes[begin : begin + together], first, length)

    def rows(self, lanes: Times) -> Times:
        """Which of these lanes are on the line."""
        return np.flatnonzero(np.isin(lanes, self.lanes))

    def places(self, lanes: Times, moments: Times) -> Times:
        """Where the moments of these lanes are on the line."""
        return np.searchsorted(self.lanes, lanes) * self.length + (moments - self.first)

    def times(self, places: Times) -> Times:
        """The moments at these places."""
        return places % self.length + self.first

    def number(self, places: Times) -> Times:
        """Positions in `lanes` of the lanes of these places."""
        return places // self.length

    def union(self, lanes: Times, starts: Times, ends: Times) -> Spans:
        """The time that the intervals of the lanes on the line cover, on the line."""
        rows = self.rows(lanes)
        own = lanes[rows]
        return union(self.places(own, starts[rows]), self.places(own, ends[rows]))

    def put(self, sets: LaneSpans) -> Spans:
        """The sets of the lanes on the line as one set on it."""
        return self.union(sets.lanes, sets.starts, sets.ends)

    def taken(self, spans: Spans) -> LaneSpans:
        """A set on the line as the sets of its lanes."""
        return LaneSpans(self.lanes[self.number(spans.starts)], self.times(spans.starts), self.times(spans.ends))

    def on_each(self, start: int, end: int) -> Spans:
        """The same interval on every lane."""
        every = np.arange(len(self.lanes)) * self.length - self.first
        return union(every + start, every + end)

    def cut(self, spans: Spans, common: Spans) -> Spans:
        """What of the set on the line lies in a set of time that is the same for all lanes."""
        none = np.empty(0, np.int64)
        found = [(none, none)]
        for first in range(0, len(spans) if len(common) else 0, AT_ONCE):
            places = spans.starts[first : first + AT_ONCE]
            starts = self.times(places)
            which, _, begins, stops = pieces(starts, self.times(spans.ends[first : first + AT_ONCE]), common)
            lane = (places - starts)[which]
            found.append((begins + lane, stops + lane))
        return Spans(*(np.concatenate(side) for side in zip(*found, strict=True)))
