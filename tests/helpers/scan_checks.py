"""What the tests of the scanners share: writing files, comparing results, and json as a third opinion."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from warpline.errors import UnreadableFile
from warpline.sources.kineto import native
from warpline.sources.kineto.events import FIELDS, MISSING, Field, RawEvents
from warpline.sources.kineto.stream import scan_file

SOURCE = Path(native.__file__).with_name("scan.c")
Build = Callable[..., Path]
"""Compiles the scanner with the given flags."""
Scanned = RawEvents | str
"""Events, or the line of the error."""


def scan_text(text: bytes, folder: Path, *, compress: bool = False, **options: Any) -> Scanned:
    path = folder / "trace.json"
    path.write_bytes(gzip.compress(text, 1, mtime=0) if compress else text)
    try:
        return scan_file(path, **options)
    except UnreadableFile as error:
        return error.line()


def difference(one: Scanned, other: Scanned) -> str:
    """What differs between two results, apart from the scanner's name; empty when nothing does."""
    if isinstance(one, str) or isinstance(other, str):
        return "" if one == other else f"{one!r} / {other!r}"
    for column in RawEvents.__struct_fields__:
        left, right = getattr(one, column), getattr(other, column)
        if column == "fields":
            for key in FIELDS:
                for part in ("rows", "values"):
                    if not _equal(getattr(left[key], part), getattr(right[key], part)):
                        return f"{key}.{part}: {getattr(left[key], part)} / {getattr(right[key], part)}"
        elif isinstance(left, np.ndarray):
            if not _equal(left, right):
                return f"{column}: {left} / {right}"
        elif column != "scanner" and repr(left) != repr(right):  # repr: NaN in a header equals itself
            return f"{column}: {left!r} / {right!r}"
    return ""


def _equal(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> bool:
    return left.dtype == right.dtype and left.shape == right.shape and np.array_equal(left, right)


def both(text: bytes, folder: Path, **options: Any) -> RawEvents:
    """The events of a readable trace, after every way to read it has given the same."""
    python = scan_text(text, folder, scanner="python", **options)
    for compress in (False, True):
        compiled = scan_text(text, folder, scanner="native", compress=compress, **options)
        assert difference(compiled, python) == ""
    assert isinstance(python, RawEvents)
    return python


def decoded(events: RawEvents) -> list[dict[str, Any]]:
    """Events as dictionaries with the strings looked up, for comparison with what json makes of the file."""
    rows: list[dict[str, Any]] = [
        {
            "ph": chr(events.phase[row]) if events.phase[row] else None,
            "cat": _look(events.categories, events.category[row]),
            "name": _look(events.names, events.name[row]),
            "pid": _look(events.labels, events.process[row]),
            "tid": _look(events.labels, events.thread[row]),
            "ts": _number(events.time_ns[row]),
            "dur": _number(events.duration_ns[row]),
            "args": {},
        }
        for row in range(len(events))
    ]
    for key, kind in FIELDS.items():
        column = events.fields[key]
        for row, value in zip(column.rows.tolist(), column.values.tolist(), strict=True):
            rows[row]["args"][key] = json.loads(events.texts[value]) if kind is Field.TEXT else value
    return rows


def _look(strings: list[str], code: int) -> str | None:
    return strings[code] if code >= 0 else None


def _number(value: int) -> int | None:
    return None if value == MISSING else int(value)


def by_json(text: bytes) -> list[dict[str, Any]]:
    """The same from the standard library's parser; only for legal JSON."""
    document = json.loads(text.decode("utf-8-sig"), parse_float=Decimal)
    events = document if isinstance(document, list) else document["traceEvents"]
    return [
        {
            "ph": event.get("ph"),
            "cat": event.get("cat"),
            "name": event.get("name"),
            "pid": json.dumps(event["pid"], ensure_ascii=False) if "pid" in event else None,
            "tid": json.dumps(event["tid"], ensure_ascii=False) if "tid" in event else None,
            "ts": _scaled(event.get("ts"), 1000),
            "dur": _scaled(event.get("dur"), 1000),
            "args": _arguments(event.get("args", {})),
        }
        for event in events
    ]


def _scaled(value: Any, scale: int) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
        return None
    try:
        number = int(Decimal(value) * scale)
    except (ArithmeticError, ValueError):
        return None
    return number if abs(number) < 1 << 63 else None


def _arguments(arguments: dict[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for key, kind in FIELDS.items():
        if key not in arguments:
            continue
        value = arguments[key]
        if kind is Field.TEXT:
            kept[key] = json.loads(json.dumps(value, default=float))
        elif kind is Field.INTEGER:
            kept[key] = _scaled(value, 1)
        else:
            value = json.loads(value) if isinstance(value, str) else value
            parts = [_scaled(part, 1) for part in value] if isinstance(value, list) else []
            kept[key] = parts if len(parts) == 3 and None not in parts else None
    return {key: value for key, value in kept.items() if value is not None}
