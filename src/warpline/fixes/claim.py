"""What a rule reports when it finds something, and where to look."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Cause = Literal["dispatch", "sync", "kernel", "transfer", "input", "memory", "comm", "cold_start", "healthy", "unclear"]
CAUSES: dict[Cause, str] = {
    "cold_start": "Cold start",
    "input": "Input-bound",
    "sync": "Synchronisation-bound",
    "transfer": "Copy-bound",
    "memory": "Allocator-bound",
    "kernel": "Kernel-bound",
    "comm": "Communication-bound",
    "dispatch": "Dispatch-bound",
    "healthy": "Healthy",
    "unclear": "Unclear",
}
"""Each cause with the first words of its verdict, in the order in which equal gains are listed."""
Confidence = Literal["high", "medium", "low"]
Effort = Literal["setting", "few_lines", "rewrite"]
"""Effort for the user: one line or flag, a few lines, or a rewrite."""


class Place(Struct, frozen=True):
    """Where to look: an op, and the user's source line if frames were recorded."""

    op: str | None
    file: str | None
    line: int | None
    count: int

    @property
    def spot(self) -> str:
        """`train.py:12`, the line on which a function begins; empty where no frames were recorded."""
        return f"{self.file}:{self.line}" if self.file else ""


class Claim(Struct, frozen=True):
    """What a rule reports when it finds something."""

    sentence: str
    places: tuple[Place, ...] = ()
    how: str | None = None
    """Advice for this program, if the trace shows enough; replaces the rule's general advice."""
    once_ns: int = 0
    """Time that is lost one time in the recording, and not in each step."""
    most: Confidence = "high"
    """The highest confidence that this program's evidence supports."""
    effort: Effort | None = None
    """Effort in this program, if it is not that of the fix."""
