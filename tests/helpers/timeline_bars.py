"""The bars and arrows of a timeline, to compare them with what a reader of the exported file sees."""

from __future__ import annotations

from collections import Counter

from warpline.exports.timeline import ViewerTimeline

Bar = tuple[str, str, str, int, int]
"""Group, track, name, begin and end."""
Arrow = tuple[str, int, str, int]
"""Names and begins of both ends."""


def our_bars(shown: ViewerTimeline) -> Counter[Bar]:
    return Counter(
        (track.group, track.name, name, start - shown.zero_ns, end - shown.zero_ns)
        for track in shown.tracks
        for start, end, name in track.bars.select("start_ns", "end_ns", "name").iter_rows()
    )


def our_arrows(shown: ViewerTimeline) -> Counter[Arrow]:
    rows = {
        (track.table, row): (name, start - shown.zero_ns)
        for track in shown.tracks
        for start, name, row in track.bars.select("start_ns", "name", "row").iter_rows()
    }
    return Counter(
        (*rows[arrows.source, source], *rows[arrows.target, target])
        for arrows in shown.arrows
        for source, target in zip(arrows.from_rows.tolist(), arrows.to_rows.tolist(), strict=True)
    )
