"""What a rule says when it has found something, and where to look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Cause = Literal["dispatch", "sync", "kernel", "transfer", "input", "memory", "comm", "cold_start", "healthy"]
CAUSES: dict[Cause, str] = {
    "cold_start": "Still starting up",
    "input": "Waiting for data",
    "sync": "Held up by synchronisation",
    "transfer": "Held up by copies",
    "memory": "Held up by the allocator",
    "kernel": "Kernel-bound",
    "comm": "Held up by communication",
    "dispatch": "Dispatch-bound",
    "healthy": "Healthy",
}
"""Each with the words that begin a verdict, in the order in which equal gains are listed."""
Confidence = Literal["high", "medium", "low"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where to look: an op, and the user's own line where frames were recorded."""

    op: str | None
    file: str | None
    line: int | None
    count: int

    @property
    def spot(self) -> str:
        """`train.py:12`, the line on which a function begins; empty where no frames were recorded."""
        return f"{self.file}:{self.line}" if self.file else ""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a rule says when it has found something."""

    sentence: str
    places: tuple[Place, ...] = ()
    how: str | None = None
    """What this program should write, where the trace shows enough to say it; replaces the rule's advice."""
