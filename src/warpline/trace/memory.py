"""Releases memory that reading or analysing a trace no longer needs."""

from __future__ import annotations

import ctypes
from functools import cache
from resource import RUSAGE_SELF, getrusage

MUCH_BYTES = 128 << 20
"""Freed memory that is worth the time of handing it back."""
GROWTH_KIB = 8 << 10
"""Growth of the process from which on that is looked up again, which takes half a millisecond."""
LARGE_BYTES = 8 << 20
"""A column of a million rows."""
KEPT_BYTES = 32 << 20
"""What stays free at the end of the heap: blocks of text come and go there, and every new page costs a microsecond."""
_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1
"""glibc's M_MMAP_THRESHOLD and M_TRIM_THRESHOLD; the second would stay at 128 KiB once the first is set."""


class _HeapState(ctypes.Structure):
    """glibc's `struct mallinfo2`."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "free", "top")
    )


@cache
def _c_library() -> ctypes.CDLL:
    library = ctypes.CDLL(None)
    if hasattr(library, "mallinfo2"):
        library.mallinfo2.restype = _HeapState
    return library


def hand_back_large_blocks() -> None:
    """From now on, have the C library return a large block when it is freed (glibc).

    glibc does so at first, but after some such blocks it keeps even larger ones, between which others come to lie.
    Smaller blocks stay on the heap. This holds for the whole process: only for programs of our own.
    """
    option = getattr(_c_library(), "mallopt", None)
    if option is not None:
        option(_MMAP_THRESHOLD, LARGE_BYTES)
        option(_TRIM_THRESHOLD, KEPT_BYTES)


def hand_back_memory() -> None:
    """Return freed memory to the system, if the C library supports it (glibc).

    glibc keeps what is freed for the next allocation; after a large trace that is as much as the trace itself.
    """
    trim = getattr(_c_library(), "malloc_trim", None)
    if trim is not None:
        trim(0)


class _Peak:
    """Peak memory of the process when it was last looked at."""

    then_kib = 0


def hand_back_much() -> None:
    """The same between two analyses, if there is much to return. What was returned already counts as free in the C
    library's books, so the process must have grown since."""
    peak_kib = getrusage(RUSAGE_SELF).ru_maxrss
    if peak_kib < _Peak.then_kib + GROWTH_KIB:
        return
    _Peak.then_kib = peak_kib
    state = getattr(_c_library(), "mallinfo2", None)
    if state is not None and state().free >= MUCH_BYTES:
        hand_back_memory()
