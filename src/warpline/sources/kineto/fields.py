"""The arguments of events that both scanners keep, and how. Loads nothing else: a file is scanned while numpy loads."""

from __future__ import annotations

from enum import Enum

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
