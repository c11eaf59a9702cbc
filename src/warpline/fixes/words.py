"""Formats counts, lists and places for the sentence of a claim."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct


class StepNoun(Struct, frozen=True):
    """The noun for what the numbers of a sentence are about: a step, or a recording that has no steps."""

    word: Literal["step", "recording"]

    @classmethod
    def of(cls, *, has_steps: bool) -> StepNoun:
        """The noun of a trace with or without steps."""
        return cls("step" if has_steps else "recording")

    @property
    def per(self) -> str:
        """After a count: "3 kernels a step", "3 kernels in the recording"."""
        return "a step" if self.word == "step" else "in the recording"

    @property
    def new(self) -> str:
        """What a fix makes of it, above a column: "new step", "new time"."""
        return "new step" if self.word == "step" else "new time"

    @property
    def recorded(self) -> str:
        """All of it."""
        return "the recorded steps" if self.word == "step" else "the recording"

    def one(self, article: str, length: str = "") -> str:
        """`each step` or `the recording`; with a length, `each 2 ms step` or `the 2 ms recording`."""
        words = (article if self.word == "step" else "the", length, self.word)
        return " ".join(filter(None, words))

    def lasting(self, length: str) -> str:
        """`a step of 2 ms`, `a recording of 2 ms`."""
        return f"a {self.word} of {length}"


def listed(parts: Iterable[str]) -> str:
    """Join parts of a sentence: a, b and c."""
    words = list(parts)
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else "".join(words)


def in_place(spot: str) -> str:
    """Where to make the change."""
    return f" in {spot}" if spot else ""
