"""The events of a torch.profiler trace as dictionaries, in the order of the file and with bounded memory.

Times keep every digit: numbers with a fraction are kept as written. What the readers of traces tolerate is tolerated
here in the same way, because it is their parser.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec import Struct, field

from warpline.sources.kineto import tolerant
from warpline.sources.kineto.blocks import TextWindow, ahead, scan_blocks
from warpline.sources.kineto.damage import DAMAGED_HEADER, MALFORMED_EVENT
from warpline.sources.kineto.header import HEADER_LIMIT, Header, read_tail
from warpline.sources.kineto.python_scan import PythonScanner, RejectedError
from warpline.sources.kineto.scanner import ScanStep, Status
from warpline.sources.kineto.text import decode_string

Event = dict[str, Any]
Sink = Callable[[list[Event]], None]
MALFORMED: Event = {"ph": "M", "name": MALFORMED_EVENT}
"""Stands for an event that cannot be read."""
DAMAGED: Event = {"ph": "M", "name": DAMAGED_HEADER}
"""Stands for a damaged place of the header."""
STAND_INS = (MALFORMED_EVENT, DAMAGED_HEADER)

_decode = msgspec.json.Decoder(list[Event], float_hook=lambda text: msgspec.Raw(text.encode())).decode
_decode_value = msgspec.json.Decoder(float_hook=lambda text: msgspec.Raw(text.encode())).decode
_REJECTED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


class Around(Struct):
    """What a trace has besides its events."""

    bare_list: bool = False
    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)
    notes: int = 0
    """Damaged places in these keys."""
    truncated: bool = False
    """The file ends before its events do."""


def read_events(blocks: Iterable[bytes], begin: Callable[[Around], Sink]) -> Around:
    """Call ``begin`` with what precedes the events, and what it returns with each list of events."""
    around = Around()
    with ahead(blocks) as pieces:
        window = TextWindow(pieces)
        header = window.read_header()
        around.bare_list, around.before = header.bare_list, header.keys
        scanner = _Scanner(begin(around))
        step = scan_blocks(scanner, window, header.events_start)
        if step.status is Status.DONE:
            tail, length = window.rest(step.position)
            after = Header()
            if length <= HEADER_LIMIT and not header.bare_list:
                read_tail(tail, after)
            around.after, around.notes = after.keys, len(after.notes)
    around.notes += len(header.notes)
    around.truncated = step.status is Status.TRUNCATED
    return around


class _Scanner(PythonScanner):
    """Hands every event on instead of keeping it."""

    def __init__(self, sink: Sink) -> None:
        super().__init__()
        self._sink = sink

    def skip(self, offset: int) -> None:
        super().skip(offset)
        self._sink([MALFORMED])

    def decode(self, block: bytes, offset: int) -> None:
        try:
            events = _decode(b"[" + block + b"]")
        except _REJECTED as error:
            raise RejectedError from error
        self._sink(events)

    def keep(self, event: tolerant.Event) -> None:
        """Events are handed on as dictionaries (`one_event`), not as columns."""

    def one_event(self, text: tolerant.Text, base: int, start: int, end: int, final: bool) -> int | ScanStep:
        before = self.skipped
        outcome = super().one_event(text, base, start, end, final)
        if isinstance(outcome, int) and self.skipped == before:
            self._sink([read_object(text[start:outcome])])
        return outcome


def read_object(raw: bytes, within: bool = False) -> Event:
    """An event, or the arguments within one, that a strict parser rejects: key by key, without the values that cannot
    be read."""
    try:
        return _decode(b"[" + raw + b"]")[0]
    except _REJECTED:
        pass
    found: Event = {}
    end = len(raw)
    try:
        position = tolerant.skip_space(raw, 1, end)
        closed = raw[position] == tolerant.CLOSE
        while not closed:
            key, start = tolerant.read_key(raw, position, end)
            after = tolerant.skip_value(raw, start, end)
            found[decode_string(key)] = _value(raw[start:after], within)
            position, closed = tolerant.next_key(raw, after, end)
    except (tolerant.MalformedError, tolerant.StarvedError):
        pass
    return found


def _value(raw: bytes, within: bool) -> Any:
    if raw.startswith(b"{") and not within:
        return read_object(raw, within=True)
    if raw.startswith(b'"'):
        return decode_string(raw[1:-1])
    if _NUMBER.fullmatch(raw):
        return int(raw) if raw.lstrip(b"-").isdigit() and len(raw) < 20 else msgspec.Raw(raw)
    try:
        return _decode_value(raw)
    except _REJECTED:
        return None
