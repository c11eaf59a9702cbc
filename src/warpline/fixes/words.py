"""Counts, lists and places in the words of a claim."""

from __future__ import annotations

from collections.abc import Iterable


def listed(parts: Iterable[str]) -> str:
    """Parts of a sentence: a, b and c."""
    words = list(parts)
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else "".join(words)


def in_function(spot: str) -> str:
    """Where to write something: frames tell where a function begins, not which of its lines is meant."""
    return f" in the function at {spot}" if spot else ""
