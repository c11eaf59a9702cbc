"""A tolerant parser of single events: the same algorithm as the compiled scanner, in Python.

It is the slow half of the Python reader, used for the pieces that a strict parser rejects, and it follows
`scan.c` function by function. Every rule on what is tolerated is tested by running the two against each
other.
"""

from __future__ import annotations

import re
from mmap import mmap
from typing import Final

from msgspec import Struct, field

from warpline.sources.kineto.decimals import parse_decimal, parse_triple
from warpline.sources.kineto.events import FIELDS, MISSING, Field

Text = bytes | mmap
"""The text of a trace: one window of it, or the whole file mapped."""

EVENT_LIMIT = 64 << 20
"""An event longer than this is malformed: otherwise an unclosed bracket would consume the whole file."""
WASTE_LIMIT = 256 << 20
"""Bytes of malformed events that may be read twice. Beyond this, the search for the next event continues where the
parser stopped instead of at the second byte of the event, so that reading a hostile file takes linear time."""
RESYNC_KEEP: Final = 2048
"""Longest text a resynchronisation pattern can match, rounded up: kept when a window ends."""

_SPACE = re.compile(rb"[\x00-\x20]*")
_SEPARATORS = re.compile(rb"[\x00-\x20,]*")
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_BRACKETS = re.compile(rb'"|\[+|\]+|\{+|\}+')
_TOKEN = re.compile(rb"[^,}\]\x00-\x20]+")
_RESYNC = re.compile(
    rb"""[,\[][\x00-\x20]{0,255}(\{)[\x00-\x20]{0,255}"(?:ph|name|cat|pid|tid|ts|dur|id|args|bp|s)"
    |\}[\x00-\x20]{0,255}(\])[\x00-\x20]{0,255}
     ,[\x00-\x20]{0,255}"(?:displayTimeUnit|baseTimeNanoseconds|traceName|schemaVersion|deviceProperties|INFO)\"""",
    re.VERBOSE,
)
_CLOSING = re.compile(rb"\}[\x00-\x20]{0,255}(\])[\x00-\x20]{0,255}(?:\}[\x00-\x20]{0,255})?\Z")

QUOTE, COMMA, COLON, OPEN, CLOSE, OPEN_LIST, CLOSE_LIST = b'",:{}[]'


class MalformedError(Exception):
    """The event breaks the grammar at `position`."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


class StarvedError(Exception):
    """The text ends inside the event."""


class Event(Struct):
    """One event; strings and labels as raw JSON text, None where absent."""

    phase: int = 0
    category: bytes | None = None
    name: bytes | None = None
    process: bytes | None = None
    thread: bytes | None = None
    time_ns: int = MISSING
    duration_ns: int = MISSING
    args_offset: int = -1
    args_length: int = 0
    fields: dict[str, int | tuple[int, int, int] | bytes] = field(default_factory=dict)


def skip_space(text: Text, position: int, end: int) -> int:
    """The next byte that is not white space."""
    position = _SPACE.match(text, position, end).end()  # type: ignore[union-attr]  # matches always
    if position >= end:
        raise StarvedError
    return position


def skip_separators(text: Text, position: int, end: int) -> int:
    """The next byte that is neither white space nor a comma; may be `end`."""
    return _SEPARATORS.match(text, position, end).end()  # type: ignore[union-attr]  # matches always


def skip_string(text: Text, position: int, end: int) -> int:
    """The position after the closing quote. A string may contain any byte; a backslash escapes the next one."""
    match = _STRING.match(text, position, end)
    if match is None:
        raise StarvedError
    return match.end()


def skip_nested(text: Text, position: int, end: int) -> int:
    """The position after the array or object at `position`. Two counters replace a stack: nesting needs no memory, and
    a missing bracket is noticed at the next closing bracket of the other kind."""
    depth = {OPEN_LIST: 0, OPEN: 0}
    while True:
        match = _BRACKETS.search(text, position, end)
        if match is None:
            raise StarvedError
        position, run = match.start(), match.end() - match.start()
        kind = text[position]
        if kind == QUOTE:
            position = skip_string(text, position, end)
            continue
        if kind in depth:
            depth[kind] += run
        else:
            own, other = (OPEN_LIST, OPEN) if kind == CLOSE_LIST else (OPEN, OPEN_LIST)
            if run >= depth[own] > 0 and depth[other] == 0:
                return position + depth[own]
            if run > depth[own]:
                raise MalformedError(position + depth[own])
            depth[own] -= run
        position += run


def skip_value(text: Text, position: int, end: int) -> int:
    """The position after any value; `inf`, `NaN` and other bare words count as values."""
    first = text[position]
    if first == QUOTE:
        return skip_string(text, position, end)
    if first in (OPEN, OPEN_LIST):
        return skip_nested(text, position, end)
    match = _TOKEN.match(text, position, end)
    if match is None:
        raise MalformedError(position)
    if match.end() >= end:
        raise StarvedError
    return match.end()


def read_key(text: Text, position: int, end: int) -> tuple[bytes, int]:
    """A key and the position of its value."""
    if text[position] != QUOTE:
        raise MalformedError(position)
    after = skip_string(text, position, end)
    key = text[position + 1 : after - 1]
    position = skip_space(text, after, end)
    if text[position] != COLON:
        raise MalformedError(position)
    return key, skip_space(text, position + 1, end)


def next_key(text: Text, position: int, end: int) -> tuple[int, bool]:
    """After a value: the position of the next key, or the position after the object and True."""
    position = skip_space(text, position, end)
    if text[position] == COMMA:
        position = skip_space(text, position + 1, end)
        if text[position] != CLOSE:
            return position, False
    if text[position] == CLOSE:
        return position + 1, True
    raise MalformedError(position)


def read_args(text: Text, position: int, end: int, event: Event) -> int:
    """The wanted arguments of the object at `position`; of a repeated key the last value."""
    start = position
    event.fields.clear()
    position = skip_space(text, position + 1, end)
    closed = text[position] == CLOSE
    position += closed
    while not closed:
        key, value = read_key(text, position, end)
        position = skip_value(text, value, end)
        if key.decode("latin-1") in FIELDS:
            set_argument(event, key.decode(), text[value:position])
        position, closed = next_key(text, position, end)
    event.args_offset, event.args_length = start, position - start
    return position


def set_argument(event: Event, key: str, raw: bytes) -> None:
    """Stores one argument, or drops it if its value has another shape."""
    kept: int | tuple[int, int, int] | bytes | None
    kind = FIELDS[key]
    if kind is Field.TEXT:
        kept = raw
    elif kind is Field.TRIPLE:
        kept = parse_triple(raw)
    else:
        number = parse_decimal(raw, 0)
        kept = None if number == MISSING else number
    if kept is None:
        event.fields.pop(key, None)
    else:
        event.fields[key] = kept


def read_event(text: Text, position: int, end: int) -> tuple[Event, int]:
    """The event whose `{` is at `position`, and the position after it."""
    event = Event()
    position = skip_space(text, position + 1, end)
    closed = text[position] == CLOSE
    position += closed
    while not closed:
        key, value = read_key(text, position, end)
        if key == b"args" and text[value] == OPEN:
            position = read_args(text, value, end, event)
        else:
            position = skip_value(text, value, end)
            set_value(event, key.decode("latin-1"), text[value:position])
        position, closed = next_key(text, position, end)
    return event, position


def set_value(event: Event, key: str, raw: bytes) -> None:
    """Stores the value of one key; others than these are passed over."""
    quoted = raw.startswith(b'"')
    match key:
        case "ph":
            event.phase = raw[1] if quoted and len(raw) > 2 else 0
        case "ts":
            event.time_ns = parse_decimal(raw, 3)
        case "dur":
            event.duration_ns = parse_decimal(raw, 3)
        case "pid":
            event.process = raw
        case "tid":
            event.thread = raw
        case "cat":
            event.category = raw[1:-1] if quoted else None
        case "name":
            event.name = raw[1:-1] if quoted else None
        case "args":
            event.args_offset, event.args_length = -1, 0
            event.fields.clear()


def resynchronise(text: Text, position: int, end: int, final: bool) -> int:
    """The next `{` that looks like an event's, or the `]` that looks like the end of the events, or -1.

    An event follows a comma or the opening bracket and starts with a key that events have; white space
    is bounded so that a window never has to keep more than RESYNC_KEEP bytes.
    """
    match = _RESYNC.search(text, position, end)
    if match is None and final:
        match = _CLOSING.search(text, max(position, end - RESYNC_KEEP), end)
    if match is None:
        return -1
    return match.start(match.lastindex or 1)
