"""Keeps finished answers on disk: the same question about the same file is answered again without an analysis.

An answer is found by everything that it depends on: the file's content, the options, the code of warpline itself, what
`warpline run` stored beside the file, and the measured ceilings. It is one JSON file after a line with its name and
digest, written beside and renamed into place. What cannot be read or written is not kept: the analysis runs again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from warpline.capture.recorded import MANIFEST
from warpline.hardware.ceilings import VARIABLE, user_directory
from warpline.records import dataclass
from warpline.reports import sections
from warpline.reports.sections import Report
from warpline.sources.cache_folder import answers_folder, content_key, limit_bytes
from warpline.sources.cache_limit import make_room
from warpline.sources.private_files import discard, open_file, private_folder, publish, temporary_file
from warpline.sources.record_files import outcomes_file
from warpline.trace.beside import companions_of

KEPT = 200
"""Number of answers; the oldest are removed."""
MAX_HEAD_BYTES, MAX_ANSWER_BYTES = 1000, 64 << 20
_TYPE = "is"
_PACKAGE = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class FinishedAnswer:
    """A finished answer in all its forms."""

    json: str
    brief: Report
    full: Report


class Forms(Protocol):
    """The forms of an answer."""

    @property
    def json(self) -> str: ...

    @property
    def brief(self) -> Report: ...

    @property
    def full(self) -> Report: ...


def answer_key(file: Path, options: Sequence[str]) -> str | None:
    """Name of the answer to this question; None if the file is too small to be worth it."""
    limit_bytes()  # a wrong setting is an error, whether or not there is an answer
    content = content_key(file) if file.is_file() else None
    if content is None:
        return None
    digest = hashlib.blake2b(digest_size=16)
    for part in (content, file.name, *options, *_surroundings(file)):
        digest.update(part.encode(errors="surrogateescape") + b"\0")
    return digest.hexdigest()


def load(key: str) -> FinishedAnswer | None:
    """The kept answer; None if there is none, or it is damaged."""
    try:
        with open_file(answers_folder() / f"{key}.json") as file:
            head, payload = file.readline(MAX_HEAD_BYTES), file.read(MAX_ANSWER_BYTES)
            if head != _head(key, payload):
                return None
            with contextlib.suppress(OSError):  # a folder that cannot be written can be read
                os.utime(file.fileno())
        kept = json.loads(payload)
        answer = FinishedAnswer(str(kept["json"]), _decoded(kept["brief"]), _decoded(kept["full"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return answer if isinstance(answer.brief, Report) and isinstance(answer.full, Report) else None


def store(key: str, answer: Forms) -> None:
    """Keep an answer, and remove the oldest ones."""
    with contextlib.suppress(OSError, ValueError):
        kept = {"json": answer.json, "brief": _encoded(answer.brief), "full": _encoded(answer.full)}
        payload = json.dumps(kept).encode()
        if len(payload) > min(limit_bytes(), MAX_ANSWER_BYTES):
            return
        folder = private_folder(answers_folder())
        make_room(len(payload))
        with temporary_file(folder) as temporary:
            temporary.write_bytes(_head(key, payload) + payload)
            publish(temporary, folder / f"{key}.json")
        for old in sorted(folder.glob("*.json"), key=_used_ns, reverse=True)[KEPT:]:
            discard(old)
        make_room()


def _head(key: str, payload: bytes) -> bytes:
    """The first line: a file under another name, or with other content, is not this answer."""
    return json.dumps([key, hashlib.blake2b(payload, digest_size=16).hexdigest()]).encode() + b"\n"


def _used_ns(path: Path) -> int:
    try:
        return path.lstat().st_mtime_ns
    except OSError:  # another process has just removed it
        return 0


def _surroundings(file: Path) -> Iterator[str]:
    """Everything else that an answer depends on."""
    yield from _states(sorted(_PACKAGE.rglob("*.*")))
    yield from _states([file.parent / MANIFEST, *companions_of(file), outcomes_file()])
    chosen = os.environ.get(VARIABLE, "")
    for place in (Path(chosen) if chosen else None, user_directory()):
        if place is not None:
            yield from _states([place, *sorted(place.glob("*"))])


def _states(paths: Sequence[Path]) -> Iterator[str]:
    """Path, size and time of each file that exists."""
    for path in paths:
        if path.suffix == ".pyc":
            continue
        with contextlib.suppress(OSError):
            state = path.stat()
            yield f"{path} {state.st_size} {state.st_mtime_ns}"


def _encoded(value: Any) -> Any:
    """A report, or a part of one, as JSON values that name their types."""
    if is_dataclass(value):
        parts = {field.name: _encoded(getattr(value, field.name)) for field in fields(value)}
        return {_TYPE: type(value).__name__, **parts}
    if isinstance(value, tuple):
        return [_encoded(one) for one in value]
    return value


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_decoded, value))
    if not isinstance(value, dict):
        return value
    parts = {name: _decoded(one) for name, one in value.items() if name != _TYPE}
    return _types()[value[_TYPE]](**parts)


@cache
def _types() -> dict[str, type]:
    """The types of a report by name."""
    return {name: kind for name, kind in vars(sections).items() if isinstance(kind, type) and is_dataclass(kind)}
