"""The compiled scanner (`scan.c`) through ctypes."""

from __future__ import annotations

import ctypes
import weakref
from functools import cache
from pathlib import Path
from typing import Final

from warpline.native import load
from warpline.sources.kineto.events import RawEvents
from warpline.sources.kineto.fields import FIELDS
from warpline.sources.kineto.native_events import events_of
from warpline.sources.kineto.scanner import ScanStep, Status, address_of
from warpline.sources.kineto.tolerant import Text

LIBRARY = Path(__file__).with_name("_scan.so")
VERSION: Final = 3
"""Version of the interface; a library built from other sources is not used."""

_NO_MEMORY: Final = -1


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

    def boundary(self, text: Text) -> int:
        """The first position after 0 that looks like the start of an event; else the length of the text."""
        return int(self._library.scan_boundary(_address_of(text), len(text)))

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

    def events(self) -> RawEvents:
        """The events, whose memory is theirs from now on: the scanner has none left."""
        return events_of(self._library, self._handle)
