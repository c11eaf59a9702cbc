"""Many times at once, as exact nanoseconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np

from warpline.sources.kineto.decimals import parse_decimal
from warpline.sources.kineto.events import Int64s
from warpline.sources.kineto.fields import MISSING

VECTOR_DIGITS: Final = 16
"""Digits before the point that the vectorised parser takes: microseconds since 1970 have sixteen."""
VECTOR_LIMIT: Final = 9.2e18
"""Nanoseconds below this fit int64 with room for the rounding of the check."""
VECTOR_PLACES: Final = 3
"""Digits after the point; profilers write no more."""


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
