"""The keys of the file before and after the `traceEvents` array.

Kineto has written its header before the events, after them, and on both sides; re-serialised files put
`traceEvents` first or last. A value that is not legal JSON costs that value and a note, not the file.
"""

from __future__ import annotations

import re
from typing import Any, Final

from msgspec import Struct, field

from warpline.errors import UnreadableFile
from warpline.sources.kineto import tolerant
from warpline.sources.kineto.text import decode_json, decode_string
from warpline.sources.kineto.tolerant import MalformedError, StarvedError, Text

HEADER_LIMIT: Final = 64 << 20
"""The events must begin, and the keys behind them end, within this many bytes. The longest header seen in
public traces is 32 KB; a compressed bomb of spaces ends here."""
SHOWN_BYTES: Final = 12
"""Characters of an unrecognised file that the error message shows."""
BOM: Final = b"\xef\xbb\xbf"

_EVENTS: Final = re.compile(rb'"traceEvents"[\x00-\x20]*:[\x00-\x20]*\[')
_KNOWN_KEY: Final = re.compile(
    rb'(?:,|(?<![\x00-\x20])(?>[\x00-\x20]*?\n))[\x00-\x20]*+("(?:displayTimeUnit|baseTimeNanoseconds|traceName|schemaVersion|deviceProperties|'
    rb'distributedInfo|record_shapes|with_stack|profile_memory|trace_id)"[\x00-\x20]*:)'
)


class Header(Struct):
    """The keys found so far, and where the events begin."""

    events_start: int = -1
    """Position behind the `[` of the events, -1 when the text ends before it."""
    bare_list: bool = False
    """The file is only the list of events, as legacy exports are."""
    keys: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def not_a_trace(reason: str) -> UnreadableFile:
    return UnreadableFile(
        "not-a-trace",
        f"this is not a torch.profiler trace: {reason}",
        "give the .json or .json.gz that prof.export_chrome_trace() or tensorboard_trace_handler() wrote",
    )


def empty_file() -> UnreadableFile:
    return UnreadableFile("empty-file", "the trace is empty", "record it again; a killed profiler writes nothing")


def read_header(text: Text, complete: bool) -> Header:
    """The header in the first bytes of a file. `complete` says that no longer prefix will be given."""
    end = len(text)
    header = Header()
    start = len(BOM) if text[: len(BOM)] == BOM else 0
    try:
        position = tolerant.skip_space(text, start, end)
        if end - position < SHOWN_BYTES and not complete:
            return header
        if text[position] == tolerant.OPEN_LIST:
            header.bare_list = True
            first = tolerant.skip_space(text, position + 1, end)
            if text[first] not in (tolerant.OPEN, tolerant.CLOSE_LIST):
                raise not_a_trace("its list does not contain events")
            header.events_start = position + 1
            return header
    except StarvedError:
        if not complete:
            return header
        if end == 0:
            raise empty_file() from None
        raise not_a_trace("it contains only white space") from None
    if text[position] != tolerant.OPEN:
        shown = text[position : position + SHOWN_BYTES].decode("latin-1")
        raise not_a_trace(f"it begins with {shown!r} instead of an object or a list")
    # Search before parsing, so that a file of any length that is not a trace is rejected quickly.
    if _EVENTS.search(text, position, end) is not None:
        _read_keys(text, position + 1, end, header, complete)
    if complete and header.events_start < 0:
        where = "it has" if end < HEADER_LIMIT else f"its first {HEADER_LIMIT >> 20} MiB have"
        raise not_a_trace(f"{where} no traceEvents array")
    return header


def _read_keys(text: Text, position: int, end: int, header: Header, complete: bool) -> None:
    """Keys up to the events. After a lost bracket or quote, search for the array's name."""
    try:
        while True:
            position = tolerant.skip_separators(text, position, end)
            if position >= end:
                raise StarvedError
            if text[position] == tolerant.CLOSE:
                raise not_a_trace("its top-level object has no traceEvents array")
            key, value = tolerant.read_key(text, position, end)
            if key == b"traceEvents" and text[value] == tolerant.OPEN_LIST:
                header.events_start = value + 1
                return
            position = tolerant.skip_value(text, value, end)
            _keep(header, key, text[value:position])
    except StarvedError:
        if not complete:
            return
    except MalformedError:
        pass
    match = _EVENTS.search(text, position, end)
    if match is not None:
        header.events_start = match.end()
        header.notes.append(f"The header is damaged near byte {position}; keys between there and the events are lost.")


def read_tail(text: bytes, header: Header) -> None:
    """Add the keys after the events. `text` starts after the array's `]` and runs to the file's end."""
    end = len(text)
    position = 0
    while True:
        try:
            position = tolerant.skip_separators(text, position, end)
            if position >= end or text[position] == tolerant.CLOSE:
                return
            key, value = tolerant.read_key(text, position, end)
            position = tolerant.skip_value(text, value, end)
            _keep(header, key, text[value:position])
        except (MalformedError, StarvedError):
            header.notes.append("The keys after the events are damaged; readable ones are kept.")
            match = _KNOWN_KEY.search(text, position + 1)
            if match is None:
                return
            position = match.start(1)


def _keep(header: Header, key: bytes, raw: bytes) -> None:
    name = decode_string(key)
    try:
        header.keys[name] = decode_json(raw)
    except (ValueError, RecursionError):
        header.notes.append(f"The header's {name!r} is invalid JSON and was ignored.")
