"""Files of other tools: not read, but named, each by marks of its own."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from msgspec import Struct

from warpline.package_data import read_table


class OtherFormat(Struct, frozen=True):
    """A format that is not read."""

    description: str
    """Completes "FILE is …"."""
    starts: re.Pattern[bytes]
    """How its files start, unpacked."""
    has: tuple[bytes, ...]
    """Texts that are all in its first megabyte."""
    give: str
    """What to give instead; empty where the same tool has nothing better."""

    def is_of(self, head: bytes) -> bool:
        """Whether a file that starts with these bytes has the marks."""
        return self.starts.match(head) is not None and all(text in head for text in self.has)


def other_format(head: bytes) -> OtherFormat | None:
    """The format of a file that starts with these bytes, if it has the marks of another tool."""
    return next((known for known in _formats() if known.is_of(head)), None)


@cache
def _formats() -> tuple[OtherFormat, ...]:
    return tuple(
        OtherFormat(
            entry["is"],
            re.compile(entry["starts"].encode("latin-1")),
            tuple(part.encode() for part in entry.get("has", ())),
            entry.get("give", ""),
        )
        for entry in read_table("sources", "other_formats", dict[str, list[dict[str, Any]]])["format"]
    )
