"""A command line in parts, each with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Flag:
    """A part of a command line and its reason."""

    words: tuple[str, ...]
    why: str


def flag(*words: str, why: str) -> Flag:
    """A flag, shortly."""
    return Flag(words, why)


def words_of(flags: Sequence[Flag]) -> list[str]:
    """The command line."""
    return [word for one in flags for word in one.words]
