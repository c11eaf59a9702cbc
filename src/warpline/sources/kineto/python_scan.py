"""The reader for machines without a C compiler: the same columns from msgspec and numpy.

Blocks of events are decoded strictly by msgspec. That is exact whatever the guess at a block's end: the
block begins at an event, and a list that msgspec accepts as a whole holds exactly the events that a parser
going one by one would find there. A block that it rejects is cut down, and what remains is read by the
tolerant parser, so that one bad event costs a few events' worth of slow reading.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from warpline.sources.kineto import tolerant
from warpline.sources.kineto.accumulate import KEYS, Accumulator
from warpline.sources.kineto.decimals import parse_decimal, parse_times, parse_triple
from warpline.sources.kineto.events import RawEvents
from warpline.sources.kineto.fields import FIELDS, MISSING, Field
from warpline.sources.kineto.scanner import ScanStep, Status, address_of
from warpline.sources.kineto.tolerant import Text

BLOCK = 256 << 10
"""Bytes decoded at once: large enough to amortise the call, small enough to stay in the cache."""
SMALL_BLOCK = 4 << 10
"""A rejected block of this size is read by the tolerant parser."""
SEARCH = 64 << 10
"""How far after a block's nominal end a boundary is searched for."""

_BLOCK_END: Final = re.compile(rb',[\x00-\x20]{0,255}\{[\x00-\x20]{0,255}"(?:ph|name|cat|pid|tid|ts|dur|id|args|bp|s)"')
_ARGS_KEY: Final = re.compile(rb'"args"[\x00-\x20]*:[\x00-\x20]*')
# msgspec decodes escapes, the scanners compare raw bytes. A key, phase or number spelled with escaped
# letters or digits would be read differently, so text with such escapes goes to the tolerant parser.
_ESCAPED_WORD: Final = re.compile(rb"\\u00(?:3[0-9]|[4-7][0-9a-fA-F]|2[0b-eB-E])")
_PHASES: Final = {chr(code): code for code in range(0x21, 0x7F) if chr(code) not in '"\\/'} | {"": 0}
_INT64: Final = 1 << 63

_TYPES: Final[dict[Field, Any]] = {
    Field.INTEGER: int | str | None,
    Field.TRIPLE: list[int | str] | str | None,
    Field.TEXT: msgspec.Raw,
}


class _Event(msgspec.Struct, gc=False):
    ph: str = ""
    cat: str | msgspec.UnsetType = msgspec.UNSET
    name: str | msgspec.UnsetType = msgspec.UNSET
    pid: int | str | msgspec.UnsetType = msgspec.UNSET
    tid: int | str | msgspec.UnsetType = msgspec.UNSET
    ts: msgspec.Raw = None  # type: ignore[assignment]  # None: absent; msgspec has no union with Raw
    dur: msgspec.Raw = None  # type: ignore[assignment]
    args: msgspec.Raw = None  # type: ignore[assignment]


_Arguments: Final = msgspec.defstruct(
    "_Arguments",
    [(f"field{index}", _TYPES[kind], None) for index, kind in enumerate(FIELDS.values())],
    rename={f"field{index}": key for index, key in enumerate(KEYS)},
    gc=False,
)
_KINDS: Final = list(FIELDS.values())
_decode_events: Final = msgspec.json.Decoder(list[_Event]).decode
_decode_arguments: Final = msgspec.json.Decoder(list[_Arguments]).decode  # type: ignore[valid-type]
_REJECTED: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class RejectedError(Exception):
    """The strict decoders cannot decode this block reliably."""


class PythonScanner:
    """See `Scanner`."""

    def __init__(self) -> None:
        self._events = Accumulator()
        self._slow: list[tolerant.Event] = []
        self._block = BLOCK
        self.skipped = 0
        self._first_skipped = -1
        self._waste = 0
        self._resynchronising = False

    def feed(self, text: Text, base: int, start: int, final: bool) -> ScanStep:
        end = len(text)
        position = start
        while True:
            if self._resynchronising:
                found = tolerant.resynchronise(text, position, end, final)
                if found < 0 and final:
                    return ScanStep(Status.TRUNCATED, end)
                if found < 0:
                    return ScanStep(Status.MORE, max(position, end - tolerant.RESYNC_KEEP))
                self._resynchronising = False
                position = found
            position = tolerant.skip_separators(text, position, end)
            if position >= end:
                return ScanStep(Status.TRUNCATED if final else Status.MORE, position)
            if text[position] == tolerant.CLOSE_LIST:
                return ScanStep(Status.DONE, position + 1)
            if text[position] != tolerant.OPEN:
                self.skip(base + position)
                continue
            after = self._strict_block(text, base, position, end)
            outcome = after if after > 0 else self.one_event(text, base, position, end, final)
            if isinstance(outcome, ScanStep):
                return outcome
            position = outcome

    def events(self) -> RawEvents:
        self._flush()
        return self._events.events(self.skipped, self._first_skipped)

    def skip(self, offset: int) -> None:
        """Counts the malformed event at `offset`; the search for the next one begins."""
        self.skipped += 1
        if self._first_skipped < 0:
            self._first_skipped = offset
        self._resynchronising = True

    def forget(self) -> None:
        """Drop the events that the tolerant parser read since the last block."""
        self._slow = []

    def _flush(self) -> None:
        if self._slow:
            self._events.append_events(self._slow)
            self._slow = []

    def one_event(self, text: Text, base: int, start: int, end: int, final: bool) -> int | ScanStep:
        """Reads one event tolerantly; returns the position to continue from, or the step that ends this window."""
        limit = min(end, start + tolerant.EVENT_LIMIT)
        try:
            event, after = tolerant.read_event(text, start, limit)
        except tolerant.MalformedError as error:
            failed = error.position
        except tolerant.StarvedError:
            failed = limit
            if limit - start < tolerant.EVENT_LIMIT:
                if not final:
                    return ScanStep(Status.MORE, start)
                # The file's end, unless there are more events: then the event was malformed, not cut off.
                if tolerant.resynchronise(text, start + 1, end, final) < 0:
                    return ScanStep(Status.TRUNCATED, end)
        else:
            if event.args_offset >= 0:
                event.args_offset += base
            self._slow.append(event)
            return after
        self._waste += failed - start
        self.skip(base + start)
        return failed if self._waste > tolerant.WASTE_LIMIT else start + 1

    def _strict_block(self, text: Text, base: int, start: int, end: int) -> int:
        """Decodes as many events as fit a block; returns the position after them, or 0 if that fails."""
        while True:
            nominal = start + self._block
            match = _BLOCK_END.search(text, nominal, min(end, nominal + SEARCH))
            if match is not None:
                try:
                    self.decode(text[start : match.start()], base + start)
                except RejectedError:
                    pass
                else:
                    self._block = min(self._block * 2, BLOCK)
                    return match.start()
            if self._block <= SMALL_BLOCK:
                return 0
            self._block //= 4

    def decode(self, block: bytes, offset: int) -> None:
        """Appends the events of a block of valid JSON, all of them or none."""
        if b"\\u00" in block and _ESCAPED_WORD.search(block):
            raise RejectedError
        whole = b"[" + block + b"]"
        try:
            events = _decode_events(whole)
            phases = [_PHASES[event.ph] for event in events]
        except (*_REJECTED, KeyError) as error:
            raise RejectedError from error
        offsets, lengths = _args_spans(events, whole)
        present = [row for row, length in enumerate(lengths) if length]
        columns = list(zip(*_arguments([events[row].args for row in present]), strict=True))
        self._flush()
        keep = self._events
        dense = (
            phases,
            keep.code_categories([event.cat for event in events]),
            keep.code_names([event.name for event in events]),
            *keep.code_labels([event.pid for event in events], [event.tid for event in events]),
            parse_times([event.ts for event in events]),
            parse_times([event.dur for event in events]),
            [-1 if length == 0 else at + offset - 1 for at, length in zip(offsets, lengths, strict=True)],
            lengths,
        )
        keep.append(dense, _sparse(present, columns), _texts(present, columns))


def _args_spans(events: list[_Event], whole: bytes) -> tuple[list[int], list[int]]:
    """Where each event's arguments lie in the block, and their lengths; 0 if they are not an object."""
    present = [row for row, event in enumerate(events) if event.args is not None]
    raws = [events[row].args for row in present]
    found = [match.end() for match in _ARGS_KEY.finditer(whole)]
    if len(found) != len(present):
        # As many keys as values would mean that each key is an event's own. Here one is nested or quoted.
        origin = address_of(whole)
        found = [address_of(raw) - origin for raw in raws]
    sizes = [len(memoryview(raw)) for raw in raws]
    all_objects = bytes(map(whole.__getitem__, found)).count(b"{") == len(found)
    if all_objects and len(found) == len(events):
        return found, sizes
    offsets, lengths = [0] * len(events), [0] * len(events)
    for row, at, length in zip(present, found, sizes, strict=True):
        if all_objects or whole[at] == tolerant.OPEN:
            offsets[row], lengths[row] = at, length
    return offsets, lengths


def _arguments(raws: list[msgspec.Raw]) -> list[tuple[Any, ...]]:
    """The wanted arguments of each event in the order of FIELDS, None if absent; one by one if a type is unexpected."""
    try:
        return list(map(msgspec.structs.astuple, _decode_arguments(b"[" + b",".join(raws) + b"]")))
    except _REJECTED:
        return [_one_arguments(bytes(raw)) for raw in raws]


def _one_arguments(raw: bytes) -> tuple[Any, ...]:
    try:
        return msgspec.structs.astuple(_decode_arguments(b"[" + raw + b"]")[0])
    except _REJECTED:
        event = tolerant.Event()
        try:
            after = tolerant.read_args(raw, 0, len(raw), event)
        except (tolerant.MalformedError, tolerant.StarvedError) as error:
            raise RejectedError from error
        if after != len(raw):
            raise RejectedError from None
        return tuple(event.fields.get(key) for key in KEYS)


def _sparse(rows: list[int], columns: list[tuple[Any, ...]]) -> dict[int, tuple[list[int], list[Any]]]:
    """Rows and values of each numeric argument. Most are absent from most blocks: those cost one count."""
    sparse: dict[int, tuple[list[int], list[Any]]] = {}
    for index, column in enumerate(columns):
        kind = _KINDS[index]
        if kind is Field.TEXT or column.count(None) == len(column):
            continue
        found = [row for row, value in zip(rows, column, strict=True) if value is not None]
        values: list[Any] = [value for value in column if value is not None]
        if kind is Field.TRIPLE:
            values = [_triple(value) for value in values]
        elif set(map(type, values)) != {int} or not -_INT64 < min(values) <= max(values) < _INT64:
            values = [None if (number := _integer(value)) == MISSING else number for value in values]
        if None in values:
            found = [row for row, value in zip(found, values, strict=True) if value is not None]
            values = [value for value in values if value is not None]
        if found:
            sparse[index] = (found, values)
    return sparse


def _texts(rows: list[int], columns: list[tuple[Any, ...]]) -> dict[int, tuple[list[int], list[bytes]]]:
    """Rows and raw text of each text argument."""
    texts: dict[int, tuple[list[int], list[bytes]]] = {}
    for index, column in enumerate(columns):
        if _KINDS[index] is Field.TEXT and column.count(None) < len(column):
            found = [row for row, value in zip(rows, column, strict=True) if value is not None]
            texts[index] = (found, [bytes(value) for value in column if value is not None])
    return texts


def _integer(value: int | str) -> int:
    if isinstance(value, str):
        return parse_decimal(b'"' + value.encode() + b'"', 0)
    return value if -_INT64 < value < _INT64 else MISSING


def _triple(value: list[int | str] | tuple[int, int, int] | str) -> tuple[int, int, int] | None:
    if isinstance(value, str):
        # Quotes and control characters were escapes in the raw text, where they make no number.
        return None if '"' in value or not value.isprintable() else parse_triple(value.encode())
    if len(value) != 3:
        return None
    x, y, z = (_integer(part) for part in value)
    return None if MISSING in (x, y, z) else (x, y, z)
