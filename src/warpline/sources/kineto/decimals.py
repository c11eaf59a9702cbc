"""JSON numbers as exact integers: times in nanoseconds, ids and sizes.

float64 is never used on the way: a time with nanoseconds since 1970 needs 61 bits, a float64 has 53.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np

from warpline.sources.kineto.events import Int64s
from warpline.sources.kineto.fields import MISSING

SPACE: Final = bytes(range(0x21))
"""White space between tokens: every control character, because damaged files contain NUL bytes."""
MAX_DIGITS: Final = 19
"""Digits of the largest int64."""
MAX_EXPONENT: Final = 1 << 30
"""Larger exponents are limited to this: the number is zero or too large in any case."""

_NUMBER = re.compile(rb"(-?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?)([0-9]+))?")
VECTOR_DIGITS: Final = 16
"""Digits before the point that the vectorised parser takes: microseconds since 1970 have sixteen."""
VECTOR_LIMIT: Final = 9.2e18
"""Nanoseconds below this fit int64 with room for the rounding of the check."""
VECTOR_PLACES: Final = 3
"""Digits after the point; profilers write no more."""


def parse_decimal(raw: bytes, scale: int) -> int:
    """A JSON number, quoted or not, times ten to the `scale`, truncated toward zero; MISSING if it is not a number."""
    if raw.startswith(b'"'):
        raw = raw[1:-1] if len(raw) >= 2 and raw.endswith(b'"') else b""
    match = _NUMBER.fullmatch(raw)
    if match is None:
        return MISSING
    sign, whole, fraction, exponent_sign, exponent_digits = match.groups(b"")
    digits = whole + fraction
    if not digits:
        return MISSING
    # The slice keeps int() away from absurdly long exponents; eleven digits exceed the cap in any case.
    exponent = min(int(exponent_digits.lstrip(b"0")[:11] or b"0"), MAX_EXPONENT)
    shift = (-exponent if exponent_sign == b"-" else exponent) - len(fraction) + scale
    digits = digits.lstrip(b"0")
    kept = len(digits) + shift
    if not digits or kept <= 0:
        return 0
    if kept > MAX_DIGITS:
        return MISSING
    value = int(digits[:kept].ljust(kept, b"0"))
    if value >= 1 << 63:
        return MISSING
    return -value if sign else value


def parse_triple(raw: bytes) -> tuple[int, int, int] | None:
    """`[x, y, z]`, bare or inside a string, or None."""
    if raw.startswith(b'"'):
        raw = raw[1:-1]
    if not (len(raw) >= 2 and raw.startswith(b"[") and raw.endswith(b"]")):
        return None
    pieces = raw[1:-1].split(b",")
    values = [parse_decimal(piece.strip(SPACE), 0) for piece in pieces] if len(pieces) == 3 else []
    return (values[0], values[1], values[2]) if values and MISSING not in values else None


def parse_times(raws: Sequence[msgspec.Raw | None]) -> Int64s:
    """Many legal JSON numbers in microseconds as nanoseconds at once; None and non-numbers give MISSING."""
    result = np.full(len(raws), MISSING, np.int64)
    present = [raw for raw in raws if raw is not None]
    if not present:
        return result
    joined = b",".join([*present, b""])
    values = _vectorised(joined, len(present))
    if values is None:
        values = np.array([parse_decimal(bytes(raw), 3) for raw in present], np.int64)
    if len(present) == len(raws):
        return values
    result[[raw is not None for raw in raws]] = values
    return result


def _vectorised(joined: bytes, count: int) -> Int64s | None:
    """Numbers of the form `123` or `123.4567`, each followed by a comma; None if one has another form.

    The point is left out, numpy reads the digits as integers, and the missing places are multiplied back in.
    """
    text = np.frombuffer(joined, np.uint8)
    ends = np.flatnonzero(text == ord(","))
    points = np.flatnonzero(text == ord("."))
    digits = np.count_nonzero(text - np.uint8(ord("0")) <= 9)  # the subtraction wraps: other bytes become large
    if len(ends) != count or digits + len(ends) + len(points) != len(text):
        return None
    starts = np.concatenate(([0], ends[:-1] + 1))
    owners = np.searchsorted(ends, points)
    point = ends.copy()
    point[owners] = points
    if len(points) > 1 and np.any(owners[1:] == owners[:-1]):
        return None
    places = np.zeros(count, np.int64)
    places[owners] = ends[owners] - points - 1
    whole = point - starts
    if whole.min() < 1 or whole.max() > VECTOR_DIGITS or places.max() > VECTOR_PLACES or np.any(places[owners] < 1):
        return None
    values = np.fromstring(joined.replace(b".", b"")[:-1], np.int64, sep=",")
    if np.max(values * 10.0 ** (VECTOR_PLACES - places)) > VECTOR_LIMIT:
        return None
    scaled: Int64s = values * 10 ** (VECTOR_PLACES - places)
    return scaled
