"""Types of columns, and which values are possible in them."""

from __future__ import annotations

import polars as pl
from msgspec import Struct

ID = pl.UInt32
NAME = pl.Categorical
TIME = pl.Int64
NAME_CHARS = 16_384
"""The longest name in a column. The longest kernel name seen has 5,160 characters, of a CUTLASS GEMM."""
TEXT_CHARS = 1 << 20
"""The longest text of arguments, such as the shapes of a fused optimizer's thousand tensors."""
WHOLE_CHARS = 1 << 31
"""A name in full: as long as the file has it."""
NO_NAME = "(no name)"
"""The name of what the source gives no name."""
UNKNOWN = "unknown"
"""The same for a kind, layer or style."""


class Bounds(Struct, frozen=True):
    """The least and the greatest possible value of a number; what lies outside is damage."""

    least: int
    most: int


COUNT = Bounds(0, (1 << 31) - 1)
BYTES = Bounds(0, 1 << 44)
"""Sixteen terabytes, more than any copy or allocation; half a million of them can be summed in 64 bits."""
SIGNED_BYTES = Bounds(-(1 << 44), 1 << 44)
MAX_DEVICES = 1 << 10
"""More than any machine has; the work on a trace grows with their number."""
ORDINAL = Bounds(0, MAX_DEVICES - 1)
DEVICE = Bounds(-1, MAX_DEVICES - 1)
PER_BLOCK = Bounds(0, 1 << 16)
PER_DEVICE = Bounds(1, 1 << 24)
RATE = Bounds(1, 1 << 50)
