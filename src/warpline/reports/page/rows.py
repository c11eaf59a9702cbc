"""The rows of all tracks in the order in which the page keeps them: by track, lane and start."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from warpline.reports.page.contract import Track
from warpline.reports.page.planes import planes, zigzag
from warpline.timeline.lanes import pack
from warpline.timeline.tracks import BarTrack
from warpline.trace.arrays import NONE, Bools, Int64s
from warpline.trace.nesting import ROUNDED_TWICE, clock_tick_ns


class _Part(Struct, frozen=True):
    new_lane: Bools
    starts: Int64s
    ends: Int64s
    names: Int64s
    arguments: Int64s
    links: Int64s

    def picture(self, zero_ns: int) -> bytes:
        """Start as the difference to the end before it, duration, and name."""
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

    def add(
        self, tracks: Sequence[BarTrack], names: Int64s, arguments: Int64s, links: Int64s, is_rounded: bool = False
    ) -> Int64s:
        """Add the tracks of one table; the other arrays are parallel to the bars of all of them, one track after the
        other. The result is where each bar lies on the page.

        Links are where the bars lie that they belong to; NONE for none. Times that `is_rounded` may make bars seem to
        outlast those around them.
        """
        starts, ends = (
            np.concatenate([np.zeros(0, np.int64), *(getattr(track, name) for track in tracks)])
            for name in ("starts", "ends")
        )
        tick_ns = ROUNDED_TWICE * clock_tick_ns(starts, ends) if is_rounded else 0
        lanes = [_lanes(track, tick_ns) for track in tracks]
        self.tracks += [
            Track(track.kind, track.label, len(self._parts), np.bincount(own).tolist(), track.device, track.thread)
            for track, own in zip(tracks, lanes, strict=True)
        ]
        before = np.cumsum([0, *(int(own.max(initial=-1)) + 1 for own in lanes)])
        numbered = (own + first for own, first in zip(lanes, before, strict=False))
        lane = np.concatenate([np.zeros(0, np.int64), *numbered])
        order = np.lexsort((starts, lane))
        columns = (starts, ends, names, arguments, links)
        self._parts.append(_Part(_new_lanes(lane[order]), *(column[order] for column in columns)))
        place = np.empty(len(order), np.int64)
        place[order] = self.count + np.arange(len(order))
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
        first = 0
        for part, rows in zip(self._parts, chosen, strict=True):
            own = lane[first : first + len(rows)][rows]
            first += len(rows)
            columns = (part.starts, part.ends, part.names, part.arguments, place[part.links])
            result._parts.append(_Part(_new_lanes(own), *(column[rows] for column in columns)))
        return result


def _new_lanes(lanes: Int64s) -> Bools:
    """Whether each row is the first of its lane."""
    return np.append(True, lanes[1:] != lanes[:-1])[: len(lanes)]


def _lanes(track: BarTrack, tick_ns: int) -> Int64s:
    """The line of each bar within its track: one for each lane and depth."""
    lanes, depths = pack(track.starts, track.ends, tick_ns)
    return np.unique(lanes * (int(depths.max(initial=0)) + 1) + depths, return_inverse=True)[1]
