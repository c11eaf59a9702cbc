"""Releases memory that reading a trace no longer needs."""

from __future__ import annotations

import ctypes


def hand_back_memory() -> None:
    """Return freed memory to the system, if the C library supports it (glibc).

    glibc keeps what is freed for the next allocation; after a large trace that is as much as the trace itself.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
