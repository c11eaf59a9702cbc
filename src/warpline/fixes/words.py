"""Formats counts, lists and places for the sentence of a claim."""

from __future__ import annotations

from collections.abc import Iterable


def counted(value: float) -> str:
    """A count per step: an integer where it is close to one, "about 1" from 0.75 to 1.25, else one decimal."""
    near = round(value)
    if near == 1 and 0.05 <= abs(value - near) <= 0.25:
        return "about 1"
    return f"{near:,}" if abs(value - near) < 0.05 or value >= 100 else f"{value:,.1f}"


def several(value: float, one: str, more: str | None = None) -> str:
    """The number with its noun: 1 kernel, about 1 kernel, 0.5 kernels, 2 copies."""
    number = counted(value)
    return f"{number} {one}" if number in ("1", "about 1") else f"{number} {more or one + 's'}"


def listed(parts: Iterable[str]) -> str:
    """Join parts of a sentence: a, b and c."""
    words = list(parts)
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else "".join(words)


def in_function(spot: str) -> str:
    """Where to make the change: frames show the function's first line, not the line of the call."""
    return f" in the function at {spot}" if spot else ""
