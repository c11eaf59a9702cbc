"""What was kept, replaced and dropped: counts by place, never a value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal

from msgspec import Struct, field

from warpline.scrub.vocabulary import known_words

Action = Literal["pseudonymised", "dropped"]


class ScrubChange(Struct, frozen=True):
    """The number of values of one place that were replaced or dropped."""

    action: Action
    place: str
    """Table and column, or the path of a JSON value."""
    count: int


class KeptText(Struct, frozen=True):
    """Texts of one kind that pass, as a whole or in part, and why."""

    kind: str
    count: int
    """Different texts that stay exactly as they are."""
    reason: str


REASONS = {
    "kernel": "identifiers of words that public libraries use, which tell the kernel's class",
    "op": "identifiers of words that public libraries use, and forms that torch writes",
    "call": "names of CUDA and system calls, and of the profiler's own activities",
    "range": "forms that torch and its libraries write, and words of every program (forward, step, layer 3)",
    "domain": "domains of public libraries",
    "frame": "paths within installed public packages, lines, and functions of these packages",
    "label": "threads and processes that torch, CUDA and the profilers name",
    "argument": "values that torch itself writes",
    "message": "sentences that nsys and CUDA write",
    "device": "models of GPUs",
}
"""Why a text of each kind may stay."""


def kept_texts(texts: Iterable[tuple[str, str, str | None]]) -> tuple[KeptText, ...]:
    """The kinds of texts that stay, from the kind of each different text, the text and what became of it."""
    counts = Counter(kind for kind, text, new in texts if text and text == new)
    return tuple(KeptText(kind, counts[kind], reason) for kind, reason in REASONS.items() if counts[kind])


class Tally(Struct):
    """Counts values."""

    kept: int = 0
    replaced: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)

    def changes(self) -> tuple[ScrubChange, ...]:
        """All changes; the most frequent first."""
        merged: Counter[tuple[Action, str]] = Counter()
        for place, count in self.replaced.items():
            merged["pseudonymised", shown(place)] += count
        for place, count in self.dropped.items():
            merged["dropped", shown(place)] += count
        found = [ScrubChange(action, place, count) for (action, place), count in merged.items() if count]
        return tuple(sorted(found, key=lambda change: (change.action, -change.count, change.place)))


def shown(place: str) -> str:
    """A place as it may be printed: a key that is no known word may itself be a secret."""
    parts = place.split(".")
    return ".".join(
        part if known_words(part) and len(part) <= 60 and part.isprintable() else "(other)" for part in parts
    )
