"""The rows of all tracks in the order in which the page keeps them: by track, lane and begin."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl
from msgspec import Struct
from msgspec.structs import replace

from warpline.reports.page.contract import Track
from warpline.reports.page.planes import planes, zigzag
from warpline.trace.arrays import NONE, Bools, Int64s
from warpline.trace.names import distinct

MOST_LANES = 4096


class Rows(Struct, frozen=True):
    """The rows of one table, before they are put in order."""

    track: Int64s
    """Position among the tracks that they are added with."""
    starts: Int64s
    ends: Int64s
    names: Int64s
    depth: Int64s | None = None
    """Lane within the track; computed where it is not known."""
    arguments: Int64s | None = None
    links: Int64s | None = None
    """The row that each belongs to, as a position on the page; NONE for none."""


class _Part(Struct, frozen=True):
    new_lane: Bools
    starts: Int64s
    ends: Int64s
    names: Int64s
    arguments: Int64s
    links: Int64s

    def picture(self, zero_ns: int) -> bytes:
        """Begin as the difference to the end before it, duration, and name."""
        before = np.where(self.new_lane, zero_ns, np.append(zero_ns, self.ends[:-1])[: len(self.ends)])
        return planes(zigzag(self.starts - before)) + planes(self.ends - self.starts) + planes(self.names)

    def relations(self) -> bytes:
        """Argument, and link as a difference."""
        return planes(self.arguments) + planes(zigzag(np.diff(self.links, prepend=NONE)))


class Pack:
    """Tracks and their rows."""

    def __init__(self) -> None:
        self.tracks: list[Track] = []
        self.count = 0
        self._parts: list[_Part] = []

    @property
    def parts(self) -> int:
        """Number of tables added."""
        return len(self._parts)

    def add(self, tracks: Sequence[Track], rows: Rows) -> Int64s:
        """Add one table; the result is where each of its rows lies on the page."""
        lane, order = _lanes(rows)
        place = np.empty(len(order), np.int64)
        place[order] = self.count + np.arange(len(order))
        sizes: list[list[int]] = [[] for _ in tracks]
        for used, count in zip(*(values.tolist() for values in np.unique(lane, return_counts=True)), strict=True):
            mine, number = sizes[used // MOST_LANES], used % MOST_LANES
            mine += [0] * (number + 1 - len(mine))
            mine[number] = count
        self.tracks += [
            replace(track, part=len(self._parts), lanes=lanes) for track, lanes in zip(tracks, sizes, strict=True)
        ]
        nothing = np.zeros(len(order), np.int64)
        self._parts.append(
            _Part(
                _new_lanes(lane[order]),
                rows.starts[order],
                rows.ends[order],
                rows.names[order],
                nothing if rows.arguments is None else rows.arguments[order],
                nothing + NONE if rows.links is None else rows.links[order],
            )
        )
        self.count += len(order)
        return place

    def relink(self, places: Int64s, links: Int64s) -> None:
        """Give the rows of the table added last, at these places within it, these links."""
        self._parts[-1].links[places] = links

    def extent(self) -> tuple[int, int] | None:
        """The first begin and the last end of all rows; None without rows."""
        filled = [part for part in self._parts if len(part.starts)]
        if not filled:
            return None
        return min(int(part.starts.min()) for part in filled), max(int(part.ends.max()) for part in filled)

    def pictures(self, zero_ns: int, first: int, beyond: int) -> bytes:
        """What drawing some of the parts needs, as bytes."""
        return b"".join(part.picture(zero_ns) for part in self._parts[first:beyond])

    def relations(self, first: int, beyond: int) -> bytes:
        """The arguments and links of some of the parts, as bytes."""
        return b"".join(part.relations() for part in self._parts[first:beyond])

    def durations(self) -> Int64s:
        """Of all rows."""
        return np.concatenate([np.zeros(0, np.int64), *(part.ends - part.starts for part in self._parts)])

    def only(self, least_ns: int, start_ns: int, end_ns: int) -> Pack:
        """The rows that last this long, and all between two times; the tracks stay."""
        chosen = [
            (part.ends - part.starts >= least_ns) | ((part.starts < end_ns) & (part.ends > start_ns))
            for part in self._parts
        ]
        kept = np.concatenate([np.zeros(0, np.bool_), *chosen])
        place = np.append(np.where(kept, np.cumsum(kept) - 1, NONE), NONE)
        sizes = [len(track.lanes) for track in self.tracks]
        lane = np.repeat(np.arange(sum(sizes)), [count for track in self.tracks for count in track.lanes])
        counts = np.bincount(lane[kept], minlength=sum(sizes))
        result = Pack()
        result.count = int(kept.sum())
        result.tracks = [
            replace(track, lanes=own.tolist())
            for track, own in zip(self.tracks, np.split(counts, np.cumsum(sizes)[:-1])[: len(sizes)], strict=True)
        ]
        begin = 0
        for part, rows in zip(self._parts, chosen, strict=True):
            own = lane[begin : begin + len(rows)][rows]
            begin += len(rows)
            columns = (part.starts, part.ends, part.names, part.arguments, place[part.links])
            result._parts.append(_Part(_new_lanes(own), *(column[rows] for column in columns)))
        return result


def _new_lanes(lanes: Int64s) -> Bools:
    """Whether each row is the first of its lane."""
    return np.append(True, lanes[1:] != lanes[:-1])[: len(lanes)]


def _lanes(rows: Rows) -> tuple[Int64s, Int64s]:
    """The lane of each row, numbered over all tracks: rows of a lane follow one another and their ends ascend;
    and the order of the rows by lane and begin."""
    depth = rows.depth if rows.depth is not None else np.zeros(len(rows.starts), np.int64)
    lanes = rows.track * MOST_LANES + np.minimum(depth, MOST_LANES - 1)
    order = np.lexsort((rows.starts, lanes))
    lane, starts, ends = (values[order] for values in (lanes, rows.starts, rows.ends))
    limit = starts[1:] if rows.depth is None else ends[1:]
    overlapping = np.unique(lane[1:][(lane[1:] == lane[:-1]) & (limit < ends[:-1])] // MOST_LANES)
    for number in overlapping.tolist():
        mine = np.flatnonzero(rows.track == number)
        mine = mine[np.lexsort((-rows.ends[mine], rows.starts[mine]))]
        free = _first_free(rows.starts[mine], rows.ends[mine])
        lanes[mine] = number * MOST_LANES + np.minimum(free, MOST_LANES - 1)
    return lanes, np.lexsort((rows.starts, lanes)) if len(overlapping) else order


def _first_free(starts: Int64s, ends: Int64s) -> Int64s:
    """For rows by begin that overlap, the first lane that is free."""
    busy_until: list[int] = []
    lanes = np.zeros(len(starts), np.int64)
    for position, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        lane = 0
        while lane < len(busy_until) and busy_until[lane] > start and lane < MOST_LANES:
            lane += 1
        if lane == len(busy_until):
            busy_until.append(end)
        busy_until[min(lane, MOST_LANES - 1)] = end
        lanes[position] = lane
    return lanes


def numbered(frame: pl.DataFrame, keys: Sequence[str], number: Callable[..., int]) -> Int64s:
    """One number a row, computed once for each distinct combination of keys."""
    if not len(frame):
        return np.zeros(0, np.int64)
    if len(keys) == 1 and frame[keys[0]].dtype == pl.Categorical:
        return _numbered_names(frame[keys[0]], number)
    found = frame.select(keys).unique(maintain_order=True)
    numbers = pl.Series("number", [number(*row) for row in found.rows()], dtype=pl.Int64)
    joined = frame.select(keys).join(
        found.with_columns(numbers), on=keys, how="left", nulls_equal=True, maintain_order="left"
    )
    return joined["number"].to_numpy()


def _numbered_names(column: pl.Series, number: Callable[..., int]) -> Int64s:
    """The same for a column of names, numbered in the order in which they first occur."""
    names, which = distinct(column)
    first = np.empty(len(names) + 1, np.int64)
    present = np.zeros(len(names) + 1, np.bool_)
    first[which[::-1]], present[which] = np.arange(len(which) - 1, -1, -1), True
    codes = np.flatnonzero(present)
    codes = codes[np.argsort(first[codes])]
    texts = [*names.to_list(), None]
    numbers = np.zeros(len(names) + 1, np.int64)
    numbers[codes] = [number(texts[code]) for code in codes.tolist()]
    return numbers[which]
