"""What a rule reports when it finds something, and where to look."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import asdict

from warpline.analyses.user_frames import LineIs, Site

Cause = Literal[
    "dispatch",
    "sync",
    "kernel",
    "transfer",
    "input",
    "memory",
    "comm",
    "cold_start",
    "healthy",
    "unclear",
    "compute",
    "python",
    "wait",
]
"""What a step waits for; the last three only in programs that run on the CPU alone."""
CAUSES: dict[Cause, str] = {
    "cold_start": "Cold start",
    "input": "Input-bound",
    "sync": "Sync-bound",
    "transfer": "Transfer-bound",
    "memory": "Allocator-bound",
    "kernel": "Kernel-bound",
    "comm": "Communication-bound",
    "dispatch": "Dispatch-bound",
    "healthy": "Healthy",
    "unclear": "Unclear",
    "compute": "Compute-bound on the CPU",
    "python": "Python-bound",
    "wait": "Waiting",
}
"""Each cause with the first words of its verdict, in the order in which equal gains are listed."""
Confidence = Literal["high", "medium", "low"]
Effort = Literal["setting", "few_lines", "rewrite"]
"""Effort for the user: one line or flag, a few lines, or a rewrite."""


class Place(Struct, frozen=True):
    """Where to look: an op, and the place in the user's code if frames were recorded."""

    op: str | None
    file: str | None
    line: int | None
    count: int
    function: str | None = None
    line_is: LineIs | None = None

    @classmethod
    def at(cls, op: str | None, site: Site | None, count: int) -> Place:
        """An op at a place in the user's code."""
        return cls(op, count=count, **(asdict(site) if site else {"file": None, "line": None}))

    @property
    def site(self) -> Site | None:
        """The place in the user's code."""
        if self.file is None or self.line is None or self.function is None or self.line_is is None:
            return None
        return Site(self.file, self.line, self.function, self.line_is)

    @property
    def spot(self) -> str:
        """The place as text after "in"; empty where no frames were recorded."""
        return self.site.spot if self.site else ""


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
