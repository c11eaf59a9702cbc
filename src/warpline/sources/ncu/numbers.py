"""Numbers as ncu's CSV prints them, in the locale of the machine: 1,234.5 and 1.234,5 and 1 234,5."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

MISSING = frozenset({"", "n/a", "N/A", "nan", "-nan", "NaN", "(nan)", "inf", "-inf", "-", "no data"})
"""Cells without a value."""
NOT_AVAILABLE = frozenset({"n/a", "N/A", "no data"})
"""Those of them that say that ncu could not measure it; others are a division by zero, or not asked for."""
_SPACES = str.maketrans("", "", " \u00a0\u202f\u2009'’")
"""Group separators that no locale uses as a decimal mark."""
_NUMBER = re.compile(r"[+-]?\d[\d.,]*(?:[eE][+-]?\d+)?")
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(?:[.,]\d{3})+")


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
