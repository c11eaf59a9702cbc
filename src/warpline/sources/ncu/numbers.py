"""Numbers as ncu prints them, in the locale of the machine (1,234.5 and 1.234,5 and 1 234,5), and their units."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from functools import lru_cache

MISSING = frozenset({"", "n/a", "N/A", "nan", "-nan", "NaN", "(nan)", "inf", "-inf", "-", "no data"})
"""Cells without a value."""
NOT_AVAILABLE = frozenset({"n/a", "N/A", "no data"})
"""Those of them that say that ncu could not measure it; others are a division by zero, or not asked for."""
_SPACES = str.maketrans("", "", " \u00a0\u202f\u2009'’")
"""Group separators that no locale uses as a decimal mark."""
_NUMBER = re.compile(r"[+-]?\d[\d.,]*(?:[eE][+-]?\d+)?")
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(?:[.,]\d{3})+")
_PREFIXES = {"K": 1e3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
"""ncu counts in thousands: 49,152 bytes are 49.15 Kbyte."""
_SCALED = ("byte", "hz", "Hz", "inst", "sector", "cycle", "request", "flop", "op", "warp", "thread", "block", "sample")
_SECONDS = {
    **dict.fromkeys(("s", "second", "sec", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msecond"), 1e-3),
    **dict.fromkeys(("us", "usecond", "µs"), 1e-6),
    **dict.fromkeys(("ns", "nsecond"), 1e-9),
    **dict.fromkeys(("ps", "psecond"), 1e-12),
}
_NS = 1e9


def decimal_mark(cells: Iterable[str]) -> str:
    """The decimal mark of a file, "." or ",": what the numbers that can be read in one way only say."""
    votes = {".": 0, ",": 0}
    for cell in cells:
        mark = _certain_mark(cell.translate(_SPACES))
        if mark:
            votes[mark] += 1
    return "," if votes[","] > votes["."] else "."


def _certain_mark(text: str) -> str:
    """The decimal mark that this one number proves, or an empty text."""
    if not _NUMBER.fullmatch(text):
        return ""
    marks = [char for char in text if char in ".,"]
    if not marks:
        return ""
    if len(set(marks)) == 2:
        return marks[-1]
    if len(marks) > 1:
        return "," if marks[0] == "." else "."  # a mark that repeats separates groups
    return "" if _GROUPED.fullmatch(text) else marks[0]


def number(cell: str, mark: str) -> float | None:
    """The value of a cell in a file with that decimal mark; None if it is no finite number."""
    text = cell.partition("(")[0].translate(_SPACES)  # instances may follow, in parentheses
    if not _NUMBER.fullmatch(text):
        return None
    decimal = _certain_mark(text) or mark
    group = "," if decimal == "." else "."
    try:
        value = float(text.replace(group, "").replace(decimal, "."))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


@lru_cache(maxsize=10_000)
def base_unit(unit: str) -> tuple[str, float]:
    """The base unit of a unit as printed, and the factor: ``("byte/s", 1e9)`` for ``Gbyte/second``."""
    words = unit.strip().split("/")
    if len(words) == 1 and words[0] in _SECONDS:
        return "ns", _SECONDS[words[0]] * _NS
    name, factor = _without_prefix(words[0])
    parts = [name]
    for word in words[1:]:
        if word in _SECONDS:
            parts.append("s")
            factor /= _SECONDS[word]
        else:
            below, scale = _without_prefix(word)
            parts.append(below)
            factor *= scale  # ncu scales the number, and puts the prefix on the only word that takes one
    joined = "/".join(parts)
    return ("hz" if joined in {"cycle/s", "Hz"} else joined), factor


def _without_prefix(word: str) -> tuple[str, float]:
    rest = word[1:]
    if word[:1] in _PREFIXES and rest in _SCALED:
        return rest, _PREFIXES[word[0]]
    return word, 1.0
