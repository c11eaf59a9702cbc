"""Formats counts, lists and places for the sentence of a claim."""

from __future__ import annotations

from collections.abc import Iterable


def listed(parts: Iterable[str]) -> str:
    """Join parts of a sentence: a, b and c."""
    words = list(parts)
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else "".join(words)


def in_function(spot: str) -> str:
    """Where to make the change: frames show the function's first line, not the line of the call."""
    return f" in the function at {spot}" if spot else ""
