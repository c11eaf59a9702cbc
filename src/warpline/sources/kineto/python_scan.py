"""The reader for machines without a C compiler: the same columns from msgspec and the tolerant parser.

Blocks of events are decoded strictly by msgspec. That is exact whatever the guess at a block's end: the
block begins at an event, and a list that msgspec accepts as a whole holds exactly the events that a parser
going one by one would find there. A block that it rejects is cut down, and what remains is read by the
tolerant parser, so that one bad event costs a few events' worth of slow reading.
"""

from __future__ import annotations

import re
from array import array
from typing import Any, Final

import msgspec
import numpy as np

from warpline.sources.kineto import tolerant
from warpline.sources.kineto.events import DTYPES, FIELDS, Field, RawEvents, Sparse, merge_equal
from warpline.sources.kineto.scanner import ScanStep, Status, address_of
from warpline.sources.kineto.text import decode_label, decode_raw, decode_string
from warpline.sources.kineto.tolerant import Text

BLOCK = 256 << 10
"""Bytes decoded at once: large enough to amortise the call, small enough to stay in the cache."""
SMALL_BLOCK = 4 << 10
"""A rejected block of this size is read by the tolerant parser."""
SEARCH = 64 << 10
"""How far after a block's nominal end a boundary is searched for."""

_BLOCK_END: Final = re.compile(rb',[\x00-\x20]{0,255}\{[\x00-\x20]{0,255}"(?:ph|name|cat|pid|tid|ts|dur|id|args|bp|s)"')
# msgspec decodes escapes, the scanners compare raw bytes: text with escaped letters, which may be a key's, goes to the
# tolerant parser.
_ESCAPED_WORD: Final = re.compile(rb"\\u00(?:3[0-9]|[4-7][0-9a-fA-F]|2[0b-eB-E])")
_decode_events: Final = msgspec.json.Decoder(list[dict[str, msgspec.Raw]]).decode
_decode_arguments: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_FIELD_ORDER: Final = {key: index for index, key in enumerate(FIELDS)}
_REJECTED: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class RejectedError(Exception):
    """The strict decoders cannot decode this block reliably."""


class PythonScanner:
    """See `Scanner`."""

    def __init__(self) -> None:
        self._columns = _Columns()
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
        return self._columns.events(self.skipped, self._first_skipped)

    def skip(self, offset: int) -> None:
        """Counts the malformed event at `offset`; the search for the next one begins."""
        self.skipped += 1
        if self._first_skipped < 0:
            self._first_skipped = offset
        self._resynchronising = True

    def keep(self, event: tolerant.Event) -> None:
        """Takes one event that was read."""
        self._columns.append(event)

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
            self.keep(event)
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
            events = [_event(found, address_of(whole) - offset + 1) for found in _decode_events(whole)]
        except _REJECTED as error:
            raise RejectedError from error
        for event in events:
            self.keep(event)


def _event(found: dict[str, msgspec.Raw], origin: int) -> tolerant.Event:
    """An event as the tolerant parser gives it. `origin` is the address at which the file would begin."""
    event = tolerant.Event()
    for key, raw in found.items():
        if key == "args" and memoryview(raw)[0] == tolerant.OPEN:
            event.args_offset, event.args_length = address_of(raw) - origin, len(memoryview(raw))
            for name, argument in _decode_arguments(raw).items():
                if name in FIELDS:
                    tolerant.set_argument(event, name, bytes(argument))
        else:
            tolerant.set_value(event, key, bytes(raw))
    return event


class _Columns:
    """Growing columns of events. Strings are coded by first appearance, so that the two scanners agree: per event the
    process before the thread, and the texts in the order of FIELDS."""

    def __init__(self) -> None:
        self._dense = [array("q") for _ in DTYPES]
        self._rows = {key: array("q") for key in FIELDS}
        self._values = {key: array("q") for key in FIELDS}
        self._categories: dict[str, int] = {}
        self._names: dict[str, int] = {}
        self._labels: dict[str, int] = {}
        self._texts: dict[bytes, int] = {}

    def append(self, event: tolerant.Event) -> None:
        row = len(self._dense[0])
        if not event.phase and row:  # see `file_event` in scan_columns.h
            return
        columns = (
            event.phase,
            -1 if event.category is None else _code(self._categories, decode_string(event.category)),
            -1 if event.name is None else _code(self._names, decode_string(event.name)),
            -1 if event.process is None else _code(self._labels, decode_label(event.process)),
            -1 if event.thread is None else _code(self._labels, decode_label(event.thread)),
            event.time_ns,
            event.duration_ns,
            event.args_offset,
            event.args_length,
        )
        for column, number in zip(self._dense, columns, strict=True):
            column.append(number)
        for key in sorted(event.fields, key=_FIELD_ORDER.__getitem__):
            value = event.fields[key]
            self._rows[key].append(row)
            if isinstance(value, tuple):
                self._values[key].extend(value)
            else:
                self._values[key].append(_code(self._texts, value) if isinstance(value, bytes) else value)

    def events(self, skipped: int, first_skipped: int) -> RawEvents:
        texts, codes = merge_equal(map(decode_raw, self._texts))
        fields: dict[str, Sparse] = {}
        for key, kind in FIELDS.items():
            values = np.array(self._values[key], np.int64)
            if kind is Field.TRIPLE:
                values = values.reshape(-1, 3)
            elif kind is Field.TEXT:
                values = codes[values].astype(np.int64)
            fields[key] = Sparse(np.array(self._rows[key], np.uint32), values)
        columns = zip(RawEvents.__struct_fields__, self._dense, DTYPES, strict=False)
        dense: dict[str, Any] = {name: np.array(column, dtype) for name, column, dtype in columns}
        return RawEvents(
            **dense,
            fields=fields,
            categories=list(self._categories),
            names=list(self._names),
            labels=list(self._labels),
            texts=texts,
            skipped=skipped,
            first_skipped=first_skipped,
        )


def _code(known: dict[Any, int], text: str | bytes) -> int:
    return known.setdefault(text, len(known))
