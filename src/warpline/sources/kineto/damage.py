"""What a scrubbed trace says about damage that the original had.

Scrubbing leaves out what cannot be read. A metadata event stands in for each such place, so that the file is legal
JSON and a reader still counts the damage.
"""

from __future__ import annotations

from typing import Final

from warpline.sources.kineto.events import RawEvents

MALFORMED_EVENT: Final = "malformed_event"
"""Name of the metadata event in the place of an event that is invalid JSON."""
DAMAGED_HEADER: Final = "damaged_header"
"""Likewise for a key of the header."""


def recall(events: RawEvents) -> None:
    """Count the damage that metadata events stand for."""
    events.malformed_before = _count(events, MALFORMED_EVENT)
    events.notes += ["A part of the header was damaged before scrubbing."] * _count(events, DAMAGED_HEADER)


def _count(events: RawEvents, name: str) -> int:
    if name not in events.names:
        return 0
    return int(((events.phase == ord("M")) & (events.name == events.names.index(name))).sum())
