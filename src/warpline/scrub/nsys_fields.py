"""What an nsys export may hold (``data/nsys.toml``), and what its texts are. All else is dropped."""

from __future__ import annotations

from msgspec import Struct, field
from msgspec.structs import replace

from warpline.package_data import read_table

KERNEL, CALL, RANGE, THREAD, PROCESS, MESSAGE, METRIC, DEVICE, CHIP, STREAM_FILE, STREAM, TIME = (
    *("kernel", "call", "range", "thread", "process", "message", "metric", "device", "chip", "stream_file", "stream"),
    "time",
)
"""What a text is: decides how it is cleaned."""


class ColumnRules(Struct, frozen=True):
    """The known columns of a table."""

    integers: tuple[str, ...] = ()
    texts: dict[str, str] = field(default_factory=dict)
    """Columns of text, and what it is."""
    strings: dict[str, str] = field(default_factory=dict)
    """Columns that refer to ``StringIds``, and what the text is."""
    numbers: tuple[str, ...] = ()
    shares: str = ""
    """The set of integers that it shares with other tables."""

    @property
    def all(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.integers, *self.numbers, *self.texts, *self.strings)


class _Allowed(Struct, frozen=True):
    wide: frozenset[str]
    shared: dict[str, tuple[str, ...]]
    tables: dict[str, ColumnRules]


_ALLOWED = read_table("scrub", "nsys", _Allowed)
TABLES = {
    name: replace(rules, integers=(*_ALLOWED.shared.get(rules.shares, ()), *rules.integers))
    for name, rules in _ALLOWED.tables.items()
}
"""The tables that warpline reads, with the columns that it reads and those beside them that are numbers."""
WIDE = _ALLOWED.wide
"""Columns whose numbers may need more than 32 bits."""
PAIRS = ("META_DATA_EXPORT", "EXPORT_META_DATA", "META_DATA_CAPTURE", "TARGET_INFO_SYSTEM_ENV")
"""Tables of one fact a row: a name and a value."""
STRINGS = "StringIds"
