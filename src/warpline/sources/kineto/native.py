"""The compiled scanner (`scan.c`) through ctypes."""

from __future__ import annotations

import ctypes
import weakref
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from warpline.native import load
from warpline.sources.kineto.events import DTYPES, FIELDS, Field, Int32s, RawEvents, Sparse
from warpline.sources.kineto.scanner import Status, Step, address_of
from warpline.sources.kineto.text import decode_label, decode_raw, decode_string, merge_equal
from warpline.sources.kineto.tolerant import Text

LIBRARY = Path(__file__).with_name("_scan.so")
VERSION: Final = 2
"""Version of the interface; a library built from older sources is not used."""

_NO_MEMORY: Final = -1
_CATEGORIES, _NAMES, _LABELS, _TEXTS = range(4)


def load_library() -> ctypes.CDLL | None:
    """The compiled scanner, or None if it was not built or has another version."""
    return _load(LIBRARY)


@cache
def _load(path: Path) -> ctypes.CDLL | None:
    library = load(path, "scan_version", VERSION)
    if library is None:
        return None
    address, number = ctypes.c_void_p, ctypes.c_int64
    library.scan_new.restype = address
    library.scan_new.argtypes = [address, address, ctypes.c_uint32]
    library.scan_free.argtypes = [address]
    library.scan_feed.argtypes = [address, address, number, number, number, ctypes.c_int, address]
    library.scan_boundary.restype = number
    library.scan_boundary.argtypes = [address, number]
    library.scan_clear.argtypes = [address]
    library.scan_merge.argtypes = [address, address]
    library.scan_count.restype = ctypes.c_uint64
    library.scan_count.argtypes = [address]
    library.scan_column.restype = address
    library.scan_column.argtypes = [address, ctypes.c_uint32]
    library.scan_skipped.argtypes = [address, address]
    library.scan_dictionary.restype = ctypes.c_uint64
    library.scan_dictionary.argtypes = [address, ctypes.c_uint32, address, address]
    library.scan_field.restype = ctypes.c_uint64
    library.scan_field.argtypes = [address, ctypes.c_uint32, address, address]
    return library


def is_available() -> bool:
    return load_library() is not None


class NativeScanner:
    """See `Scanner`. Owns the C object; the arrays of `columns` keep it alive."""

    def __init__(self) -> None:
        library = load_library()
        if library is None:
            raise RuntimeError("the compiled scanner is not built")
        self._library = library
        keys = (ctypes.c_char_p * len(FIELDS))(*(key.encode() for key in FIELDS))
        kinds = (ctypes.c_uint32 * len(FIELDS))(*(kind.value for kind in FIELDS.values()))
        self._handle = library.scan_new(keys, kinds, len(FIELDS))
        if not self._handle:
            raise MemoryError("no memory for the scanner")
        # Not at exit: arrays over this memory may outlive the interpreter's last code.
        weakref.finalize(self, library.scan_free, self._handle).atexit = False

    def feed(self, text: Text, base: int, start: int, final: bool) -> Step:
        position = ctypes.c_int64()
        status = self._library.scan_feed(
            self._handle, address_of(text), len(text), base, start, final, ctypes.byref(position)
        )
        self._check(status)
        return Step(Status(status), position.value)

    def boundary(self, text: Text) -> int:
        """The first position after 0 that looks like the start of an event; else the length of the text."""
        return int(self._library.scan_boundary(address_of(text), len(text)))

    def merge(self, other: NativeScanner) -> None:
        """Appends the events of another scanner, which scanned the directly following text."""
        self._check(self._library.scan_merge(self._handle, other._handle))

    def clear(self) -> None:
        """Forgets all events, to scan another text with the same memory."""
        self._library.scan_clear(self._handle)

    def wasted(self) -> int:
        """Bytes read in malformed events."""
        return self._skipped()[2]

    def _check(self, status: int) -> None:
        if status == _NO_MEMORY:
            raise MemoryError("no memory for the events of this trace")
        if status < 0:
            raise OverflowError("the trace holds more than four billion events")

    def _skipped(self) -> tuple[int, int, int]:
        values = (ctypes.c_int64 * 3)()
        self._library.scan_skipped(self._handle, values)
        return values[0], values[1], values[2]

    def _array(self, address: int | None, dtype: Any, count: int) -> npt.NDArray[Any]:
        """An array over the scanner's memory, which it keeps alive."""
        if not count or not address:
            return np.empty(0, dtype)
        memory = (ctypes.c_uint8 * (count * np.dtype(dtype).itemsize)).from_address(address)
        memory.owner = self  # the array's base is `memory`
        array: npt.NDArray[Any] = np.frombuffer(memory, dtype)
        return array

    def _strings(self, which: int) -> list[bytes]:
        ends, arena = ctypes.c_void_p(), ctypes.c_void_p()
        count = self._library.scan_dictionary(self._handle, which, ctypes.byref(ends), ctypes.byref(arena))
        if not count:
            return []
        stops = self._array(ends.value, np.uint64, count).tolist()
        text = ctypes.string_at(arena.value or 0, stops[-1])
        return [text[start:stop] for start, stop in zip([0, *stops], stops, strict=False)]

    def events(self) -> RawEvents:
        count = self._library.scan_count(self._handle)
        dense = [
            self._array(self._library.scan_column(self._handle, index), dtype, count)
            for index, dtype in enumerate(DTYPES)
        ]
        phase, category, name, process, thread, time_ns, duration_ns, flow, args_offset, args_length = dense
        categories, category_codes = merge_equal(map(decode_string, self._strings(_CATEGORIES)))
        names, name_codes = merge_equal(map(decode_string, self._strings(_NAMES)))
        labels, label_codes = merge_equal(map(decode_label, self._strings(_LABELS)))
        texts, text_codes = merge_equal(map(decode_raw, self._strings(_TEXTS)))
        fields = {key: self._field(index, kind, text_codes) for index, (key, kind) in enumerate(FIELDS.items())}
        skipped, first_skipped, _ = self._skipped()
        return RawEvents(
            phase=phase,
            category=_recode(category, category_codes, len(categories)),
            name=_recode(name, name_codes, len(names)),
            process=_recode(process, label_codes, len(labels)),
            thread=_recode(thread, label_codes, len(labels)),
            time_ns=time_ns,
            duration_ns=duration_ns,
            flow=flow,
            args_offset=args_offset,
            args_length=args_length,
            fields=fields,
            categories=categories,
            names=names,
            labels=labels,
            texts=texts,
            skipped=skipped,
            first_skipped=first_skipped,
        )

    def _field(self, index: int, kind: Field, text_codes: Int32s) -> Sparse:
        rows, values = ctypes.c_void_p(), ctypes.c_void_p()
        count = self._library.scan_field(self._handle, index, ctypes.byref(rows), ctypes.byref(values))
        width = 3 if kind is Field.TRIPLE else 1
        array = self._array(values.value, np.int64, count * width)
        if kind is Field.TRIPLE:
            array = array.reshape(-1, 3)
        elif kind is Field.TEXT and count:
            array = text_codes[array].astype(np.int64)
        return Sparse(self._array(rows.value, np.uint32, count), array)


def _recode(codes: Int32s, mapping: Int32s, unique: int) -> Int32s:
    """Codes after equal strings were merged; unchanged in the common case that none were."""
    if unique == len(mapping):
        return codes
    recoded: Int32s = np.where(codes < 0, np.int32(-1), mapping[codes])
    return recoded
