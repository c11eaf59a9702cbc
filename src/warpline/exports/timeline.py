"""A trace as tracks of bars and arrows between them: what viewers such as Perfetto draw.

All times are those of the trace, to the nanosecond. On one track bars nest or follow each other; bars that overlap
otherwise (kernels that run at the same time, clocks that differ) lie on further tracks of the same name, because
viewers drop or cut them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from msgspec import Struct

from warpline.trace.arrays import NONE, Int64s, integers
from warpline.trace.nesting import order_for_nesting
from warpline.trace.trace import Trace

BAR = ("start_ns", "end_ns", "name", "row")
"""Columns of every bar; further ones are its details."""
LAUNCH, AUTOGRAD = "launch", "autograd"


class Track(Struct, frozen=True):
    """A named row of bars within a group."""

    group: str
    name: str
    table: str
    """Table whose rows the bars are; `idle` or `findings` for what was found."""
    bars: pl.DataFrame
    """Sorted so that a bar stands before those within it: the columns of `BAR`, then details that a viewer shows when
    the bar is clicked."""


class Arrows(Struct, frozen=True):
    """Arrows from one bar to another, by kind; an arrow's number is unique in the timeline."""

    kind: str
    source: str
    target: str
    """Tables."""
    from_rows: Int64s
    to_rows: Int64s
    first_number: int

    def __len__(self) -> int:
        return len(self.from_rows)

    def leaving(self) -> dict[int, list[int]]:
        """Numbers of the arrows that leave each row of the source."""
        found: dict[int, list[int]] = {}
        for number, row in enumerate(self.from_rows.tolist(), self.first_number):
            found.setdefault(row, []).append(number)
        return found

    def arriving(self) -> dict[int, list[int]]:
        """The same for those that arrive."""
        return {row: [number] for number, row in enumerate(self.to_rows.tolist(), self.first_number)}


class Timeline(Struct, frozen=True):
    """Tracks in the order in which they are shown, and arrows."""

    tracks: tuple[Track, ...]
    arrows: tuple[Arrows, ...]

    @property
    def bar_count(self) -> int:
        """Bars of all tracks."""
        return sum(len(track.bars) for track in self.tracks)

    @property
    def arrow_count(self) -> int:
        """Arrows of all kinds."""
        return sum(map(len, self.arrows))

    @property
    def zero_ns(self) -> int:
        """What viewers call zero: the trace's zero, or its first moment if that lies before."""
        return min([0, *(int(track.bars["start_ns"].min()) for track in self.tracks if len(track.bars))])  # type: ignore[arg-type]


def arrows_of(trace: Trace) -> tuple[Arrows, ...]:
    """From each launch to what it launched, and from each forward op to its backward op."""
    calls, forwards = trace.gpu.api_id, trace.ops.forward_op
    work, ops = np.flatnonzero(calls != NONE), np.flatnonzero(forwards != NONE)
    return (
        Arrows(LAUNCH, "api", "gpu", calls[work], work, 1),
        Arrows(AUTOGRAD, "ops", "ops", forwards[ops], ops, 1 + len(work)),
    )


def tracks_of(group: str, name: str, table: str, bars: pl.DataFrame) -> Iterator[Track]:
    """The bars as one track, or as several if they do not nest; nothing for no bars."""
    if not len(bars):
        return
    starts, ends = integers(bars["start_ns"]), integers(bars["end_ns"])
    order = order_for_nesting(np.zeros_like(starts), starts, ends)
    ordered, lanes = bars[order], _lanes(starts[order].tolist(), ends[order].tolist())
    count = int(lanes.max()) + 1
    for lane in range(count):
        mine = ordered if count == 1 else ordered.filter(pl.Series(lanes == lane))
        yield Track(group, name if lane == 0 else f"{name} ({lane + 1})", table, mine)


def _lanes(starts: list[int], ends: list[int]) -> Int64s:
    """The first lane on which each bar nests in, or follows, those before it; bars are sorted for nesting."""
    lanes = np.zeros(len(starts), np.int64)
    open_ends: list[list[int]] = []
    for place, (start, end) in enumerate(zip(starts, ends, strict=True)):
        for lane, stack in enumerate(open_ends):
            while stack and stack[-1] <= start:
                stack.pop()
            if not stack or stack[-1] >= end:
                stack.append(end)
                lanes[place] = lane
                break
        else:
            lanes[place] = len(open_ends)
            open_ends.append([end])
    return lanes
