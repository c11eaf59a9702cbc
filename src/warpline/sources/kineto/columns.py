"""What both scanners share with the stream that feeds them: a step's outcome, and the finished columns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol

import numpy as np

from warpline.sources.kineto.events import Int32s, Int64s, Sparse, UInt8s, UInt32s
from warpline.sources.kineto.tolerant import Text


class Status(IntEnum):
    """Why a scanner stopped."""

    MORE = 0
    """The window is used up; the next one must begin at `position`."""
    LIMIT = 1
    """The next event starts at or behind the byte where the caller wanted to stop."""
    DONE = 2
    """The array of events is closed; `position` is behind its bracket."""
    TRUNCATED = 3
    """The file ends first."""


@dataclass(frozen=True, slots=True)
class Step:
    """The outcome of feeding one window."""

    status: Status
    position: int
    """Relative to the window."""


@dataclass(slots=True)
class Columns:
    """The events without the file around them; see `RawEvents` for the meaning of each."""

    phase: UInt8s
    category: Int32s
    name: Int32s
    process: Int32s
    thread: Int32s
    time_ns: Int64s
    duration_ns: Int64s
    flow: Int64s
    args_offset: Int64s
    args_length: UInt32s
    fields: dict[str, Sparse]
    categories: list[str]
    names: list[str]
    labels: list[str]
    texts: list[str]
    skipped: int
    first_skipped: int
    waste: int
    """Bytes of malformed events that were read twice."""


class Scanner(Protocol):
    """Reads events out of successive windows of text."""

    def feed(self, text: Text, base: int, start: int, final: bool) -> Step:
        """Reads from `start` on; `base` is the window's offset in the file, `final` says that no more follows."""

    def columns(self) -> Columns:
        """All events so far. The scanner must not be fed again."""


def address_of(buffer: Any) -> int:
    """Where a buffer lies in memory. The caller keeps it alive and mapped."""
    return int(np.frombuffer(buffer, np.uint8).__array_interface__["data"][0])
