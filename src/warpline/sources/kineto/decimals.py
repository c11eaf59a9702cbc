"""JSON numbers as exact integers: times in nanoseconds, ids and sizes.

float64 is never used on the way: a time with nanoseconds since 1970 needs 61 bits, a float64 has 53.
"""

from __future__ import annotations

import re
from typing import Final

from warpline.sources.kineto.events import MISSING

SPACE: Final = bytes(range(0x21))
"""White space between tokens: every control character, because damaged files contain NUL bytes."""
MAX_DIGITS: Final = 19
"""Digits of the largest int64."""
MAX_EXPONENT: Final = 1 << 30
"""Larger exponents are limited to this: the number is zero or too large in any case."""

_NUMBER = re.compile(rb"(-?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?)([0-9]+))?")


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
