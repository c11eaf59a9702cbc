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
from warpline.sources.kineto.columns import Columns, Status, Step, address_of
from warpline.sources.kineto.decimals import parse_decimal, parse_times, parse_triple
from warpline.sources.kineto.events import FIELDS, MISSING, Field
from warpline.sources.kineto.tolerant import Text

BLOCK = 256 << 10
"""Bytes decoded at once: large enough to amortise the call, small enough to stay in the cache."""
SMALL_BLOCK = 4 << 10
"""A rejected block of this size is read by the tolerant parser."""
SEARCH = 64 << 10
"""How far behind a block's nominal end a boundary is looked for."""

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
_INTEGERS: Final = [index for index, kind in enumerate(FIELDS.values()) if kind is Field.INTEGER]
_TRIPLES: Final = [index for index, kind in enumerate(FIELDS.values()) if kind is Field.TRIPLE]
_TEXTS: Final = [index for index, kind in enumerate(FIELDS.values()) if kind is Field.TEXT]


class _Event(msgspec.Struct, gc=False):
    ph: str = ""
    cat: str | msgspec.UnsetType = msgspec.UNSET
    name: str | msgspec.UnsetType = msgspec.UNSET
    pid: int | str | msgspec.UnsetType = msgspec.UNSET
    tid: int | str | msgspec.UnsetType = msgspec.UNSET
    ts: msgspec.Raw = None  # type: ignore[assignment]  # None: absent; msgspec has no union with Raw
    dur: msgspec.Raw = None  # type: ignore[assignment]
    id: int | str | None = None
    args: msgspec.Raw = None  # type: ignore[assignment]


_Arguments: Final = msgspec.defstruct(
    "_Arguments",
    [(f"field{index}", _TYPES[kind], None) for index, kind in enumerate(FIELDS.values())],
    rename={f"field{index}": key for index, key in enumerate(KEYS)},
    gc=False,
)
_NO_ARGUMENTS: Final[tuple[Any, ...]] = (None,) * len(KEYS)
_decode_events: Final = msgspec.json.Decoder(list[_Event]).decode
_decode_arguments: Final = msgspec.json.Decoder(_Arguments).decode
_REJECTED: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _RejectedError(Exception):
    """The strict decoders cannot vouch for this block."""


class PythonScanner:
    """See `Scanner`."""

    def __init__(self) -> None:
        self._events = Accumulator()
        self._slow: list[tolerant.Event] = []
        self._block = BLOCK
        self._skipped = 0
        self._first_skipped = -1
        self._waste = 0
        self._resynchronising = False

    def feed(self, text: Text, base: int, start: int, final: bool) -> Step:
        end = len(text)
        position = start
        while True:
            if self._resynchronising:
                found = tolerant.resynchronise(text, position, end, final)
                if found < 0 and final:
                    return Step(Status.TRUNCATED, end)
                if found < 0:
                    return Step(Status.MORE, max(position, end - tolerant.RESYNC_KEEP))
                self._resynchronising = False
                position = found
            position = tolerant.skip_separators(text, position, end)
            if position >= end:
                return Step(Status.TRUNCATED if final else Status.MORE, position)
            if text[position] == tolerant.CLOSE_LIST:
                return Step(Status.DONE, position + 1)
            if text[position] != tolerant.OPEN:
                self._skip(base + position)
                continue
            after = self._strict_block(text, base, position, end)
            outcome = after if after > 0 else self._one_event(text, base, position, end, final)
            if isinstance(outcome, Step):
                return outcome
            position = outcome

    def columns(self) -> Columns:
        self._flush()
        return self._events.columns(self._skipped, self._first_skipped, self._waste)

    def _skip(self, offset: int) -> None:
        self._skipped += 1
        if self._first_skipped < 0:
            self._first_skipped = offset
        self._resynchronising = True

    def _flush(self) -> None:
        if self._slow:
            self._events.append_events(self._slow)
            self._slow = []

    def _one_event(self, text: Text, base: int, start: int, end: int, final: bool) -> int | Step:
        """Reads one event tolerantly; gives the position to go on from, or the step that ends this window."""
        limit = min(end, start + tolerant.EVENT_LIMIT)
        try:
            event, after = tolerant.read_event(text, start, limit)
        except tolerant.MalformedError as error:
            failed = error.position
        except tolerant.StarvedError:
            failed = limit
            if limit - start < tolerant.EVENT_LIMIT:
                if not final:
                    return Step(Status.MORE, start)
                # The file's end, unless there are more events: then the event was malformed, not cut off.
                if tolerant.resynchronise(text, start + 1, end, final) < 0:
                    return Step(Status.TRUNCATED, end)
        else:
            if event.args_offset >= 0:
                event.args_offset += base
            self._slow.append(event)
            return after
        self._waste += failed - start
        self._skip(base + start)
        return failed if self._waste > tolerant.WASTE_LIMIT else start + 1

    def _strict_block(self, text: Text, base: int, start: int, end: int) -> int:
        """Decodes as many events as fit a block; gives the position behind them, or 0 where that fails."""
        while True:
            nominal = start + self._block
            match = _BLOCK_END.search(text, nominal, min(end, nominal + SEARCH))
            if match is not None:
                try:
                    self._decode(text[start : match.start()], base + start)
                except _RejectedError:
                    pass
                else:
                    self._block = min(self._block * 2, BLOCK)
                    return match.start()
            if self._block <= SMALL_BLOCK:
                return 0
            self._block //= 4

    def _decode(self, block: bytes, offset: int) -> None:
        """Appends the events of a block of legal JSON, all of them or none."""
        if b"\\u00" in block and _ESCAPED_WORD.search(block):
            raise _RejectedError
        whole = b"[" + block + b"]"
        try:
            events = _decode_events(whole)
            phases = [_PHASES[event.ph] for event in events]
        except (*_REJECTED, KeyError) as error:
            raise _RejectedError from error
        offsets, lengths = _args_spans(events, whole)
        arguments = [
            _arguments(event.args) if length else _NO_ARGUMENTS for event, length in zip(events, lengths, strict=True)
        ]
        self._flush()
        keep = self._events
        unset = msgspec.UNSET
        processes, threads = [], []
        for event in events:
            processes.append(-1 if event.pid is unset else keep.label(event.pid))
            threads.append(-1 if event.tid is unset else keep.label(event.tid))
        dense = (
            phases,
            [-1 if event.cat is unset else keep.category(event.cat) for event in events],
            [-1 if event.name is unset else keep.name(event.name) for event in events],
            processes,
            threads,
            parse_times([event.ts for event in events]),
            parse_times([event.dur for event in events]),
            [MISSING if event.id is None else _integer(event.id) for event in events],
            [-1 if length == 0 else at + offset - 1 for at, length in zip(offsets, lengths, strict=True)],
            lengths,
        )
        keep.append(dense, self._sparse(arguments))

    def _sparse(self, arguments: list[tuple[Any, ...]]) -> dict[int, tuple[list[int], list[Any]]]:
        columns = list(zip(*arguments, strict=True))
        sparse: dict[int, tuple[list[int], list[Any]]] = {}
        for index in _INTEGERS:
            found = [(row, _integer(value)) for row, value in enumerate(columns[index]) if value is not None]
            kept = [(row, value) for row, value in found if value != MISSING]
            if kept:
                sparse[index] = ([row for row, _ in kept], [value for _, value in kept])
        for index in _TRIPLES:
            triples = [(row, _triple(value)) for row, value in enumerate(columns[index]) if value is not None]
            rows = [row for row, triple in triples if triple is not None]
            if rows:
                sparse[index] = (rows, [triple for _, triple in triples if triple is not None])
        for row, values in enumerate(zip(*(columns[index] for index in _TEXTS), strict=True)):
            for index, value in zip(_TEXTS, values, strict=True):
                if value is not None:
                    rows, codes = sparse.setdefault(index, ([], []))
                    rows.append(row)
                    codes.append(self._events.text(bytes(value)))
        return sparse


def _args_spans(events: list[_Event], whole: bytes) -> tuple[list[int], list[int]]:
    """Where each event's arguments lie in the block, and their lengths; 0 where they are no object."""
    lengths = [0 if event.args is None else len(memoryview(event.args)) for event in events]
    present = [row for row, length in enumerate(lengths) if length]
    keys = [match.end() for match in _ARGS_KEY.finditer(whole)]
    offsets = [0] * len(events)
    if len(keys) == len(present):
        # As many keys as values in the whole text: each key is an event's own, none is nested or quoted.
        for row, position in zip(present, keys, strict=True):
            offsets[row] = position
    else:
        origin = address_of(whole)
        for row in present:
            offsets[row] = address_of(events[row].args) - origin
    for row in present:
        if whole[offsets[row]] != tolerant.OPEN:
            lengths[row] = 0
    return offsets, lengths


def _arguments(raw: msgspec.Raw) -> tuple[Any, ...]:
    """The wanted arguments in the order of FIELDS, None where absent; tolerantly where types surprise."""
    try:
        return msgspec.structs.astuple(_decode_arguments(raw))
    except _REJECTED:
        event = tolerant.Event()
        text = bytes(raw)
        try:
            after = tolerant.read_args(text, 0, len(text), event)
        except (tolerant.MalformedError, tolerant.StarvedError) as error:
            raise _RejectedError from error
        if after != len(text):
            raise _RejectedError from None
        return tuple(event.fields.get(key) for key in KEYS)


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
