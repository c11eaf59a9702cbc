"""The compiled scanner (`scan.c`) through ctypes."""

from __future__ import annotations

import ctypes
import weakref
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from warpline.native import library_of, load
from warpline.sources.kineto.events import DTYPES, FIELDS, Field, Int32s, RawEvents, Sparse, merge_equal
from warpline.sources.kineto.scanner import ScanStep, Status, address_of
from warpline.sources.kineto.text import decode_label, decode_raw, decode_string
from warpline.sources.kineto.tolerant import Text

SOURCE: Final = Path(__file__).with_name("scan.c")

_NO_MEMORY: Final = -1
_CATEGORIES, _NAMES, _LABELS, _TEXTS = range(4)


def load_library() -> ctypes.CDLL | None:
    """The compiled scanner, or None if it was not built from these sources."""
    return _load(library_of(SOURCE))


@cache
def _load(path: Path) -> ctypes.CDLL | None:
    library = load(path, SOURCE)
    if library is None:
        return None
    address, number = ctypes.c_void_p, ctypes.c_int64
    library.scan_new.restype = address
    library.scan_new.argtypes = [address, address, ctypes.c_uint32]
    library.scan_free.argtypes = [address]
    library.scan_feed.argtypes = [address, address, number, number, number, ctypes.c_int, address]
    library.scan_count.restype = ctypes.c_uint64
    library.scan_count.argtypes = [address]
    library.scan_release.argtypes = [address]
    library.scan_take_column.restype = address
    library.scan_take_column.argtypes = [address, ctypes.c_uint32]
    library.scan_skipped.argtypes = [address, address]
    library.scan_dictionary.restype = ctypes.c_uint64
    library.scan_dictionary.argtypes = [address, ctypes.c_uint32, address, address]
    library.scan_take_field.restype = ctypes.c_uint64
    library.scan_take_field.argtypes = [address, ctypes.c_uint32, address, address]
    return library


def _address_of(text: Text) -> Text | int:
    """What a function takes as the address of a text: bytes as they are."""
    return text if isinstance(text, bytes) else address_of(text)


def is_available() -> bool:
    return load_library() is not None


class NativeScanner:
    """See `Scanner`. Owns the C object."""

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
        weakref.finalize(self, library.scan_free, self._handle).atexit = False

    def feed(self, text: Text, base: int, start: int, final: bool) -> ScanStep:
        position = ctypes.c_int64()
        status = self._library.scan_feed(
            self._handle, _address_of(text), len(text), base, start, final, ctypes.byref(position)
        )
        self._check(status)
        return ScanStep(Status(status), position.value)

    def _check(self, status: int) -> None:
        if status == _NO_MEMORY:
            raise MemoryError("no memory for the events of this trace")
        if status < 0:
            raise OverflowError("the trace holds more than four billion events")

    def events(self) -> RawEvents:
        """The events, whose memory is theirs from now on: the scanner has none left."""
        return _Memory(self._library, self._handle).events()


class _Owner:
    """Stands for one array of the scanner's memory; what it frees must not be used after it."""

    __slots__ = ("__weakref__",)


class _Memory:
    """What a scanner read, as arrays that own their memory: a column is freed when nothing refers to it."""

    def __init__(self, library: ctypes.CDLL, handle: int) -> None:
        self._library, self._handle = library, handle

    def events(self) -> RawEvents:
        count = self._library.scan_count(self._handle)
        dense = [
            self._take(self._library.scan_take_column(self._handle, index), dtype, count)
            for index, dtype in enumerate(DTYPES)
        ]
        phase, category, name, process, thread, time_ns, duration_ns, args_offset, args_length = dense
        categories, category_codes = merge_equal(map(decode_string, self._strings(_CATEGORIES)))
        names, name_codes = merge_equal(map(decode_string, self._strings(_NAMES)))
        labels, label_codes = merge_equal(map(decode_label, self._strings(_LABELS)))
        texts, text_codes = merge_equal(map(decode_raw, self._strings(_TEXTS)))
        fields = {key: self._field(index, kind, text_codes) for index, (key, kind) in enumerate(FIELDS.items())}
        skipped = (ctypes.c_int64 * 3)()
        self._library.scan_skipped(self._handle, skipped)
        return RawEvents(
            phase=phase,
            category=_recode(category, category_codes, len(categories)),
            name=_recode(name, name_codes, len(names)),
            process=_recode(process, label_codes, len(labels)),
            thread=_recode(thread, label_codes, len(labels)),
            time_ns=time_ns,
            duration_ns=duration_ns,
            args_offset=args_offset,
            args_length=args_length,
            fields=fields,
            categories=categories,
            names=names,
            labels=labels,
            texts=texts,
            skipped=skipped[0],
            first_skipped=skipped[1],
        )

    def _take(self, address: int | None, dtype: Any, count: int) -> npt.NDArray[Any]:
        """An array over memory that the scanner handed over, which is freed with it."""
        if not address:
            return np.empty(0, dtype)
        owner = _Owner()
        # Not at exit: the array may outlive the interpreter's last code.
        weakref.finalize(owner, self._library.scan_release, address).atexit = False
        memory = (ctypes.c_uint8 * (count * np.dtype(dtype).itemsize)).from_address(address)
        memory.owner = owner  # the array's base is `memory`
        array: npt.NDArray[Any] = np.frombuffer(memory, dtype) if count else np.empty(0, dtype)
        return array

    def _strings(self, which: int) -> list[bytes]:
        ends, arena = ctypes.c_void_p(), ctypes.c_void_p()
        count = self._library.scan_dictionary(self._handle, which, ctypes.byref(ends), ctypes.byref(arena))
        if not count:
            return []
        stops = (ctypes.c_uint64 * count).from_address(ends.value or 0)[:]
        text = ctypes.string_at(arena.value or 0, stops[-1])
        return [text[start:stop] for start, stop in zip([0, *stops], stops, strict=False)]

    def _field(self, index: int, kind: Field, text_codes: Int32s) -> Sparse:
        rows, values = ctypes.c_void_p(), ctypes.c_void_p()
        count = self._library.scan_take_field(self._handle, index, ctypes.byref(rows), ctypes.byref(values))
        width = 3 if kind is Field.TRIPLE else 1
        array = self._take(values.value, np.int64, count * width)
        if kind is Field.TRIPLE:
            array = array.reshape(-1, 3)
        elif kind is Field.TEXT and count:
            array = text_codes[array].astype(np.int64)
        return Sparse(self._take(rows.value, np.uint32, count), array)


def _recode(codes: Int32s, mapping: Int32s, unique: int) -> Int32s:
    """Codes after equal strings were merged; unchanged in the common case that none were."""
    if unique == len(mapping):
        return codes
    recoded: Int32s = np.where(codes < 0, np.int32(-1), mapping[codes])
    return recoded
