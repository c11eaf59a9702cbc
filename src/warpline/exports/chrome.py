"""A timeline as JSON in the Trace Event Format, which Perfetto and chrome://tracing open.

A group is a process and a track a thread. Times are microseconds with three decimals: nanoseconds, exactly.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import groupby

from warpline.exports.timeline import BAR, Arrows, ViewerTimeline, ViewerTrack
from warpline.sanitise import sanitise_json

START, FINISH = "s", "f"
_LAST_BACKSLASH = re.compile(r'(?<!\\)((?:\\\\)*)\\\\(?=")')
"""A backslash at the end of a string: Perfetto (v52) takes the quotation mark after it for a part of the string, and
refuses the file."""


def chrome_json(timeline: ViewerTimeline) -> Iterator[str]:
    """The file in parts: one line for each event."""
    yield '{"displayTimeUnit": "ns", "traceEvents": [\n'
    first = True
    for event in _events(timeline):
        yield event if first else ",\n" + event
        first = False
    yield "\n]}\n"


def _events(timeline: ViewerTimeline) -> Iterator[str]:
    arrows, zero_ns, track_number = _Ends(timeline), timeline.zero_ns, 0
    for process, (group, tracks) in enumerate(groupby(timeline.tracks, key=lambda track: track.group), 1):
        yield _about("process_name", process, 0, {"name": group})
        yield _about("process_sort_index", process, 0, {"sort_index": process})
        for track in tracks:
            track_number += 1
            yield _about("thread_name", process, track_number, {"name": track.name})
            yield _about("thread_sort_index", process, track_number, {"sort_index": track_number})
            yield from _bars(track, zero_ns, process, track_number, arrows)


def _bars(track: ViewerTrack, zero_ns: int, process: int, number: int, arrows: _Ends) -> Iterator[str]:
    details = track.bars.columns[len(BAR) :]
    place = f'"pid":{process},"tid":{number}'
    texts: dict[str, str] = {}
    category = json.dumps(track.table)
    for start, end, name, row, *values in track.bars.rows():
        text = texts.get(name) or texts.setdefault(name, _quoted(name))
        begin = microseconds(start - zero_ns)
        shown = {detail: value for detail, value in zip(details, values, strict=True) if value is not None}
        args = f',"args":{_quoted(shown)}' if shown else ""
        yield (
            f'{{"ph":"X","cat":{category},"name":{text},{place},"ts":{begin},"dur":{microseconds(end - start)}{args}}}'
        )
        # An arrow's end belongs to the bar that is open at its time, so it stands right after it.
        for phase, kind, arrow in arrows.at(track.table, row):
            enclosing = ',"bp":"e"' if phase == FINISH else ""
            yield f'{{"ph":"{phase}","cat":"{kind}","name":"{kind}","id":{arrow},{place},"ts":{begin}{enclosing}}}'


class _Ends:
    """Which arrows start and finish at a row of a table."""

    def __init__(self, timeline: ViewerTimeline) -> None:
        self._by_table: dict[str, list[tuple[str, Arrows, dict[int, list[int]]]]] = {}
        for arrows in timeline.arrows:
            self._by_table.setdefault(arrows.source, []).append((START, arrows, arrows.leaving()))
            self._by_table.setdefault(arrows.target, []).append((FINISH, arrows, arrows.arriving()))

    def at(self, table: str, row: int) -> Iterator[tuple[str, str, int]]:
        """Phase, kind and number of each."""
        for phase, arrows, numbers in self._by_table.get(table, ()):
            for number in numbers.get(row, ()):
                yield phase, arrows.kind, number


def microseconds(time_ns: int) -> str:
    """Nanoseconds as a JSON number of microseconds, without rounding."""
    return f"{time_ns // 1000}.{time_ns % 1000:03d}"


def _about(what: str, process: int, thread: int, args: dict[str, str | int]) -> str:
    return f'{{"ph":"M","name":"{what}","pid":{process},"tid":{thread},"args":{_quoted(args)}}}'


def _quoted(value: object) -> str:
    text = sanitise_json(json.dumps(value, ensure_ascii=False))
    return _LAST_BACKSLASH.sub(r"\1\\u005c", text) if "\\" in text else text
