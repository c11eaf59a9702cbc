"""The interface between both scanners and the stream that feeds them."""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import Any, Protocol

import numpy as np
from msgspec import Struct

from warpline.sources.kineto.events import RawEvents
from warpline.sources.kineto.tolerant import Text


class Status(IntEnum):
    """Why a scanner stopped."""

    MORE = 0
    """The window is read; the next one must start at `position`."""
    DONE = 1
    """The array of events is closed; `position` is after its bracket."""
    TRUNCATED = 2
    """The file ends first."""


class ScanStep(Struct, frozen=True):
    """The outcome of feeding one window."""

    status: Status
    position: int
    """Relative to the window."""


class Scanner(Protocol):
    """Reads events out of successive windows of text."""

    def feed(self, text: Text, base: int, start: int, final: bool) -> ScanStep:
        """Reads from `start` on; `base` is the window's offset in the file, `final` says that no more follows."""

    def events(self) -> RawEvents:
        """All events so far, without the file around them. The scanner must not be fed again."""


def address_of(buffer: Any) -> int:
    """Where a buffer lies in memory. The caller keeps it alive and mapped."""
    if isinstance(buffer, bytes):
        return ctypes.cast(ctypes.c_char_p(buffer), ctypes.c_void_p).value or 0
    return int(np.frombuffer(buffer, np.uint8).__array_interface__["data"][0])
