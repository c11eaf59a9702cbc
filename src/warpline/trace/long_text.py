"""Texts of any length as columns can hold them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable

import polars as pl

from warpline.trace.column_rules import NAME_CHARS
from warpline.trace.names import by_name

_DIGEST_CHARS = 12


def shortened(text: str, most_chars: int = NAME_CHARS) -> str:
    """The beginning and the end of a longer text; a digest of the whole keeps different texts different."""
    if len(text) <= most_chars:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:_DIGEST_CHARS]
    mark = f"…[{len(text):,} characters, {digest}]…"
    tail = (most_chars - len(mark)) // 2
    return text[: most_chars - len(mark) - tail] + mark + text[len(text) - tail :]


def longest_bytes(frames: Iterable[pl.DataFrame]) -> int:
    """Length of the longest text in any of the frames, or more.

    Interned texts are numbered from 0, so the ones up to the greatest number are looked at instead of each row's.
    """
    longest, greatest = 0, -1
    for frame in (frame for frame in frames if len(frame)):
        found = frame.select(pl.col(pl.Categorical).to_physical().max(), pl.col(pl.String).str.len_bytes().max())
        for name, value in next(found.iter_rows(named=True), {}).items():
            if value is not None and frame.schema[name] == pl.Categorical:
                greatest = max(greatest, value)
            elif value is not None:
                longest = max(longest, value)
    if greatest < 0:
        return longest
    interned = pl.int_range(greatest + 1, dtype=pl.UInt32, eager=True).cat.to(pl.Categorical).cast(pl.String)
    return max(longest, int(interned.str.len_bytes().max() or 0))  # type: ignore[arg-type]


def without_long(column: pl.Series, most_chars: int, repair: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """The column with its longer texts repaired; each distinct one once. The same column if it has none."""
    if column.dtype == pl.String:
        if int(column.str.len_chars().max() or 0) <= most_chars:  # type: ignore[arg-type]
            return column
        return repair(column.fill_null("")).set(column.is_null(), None)
    if int(column.unique().cast(pl.String).str.len_chars().max() or 0) <= most_chars:  # type: ignore[arg-type]
        return column
    return by_name(column, lambda names: repair(names).cast(pl.Categorical))
