"""The path of a JSON value in a trace, such as ``metadata.env.HOME`` or ``traceEvents[].name``."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

EVENTS = b"traceEvents"
MAX_TAIL_PARTS = 50_000
_EVENTS_END = re.compile(rb"\}\s*\]\s*,\s*\Z")
_OF_EVENTS = frozenset(("name", "cat", "ph", "pid", "tid", "ts", "dur", "id", "s", "bp"))
MAX_NAME_CHARS = 60


@dataclass(frozen=True, slots=True)
class Regions:
    """The start and end of the events in a piece that was split at its quotation marks."""

    start: int
    end: int

    def in_events(self, index: int) -> bool:
        """Whether a part belongs to an event."""
        return self.start <= index < self.end


def regions(parts: list[bytes], in_events: bool) -> Regions:
    """Find the header, events and tail of a piece; ``in_events`` means that the events started in an earlier piece."""
    start = 0
    if not in_events and not parts[0].lstrip().startswith(b"["):
        start = parts.index(EVENTS) if EVENTS in parts else len(parts)
    end = len(parts)
    if not parts[-1].rstrip().endswith(b","):
        for index in range(len(parts) - 1, max(start, len(parts) - MAX_TAIL_PARTS), -1):
            if b"]" in parts[index] and _EVENTS_END.search(parts[index]):
                end = end if b"ph" in parts[index:] else index + 1
                break
    return Regions(start, end)


@dataclass(slots=True)
class Places:
    """The paths of the parts of one piece; computed only if there is a leak."""

    parts: list[bytes]
    regions: Regions
    _walked: dict[int, str] = field(default_factory=dict)

    def of(self, index: int) -> str:
        """The path of a part."""
        if self.regions.in_events(index):
            key = self._key_before(index)
            return f"traceEvents[].{key}" if key in _OF_EVENTS else f"traceEvents[].args.{key}"
        if not self._walked:
            self._walk(0, self.regions.start)
            self._walk(self.regions.end - (self.regions.end % 2), len(self.parts))
        return self._walked.get(index, self._key_before(index))

    def _key_before(self, index: int) -> str:
        for here in range(index, max(index - 200, -1), -1):
            if here + 1 < len(self.parts) and self.parts[here + 1].lstrip()[:1] == b":":
                return _name(self.parts[here])
        return "?"

    def _walk(self, start: int, end: int) -> None:
        stack: list[str] = []
        key = ""
        for index in range(start, min(end, len(self.parts))):
            part = self.parts[index]
            if index % 2:
                if index + 1 < len(self.parts) and self.parts[index + 1].lstrip()[:1] == b":":
                    key = _name(part)
                self._walked[index] = ".".join(name for name in (*stack, key) if name)
                continue
            for char in part.decode("latin-1"):
                if char in "{[":
                    stack.append(key + ("[]" if char == "[" else ""))
                    key = ""
                elif char in "}]" and stack:
                    stack.pop()
                    key = ""


def _name(raw: bytes) -> str:
    return raw[:MAX_NAME_CHARS].decode("utf-8", "replace")
