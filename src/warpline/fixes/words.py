"""Counts, lists and places in the words of a claim."""

from __future__ import annotations

from collections.abc import Iterable


def counted(value: float) -> str:
    """A number of things a step: whole where it is whole, with a decimal where a step has only a part of one."""
    near = round(value)
    return f"{near:,}" if abs(value - near) < 0.05 or value >= 100 else f"{value:,.1f}"


def several(value: float, one: str, more: str | None = None) -> str:
    """The number with its noun: 1 kernel, 0.5 kernels, 2 copies."""
    number = counted(value)
    return f"1 {one}" if number == "1" else f"{number} {more or one + 's'}"


def listed(parts: Iterable[str]) -> str:
    """Parts of a sentence: a, b and c."""
    words = list(parts)
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else "".join(words)


def in_function(spot: str) -> str:
    """Where to write something: frames tell where a function begins, not which of its lines is meant."""
    return f" in the function at {spot}" if spot else ""
