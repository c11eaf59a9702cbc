"""The interface of the two scanners: a Kineto file as flat columns of events.

The compiled scanner and the Python scanner fill the same object, column by column, so that callers
need not know which one ran.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

MISSING = -(1 << 63)
"""A time or duration that the event does not have."""


class Field(Enum):
    """How an argument's value is stored."""

    INTEGER = 0
    """int64; quoted numbers are accepted; fractions are truncated; other values, and numbers beyond int64, are left
    out."""
    TRIPLE = 1
    """[x, y, z] of integers, such as a grid, also inside a string; other shapes are left out."""
    TEXT = 2
    """The raw JSON text, interned."""


FIELDS: dict[str, Field] = {
    "correlation": Field.INTEGER,
    "correlation_id": Field.INTEGER,
    "External id": Field.INTEGER,
    "external id": Field.INTEGER,
    "device": Field.INTEGER,
    "context": Field.INTEGER,
    "stream": Field.INTEGER,
    "bytes": Field.INTEGER,
    "registers per thread": Field.INTEGER,
    "shared memory": Field.INTEGER,
    "graph id": Field.INTEGER,
    "graph node id": Field.INTEGER,
    "Sequence number": Field.INTEGER,
    "Fwd thread id": Field.INTEGER,
    "Bytes": Field.INTEGER,
    "Addr": Field.INTEGER,
    "Device Id": Field.INTEGER,
    "Device Type": Field.INTEGER,
    "Total Allocated": Field.INTEGER,
    "Total Reserved": Field.INTEGER,
    "wait_on_stream": Field.INTEGER,
    "wait_on_cuda_event_id": Field.INTEGER,
    "BeginNs": Field.INTEGER,
    "EndNs": Field.INTEGER,
    "dev-id": Field.INTEGER,
    "stream-id": Field.INTEGER,
    "grid": Field.TRIPLE,
    "block": Field.TRIPLE,
    "Input Dims": Field.TEXT,
    "Input type": Field.TEXT,
    "Input Strides": Field.TEXT,
    "Concrete Inputs": Field.TEXT,
    "Call stack": Field.TEXT,
    "name": Field.TEXT,
    "labels": Field.TEXT,
}
"""The arguments that every trace needs; all others stay in the file and are decoded on request. At most 64, one
bit each in the compiled scanner, and none with a backslash or a quote in its name."""


Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
UInt32s = npt.NDArray[np.uint32]
UInt8s = npt.NDArray[np.uint8]


class Sparse(Struct):
    """One argument over all events that have it."""

    rows: UInt32s
    """Events that have it, ascending."""
    values: Int64s
    """One value a row (INTEGER), three a row as an (n, 3) array (TRIPLE), or codes into `texts` (TEXT)."""


DTYPES: tuple[Any, ...] = (
    np.uint8,
    np.int32,
    np.int32,
    np.int32,
    np.int32,
    np.int64,
    np.int64,
    np.int64,
    np.uint32,
)
"""Of the first nine columns of `RawEvents`, which every event has."""


class RawEvents(Struct):
    """All events of a file in file order. Codes index the lists below; -1 means the key is absent."""

    phase: UInt8s
    """First byte of "ph"; 0 when absent, which only the first event may be."""
    category: Int32s
    name: Int32s
    process: Int32s
    """Code into `labels`: "pid" as JSON text."""
    thread: Int32s
    """Code into `labels`: "tid" as JSON text."""
    time_ns: Int64s
    """"ts" in exact nanoseconds, or MISSING. Fraction digits past the third are dropped, and a short fraction is
    read as JSON means it (".5" is 500 ns)."""
    duration_ns: Int64s
    """"dur" in exact nanoseconds, or MISSING. May be negative in damaged files."""
    args_offset: Int64s
    """Byte offset of "args" in the uncompressed file, -1 when absent."""
    args_length: UInt32s
    fields: dict[str, Sparse]
    categories: list[str]
    names: list[str]
    labels: list[str]
    """Process and thread ids as JSON text, for example `730` or `"stream 7"`: strings and integers in their one
    canonical spelling (legal JSON whatever the file held), other values as the file spells them."""
    texts: list[str]
    header: dict[str, Any] = field(default_factory=dict)
    """Top-level keys of the file other than traceEvents, from before and after the events."""
    skipped: int = 0
    """Events that were malformed and skipped over."""
    first_skipped: int = -1
    """Byte offset of the first of them."""
    malformed_before: int = 0
    """Events that stand for malformed ones, which scrubbing left out."""
    truncated: bool = False
    """The file ends before its events do."""
    bytes_read: int = 0
    """Size of the uncompressed text."""
    scanner: str = ""
    """`native` or `python`: which of the two read it."""
    notes: list[str] = field(default_factory=list)
    """Damage outside the events, for example a broken gzip stream, as sentences."""

    def __len__(self) -> int:
        return len(self.phase)


def merge_equal(strings: Iterable[str]) -> tuple[list[str], Int32s]:
    """Unique strings in order of first appearance, and for each old code the new one.

    Raw texts are interned as bytes, and two spellings (`"A"`, `"\\u0041"`) can decode to one string.
    """
    codes: dict[str, int] = {}
    mapping = [codes.setdefault(text, len(codes)) for text in strings]
    return list(codes), np.array(mapping, np.int32)
