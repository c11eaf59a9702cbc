"""Scrub a torch.profiler trace: write a new one from what is known.

Every key of an event, of its arguments and of the file is looked up in ``kineto_fields``; its value passes the check
that stands there, or becomes a pseudonym, or is dropped. What is not listed is dropped, whatever it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Protocol

import msgspec

from warpline.scrub.kineto_fields import DISTRIBUTED, HEADER, Fields, Remembered, device
from warpline.scrub.kineto_stream import DAMAGED, MALFORMED, Around, Event, Sink, read_events
from warpline.scrub.names import NameScrubber
from warpline.scrub.tally import Tally
from warpline.scrub.values import DROPPED

ARGUMENTS = "traceEvents[].args"
_encode_lines = msgspec.json.Encoder().encode_lines
_encode = msgspec.json.encode


class ScrubOutput(Protocol):
    """Where the new trace is written."""

    def write(self, data: bytes, /) -> object: ...


class TraceScrubber:
    """Writes one trace."""

    def __init__(self, names: NameScrubber, tally: Tally, keep: Collection[str] = ()) -> None:
        self.keep = frozenset(keep)
        self.used: set[str] = set()
        self._tally = tally
        self._fields = Fields(names)
        self._output: ScrubOutput | None = None
        self._first = True
        self._names: dict[tuple[Any, Any], Remembered] = {}

    def scrub(self, blocks: Iterable[bytes], output: ScrubOutput) -> Around:
        """Read a trace and write the new one."""
        self._output = output
        around = read_events(blocks, self._begin)
        after = self._header(around.after)
        if around.notes:
            self._events([DAMAGED] * around.notes)
        if around.truncated:
            # A reader must see that the end is missing, as it was.
            output.write(b"" if self._first else b",\n")
        elif around.bare_list:
            output.write(b"\n]\n")
        else:
            output.write(b"\n]" + "".join(f",\n{key}: {value}" for key, value in after).encode() + b"\n}\n")
        return around

    def texts(self) -> Iterator[tuple[str, str, str | None]]:
        """The kind of each different text, the text and what became of it."""
        return self._fields.texts()

    def _begin(self, around: Around) -> Sink:
        assert self._output is not None
        if around.bare_list:
            self._output.write(b"[\n")
        else:
            keys = [f"{key}: {value},\n" for key, value in self._header(around.before)]
            self._output.write(b"{\n" + "".join(keys).encode() + b'"traceEvents": [\n')
        return self._events

    def _events(self, events: list[Event]) -> None:
        assert self._output is not None
        text = _encode_lines([self._event(event) for event in events])
        # A line break within a text is escaped: every one here stands between two events.
        self._output.write((b"" if self._first else b",\n") + text.rstrip(b"\n").replace(b"\n", b",\n"))
        self._first = self._first and not events

    def _event(self, event: Event) -> Event:
        if event is MALFORMED or event is DAMAGED:
            self._tally.dropped["traceEvents[]" if event is MALFORMED else "header"] += 1
            return event
        checks = self._fields.event
        changed = []
        for key, value in event.items():
            if (check := checks.get(key)) is not None:
                checked = check(value)
            elif key == "name" and type(value) is str:
                checked = self._names_like(event)[value]
            elif key == "args" and type(value) is dict:
                self._check_arguments(value)
                continue
            else:
                checked = DROPPED
            if checked is not value:
                changed.append((key, checked))
        self._tally.kept += len(event) - ("args" in event)
        if changed:
            self._change(event, changed, "traceEvents[]")
        return event

    def _names_like(self, event: Event) -> Remembered:
        """What the names of events with this one's phase and category become."""
        phase, category = event.get("ph"), event.get("cat")
        if not isinstance(phase, str | None) or not isinstance(category, str | None):
            phase = category = None
        names = self._names.get((phase, category))
        if names is None:
            names = self._names[phase, category] = self._fields.event_names(phase, category)
        return names

    def _check_arguments(self, arguments: Event) -> None:
        checks = self._fields.arguments
        changed = []
        for key, value in arguments.items():
            checked = check(value) if (check := checks.get(key)) is not None else DROPPED
            if checked is not value:
                changed.append((key, checked))
        self._tally.kept += len(arguments)
        if changed:
            self._change(arguments, changed, ARGUMENTS)

    def _change(self, values: Event, changed: list[tuple[str, Any]], where: str) -> None:
        """Replace or drop the values that did not pass as they are."""
        for key, checked in changed:
            place, value = f"{where}.{key}", values[key]
            self._tally.kept -= 1
            if self._keep_as_is(place, value, values, key):
                continue
            if checked is DROPPED:
                del values[key]
                if value is not None:
                    self._tally.dropped[place] += 1
                continue
            values[key] = checked
            if checked == value:
                self._tally.kept += 1
            else:
                self._tally.replaced[place] += 1

    def _keep_as_is(self, place: str, value: Any, new: Event, key: str) -> bool:
        """Whether this place is one of those to keep as they are."""
        if not self.keep or place not in self.keep:
            return False
        new[key] = value
        self.used.add(place)
        self._tally.kept += 1
        return True

    def _header(self, keys: dict[str, Any]) -> list[tuple[str, str]]:
        """The known top-level keys and their values as JSON."""
        found: dict[str, Any] = {}
        for key, value in keys.items():
            if self._keep_as_is(key, value, found, key):
                continue
            if key in ("deviceProperties", "computeProperties") and isinstance(value, list):
                found[key] = [self._counted(key, entry, device(entry)) for entry in value]
            elif key == "distributedInfo" and isinstance(value, dict):
                new = {
                    inner: value[inner]
                    for inner, check in DISTRIBUTED.items()
                    if inner in value and check(value[inner]) is not DROPPED
                }
                found[key] = self._counted(key, value, new)
            elif key in HEADER and HEADER[key](value) is not DROPPED:
                found[key] = value
                self._tally.kept += 1
            else:
                self._tally.dropped[key] += 1
        return [(_encode(key).decode(), _encode(value).decode()) for key, value in found.items()]

    def _counted(self, place: str, old: Any, new: dict[str, Any]) -> dict[str, Any]:
        for key, value in old.items() if isinstance(old, dict) else ():
            where = f"{place}.{key}"
            if self._keep_as_is(where, value, new, key):
                continue
            if key not in new:
                self._tally.dropped[where] += 1
            elif new[key] != value:
                self._tally.replaced[where] += 1
            else:
                self._tally.kept += 1
        return new
