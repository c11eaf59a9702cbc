"""Lays out columns of text in a given width; the key column is never dropped.

If a table is too wide, columns are dropped by priority, and a note lists them. A key that
is longer than its column continues on a second line; a still longer key loses its middle. Keys that would then
look the same keep the part that differs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from warpline.reports.text import ELLIPSIS, cells, fold, shorten, wrap

GAP = 2
"""Spaces between columns."""
TEXT_LINES = 2
"""Maximum lines per cell."""
KEY_SHARE = 0.4
"""Columns are dropped until the keys have this share of the width, if they need it."""
LISTED_TITLES = 8
"""Dropped columns up to this number are named."""
MIN_KEY_ROOM = 24
MIN_TEXT_ROOM = 18
"""Texts other than the key are shortened to this before a column is dropped."""


class Cells(Struct, frozen=True):
    """One column as text."""

    title: str
    texts: Sequence[str]
    is_right: bool = False
    is_key: bool = False
    can_shrink: bool = False
    """Whether a cell may wrap or lose its middle; numbers never do."""
    is_prose: bool = False
    """Whether a text is prose, which wraps between words and is never shortened."""
    priority: int = 1

    def width(self) -> int:
        """Width of the widest cell, or of the title."""
        if all(map(str.isascii, self.texts)):
            return max(len(self.title), max(map(len, self.texts), default=0))
        return max(map(cells, [self.title, *self.texts]))


class Laid(Struct, frozen=True):
    """A table as lines without trailing spaces."""

    head: str
    lines: list[str]
    left_out: tuple[str, ...]
    """Titles of the dropped columns."""


def lay_out(columns: Sequence[Cells], width: int | None) -> Laid:
    """The table in at most `width` terminal columns; unlimited if None."""
    natural = {position: column.width() for position, column in enumerate(columns)}
    kept = list(natural) if width is None else _kept(columns, natural, width)
    rooms = {position: natural[position] for position in kept}
    if width is not None:
        _squeeze(columns, rooms, width)
    head = _joined([_padded(shorten(columns[at].title, rooms[at]), rooms[at], columns[at].is_right) for at in kept])
    blocks = [list(_block(columns[at], rooms[at], natural[at])) for at in kept]
    left_out = tuple(column.title for position, column in enumerate(columns) if position not in rooms)
    return Laid(head, _lines(blocks, [rooms[at] for at in kept]), left_out)


def left_out_note(titles: Sequence[str], width: int | None) -> str:
    """The dropped columns, or their number if they are many."""
    if len(titles) > LISTED_TITLES:
        return f"no room for {len(titles)} more columns in {width}; --format csv or --format json shows them all"
    return f"no room for {', '.join(titles)} in {width} columns" if titles else ""


def _least(column: Cells, natural: int, key_room: int) -> int:
    if column.is_key:
        return min(natural, key_room)
    return min(natural, max(MIN_TEXT_ROOM, cells(column.title))) if column.can_shrink else natural


def _kept(columns: Sequence[Cells], natural: dict[int, int], width: int) -> list[int]:
    """Positions of the shown columns; others are dropped to make room for the keys."""
    kept = list(natural)
    key_room = max(MIN_KEY_ROOM, round(KEY_SHARE * width)) // sum(column.is_key for column in columns)
    least = {at: _least(columns[at], natural[at], key_room) for at in kept}
    while sum(least[at] for at in kept) + GAP * (len(kept) - 1) > width:
        others = [at for at in kept if not columns[at].is_key]
        if not others:
            break
        kept.remove(max(others, key=lambda at: (columns[at].priority, at)))
    return kept


def _squeeze(columns: Sequence[Cells], rooms: dict[int, int], width: int) -> None:
    """Shrink the texts first, and then the widest key."""
    room = width - GAP * (len(rooms) - 1)
    keys = [at for at in rooms if columns[at].is_key]
    for at, wanted in list(rooms.items()):
        if columns[at].can_shrink and at not in keys:
            over = max(0, sum(rooms.values()) - room)
            rooms[at] = max(_least(columns[at], wanted, 0), wanted - over)
    for at in sorted(keys, key=lambda at: rooms[at], reverse=True):
        over = sum(rooms.values()) - room
        if over > 0:
            fair = max(1, (sum(rooms[key] for key in keys) - over) // len(keys))
            rooms[at] = min(rooms[at], max(fair, rooms[at] - over))


def _block(column: Cells, room: int, natural: int) -> Iterator[str | list[str]]:
    """A column's cells in their width: one line each, or several for longer texts."""
    if natural <= room:
        ascii_only = all(map(str.isascii, column.texts))
        pad = str.rjust if column.is_right else str.ljust
        yield from (pad(text, room) if ascii_only else _padded(text, room, column.is_right) for text in column.texts)
        return
    if column.is_prose and not column.is_key:
        yield from (_one_or_more(wrap(text, room), room, column.is_right) for text in column.texts)
        return
    names, most = list(dict.fromkeys(column.texts)), room * TEXT_LINES
    short = distinct(names, most) if column.is_key else {name: shorten(name, most) for name in names}
    yield from (_one_or_more(fold(short[text], room), room, column.is_right) for text in column.texts)


def _one_or_more(lines: list[str], room: int, is_right: bool) -> str | list[str]:
    return _padded(lines[0], room, is_right) if len(lines) == 1 else lines


def distinct(names: Sequence[str], room: int) -> dict[str, str]:
    """Shorten each name to at most `room` so that no two look the same; a name that still would stays in full."""
    short = {name: shorten(name, room) for name in names}
    alike: dict[str, list[str]] = {}
    for name, text in short.items():
        alike.setdefault(text, []).append(name)
    for group in alike.values():
        if len(group) > 1:
            short |= {name: _around(name, position, room) for name, position in _differences(group)}
    seen = Counter(short.values())
    return {name: text if seen[text] == 1 else name for name, text in short.items()}


def _differences(names: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Each name with the position where it starts to differ from all others: in sorted order, from its neighbours."""
    ordered = sorted(names)
    shared = [0, *(_shared(*pair) for pair in pairwise(ordered)), 0]
    yield from ((name, max(shared[at : at + 2])) for at, name in enumerate(ordered))


def _shared(one: str, other: str) -> int:
    """Length of the common prefix of two names."""
    differing = (at for at, (left, right) in enumerate(zip(one, other, strict=False)) if left != right)
    return next(differing, min(len(one), len(other)))


def _around(name: str, position: int, room: int) -> str:
    """Start, differing part and end of a name."""
    third = max(1, room // 3 - 1)
    start = max(third, position - third // 2)
    middle, tail = name[start : start + third], name[max(start + third, len(name) - third) :]
    return shorten(f"{name[:third]}{ELLIPSIS}{middle}{ELLIPSIS}{tail}", room)


def _lines(blocks: list[list[str | list[str]]], rooms: list[int]) -> list[str]:
    lines = []
    for row in zip(*blocks, strict=True):
        tall = max((len(cell) for cell in row if isinstance(cell, list)), default=1)
        for line in range(tall):
            lines.append(_joined([_part(cell, line, room) for cell, room in zip(row, rooms, strict=True)]))
    return lines


def _part(cell: str | list[str], line: int, room: int) -> str:
    if isinstance(cell, str):
        return cell if line == 0 else " " * room
    return _padded(cell[line], room, False) if line < len(cell) else " " * room


def _joined(texts: Sequence[str]) -> str:
    return (" " * GAP).join(texts).rstrip()


def _padded(text: str, room: int, is_right: bool) -> str:
    space = " " * max(0, room - cells(text))
    return space + text if is_right else text + space
