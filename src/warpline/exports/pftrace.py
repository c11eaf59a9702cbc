"""A timeline in Perfetto's own format, a sequence of TracePacket messages.

The numbers of the fields are those of `protos/perfetto/trace` in https://github.com/google/perfetto. Names and details
are interned, and packets are deflated in blocks, as Perfetto's own recorder does.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from itertools import groupby

import polars as pl

from warpline.exports.protobuf import BYTES, fixed64, message, number, tag, text, varint
from warpline.exports.timeline import BAR, ViewerTimeline, ViewerTrack

# Trace and TracePacket.
PACKET = 1
TIMESTAMP, SEQUENCE, TRACK_EVENT, INTERNED, SEQUENCE_FLAGS, COMPRESSED, DESCRIPTOR = 8, 10, 11, 12, 13, 50, 60
STATE_CLEARED, NEEDS_STATE = 1, 2
# TrackEvent.
ANNOTATION, TYPE, NAME_IID, TRACK, FLOW, LAST_FLOW = 4, 9, 10, 11, 47, 48
BEGIN, END = 1, 2
# TrackDescriptor.
UUID, TITLE, PARENT, ORDERING, RANK = 1, 2, 5, 11, 12
EXPLICIT = 3
# InternedData, and its entries.
EVENT_NAMES, DETAIL_NAMES, DETAIL_TEXTS = 2, 3, 29
IID, INTERNED_TEXT = 1, 2
# DebugAnnotation.
DETAIL_IID, DETAIL_NUMBER, DETAIL_TEXT_IID = 1, 4, 17

ONE_SEQUENCE = number(SEQUENCE, 1)
BLOCK_BYTES = 1 << 20
"""Packets are deflated in blocks of about this size."""
FAST = 4
"""Level of deflation: half the time of the default, and within a few percent of its size."""


def pftrace(timeline: ViewerTimeline) -> Iterator[bytes]:
    """The file in blocks."""
    block, size = [], 0
    for packet in _packets(timeline):
        framed = message(PACKET, packet)
        block.append(framed)
        size += len(framed)
        if size >= BLOCK_BYTES:
            yield _deflated(block)
            block, size = [], 0
    if block:
        yield _deflated(block)


def _deflated(block: list[bytes]) -> bytes:
    return message(PACKET, message(COMPRESSED, zlib.compress(b"".join(block), FAST)))


def _packets(timeline: ViewerTimeline) -> Iterator[bytes]:
    known = _Interned(timeline)
    yield ONE_SEQUENCE + number(SEQUENCE_FLAGS, STATE_CLEARED) + known.packet()
    leaving, arriving = _flows(timeline)
    zero_ns, uuid = timeline.zero_ns, 0
    for rank, (group, tracks) in enumerate(groupby(timeline.tracks, key=lambda track: track.group)):
        uuid += 1
        parent = uuid
        yield _descriptor(number(UUID, parent), text(TITLE, group), number(ORDERING, EXPLICIT), number(RANK, rank))
        for place, track in enumerate(tracks):
            uuid += 1
            yield _descriptor(number(UUID, uuid), text(TITLE, track.name), number(PARENT, parent), number(RANK, place))
            outgoing, incoming = leaving.get(track.table, {}), arriving.get(track.table, {})
            yield from _bars(track, zero_ns, uuid, known, outgoing, incoming)


def _descriptor(*fields: bytes) -> bytes:
    return ONE_SEQUENCE + message(DESCRIPTOR, *fields)


def _bars(
    track: ViewerTrack, zero_ns: int, uuid: int, known: _Interned, leaving: dict[int, bytes], arriving: dict[int, bytes]
) -> Iterator[bytes]:
    """A begin and an end for each bar, in the order in which they happen on this track."""
    details = [known.details[name] for name in track.bars.columns[len(BAR) :]]
    where = number(TRACK, uuid)
    begins = number(TYPE, BEGIN) + where
    flags = ONE_SEQUENCE + number(SEQUENCE_FLAGS, NEEDS_STATE)
    ends = flags + message(TRACK_EVENT, number(TYPE, END) + where)
    time, event = tag(TIMESTAMP, 0), tag(TRACK_EVENT, BYTES)
    open_ends: list[int] = []
    for start, end, name, row, *values in track.bars.rows():
        while open_ends and open_ends[-1] <= start:
            yield time + varint(open_ends.pop() - zero_ns) + ends
        parts = [begins, known.names[name], leaving.get(row, b""), arriving.get(row, b"")]
        for detail, value in zip(details, values, strict=True):
            if value is not None:
                parts.append(known.detail(detail, value))
        content = b"".join(parts)
        yield time + varint(start - zero_ns) + flags + event + varint(len(content)) + content
        open_ends.append(end)
    while open_ends:
        yield time + varint(open_ends.pop() - zero_ns) + ends


def _flows(timeline: ViewerTimeline) -> tuple[dict[str, dict[int, bytes]], dict[str, dict[int, bytes]]]:
    """By table and row, the fields for arrows that leave and arrive."""
    leaving: dict[str, dict[int, bytes]] = {}
    arriving: dict[str, dict[int, bytes]] = {}
    for arrows in timeline.arrows:
        for field, table, ends, into in (
            (FLOW, arrows.source, arrows.leaving(), leaving),
            (LAST_FLOW, arrows.target, arrows.arriving(), arriving),
        ):
            fields = into.setdefault(table, {})
            for row, numbers in ends.items():
                fields[row] = fields.get(row, b"") + b"".join(fixed64(field, one) for one in numbers)
    return leaving, arriving


class _Interned:
    """Every name, detail and text of the timeline once, by number."""

    def __init__(self, timeline: ViewerTimeline) -> None:
        names: dict[str, int] = {}
        details: dict[str, int] = {}
        self._texts: dict[str, int] = {}
        self._shown: dict[tuple[bytes, str], bytes] = {}
        # The tracks of a table at once: there may be a hundred thousand, with a bar each.
        alike: dict[tuple[tuple[str, pl.DataType], ...], list[pl.DataFrame]] = {}
        for track in timeline.tracks:
            alike.setdefault(tuple(track.bars.schema.items()), []).append(track.bars)
        for bars in alike.values():
            _add(names, _distinct([one["name"] for one in bars]))
            columns = bars[0].columns[len(BAR) :]
            _add(details, columns)
            for column in columns:
                if not bars[0].schema[column].is_numeric():
                    _add(self._texts, _distinct([one[column] for one in bars]))
        self.names = {name: number(NAME_IID, iid) for name, iid in names.items()}
        self.details = {name: number(DETAIL_IID, iid) for name, iid in details.items()}
        self._entries = ((EVENT_NAMES, names), (DETAIL_NAMES, details), (DETAIL_TEXTS, self._texts))

    def packet(self) -> bytes:
        """The field that holds all of it."""
        return message(
            INTERNED,
            *(
                message(field, number(IID, iid), text(INTERNED_TEXT, value))
                for field, entries in self._entries
                for value, iid in entries.items()
            ),
        )

    def detail(self, name: bytes, value: str | int) -> bytes:
        """One detail of a bar."""
        if not isinstance(value, str):
            return message(ANNOTATION, name, number(DETAIL_NUMBER, value))
        found = self._shown.get((name, value))
        if found is None:
            found = message(ANNOTATION, name, number(DETAIL_TEXT_IID, self._texts[value]))
            self._shown[name, value] = found
        return found


def _distinct(columns: list[pl.Series]) -> list[str]:
    return pl.concat(columns).drop_nulls().unique(maintain_order=True).to_list()


def _add(numbers: dict[str, int], values: list[str]) -> None:
    for value in values:
        numbers.setdefault(value, len(numbers) + 1)
