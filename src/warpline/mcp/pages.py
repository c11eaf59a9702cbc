"""An answer cut into pages: as many of its parts as fit, and a cursor for the rest.

A part's id is its JSON pointer (RFC 6901) in the document that `warpline … --json` prints: `/findings/0`. It is the
same in every call, for as long as the file and the arguments are.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from warpline.errors import UsageError

SCHEMA = "warpline.mcp/1"
PAGE_TOKENS = 2000
TOKEN_CHARACTERS = 3
"""JSON with numbers has three to four characters a token; the smaller number keeps the promise."""
PAGE_CHARACTERS = PAGE_TOKENS * TOKEN_CHARACTERS
FRAME_CHARACTERS = 900
"""Of a page, for what is around the parts: schema, cursor and the list of what is left."""
PART_CHARACTERS = 1200
"""What is longer is split into its own parts, so that pages are full."""
LISTED = 12
"""Names of parts that are left."""


class AnswerPart(Struct, frozen=True):
    """A part of an answer."""

    id: str
    value: Any

    @property
    def characters(self) -> int:
        """Its length on a page."""
        return len(encoded(self.id)) + len(encoded(self.value)) + 2


def encoded(value: Any) -> str:
    """A value as compact JSON."""
    return msgspec.json.encode(value).decode()


def page(document: Any, *, first: Sequence[str] = (), at: str = "", cursor: str = "") -> dict[str, Any]:
    """A page of the document, or of its part `at`; the keys of `first` come before the others."""
    chosen = _ordered(_at(document, at), first if not at else ())
    parts = list(_split(at, chosen, is_open=True))
    digest = hashlib.blake2b(encoded([at, chosen]).encode(), digest_size=6).hexdigest()
    start = _position(cursor, digest, len(parts))
    stop, room = start, PAGE_CHARACTERS - FRAME_CHARACTERS
    while stop < len(parts) and (stop == start or parts[stop].characters <= room):
        room -= parts[stop].characters
        stop += 1
    shown: dict[str, Any] = {"schema": SCHEMA}
    if isinstance(document, dict) and "schema" in document:
        shown["answer"] = document["schema"]
    shown["parts"] = {part.id: part.value for part in parts[start:stop]}
    if stop < len(parts):
        left = _names(at, parts[stop:])
        shown["left"] = left[:LISTED] + ([f"{len(left) - LISTED} more"] if len(left) > LISTED else [])
        shown["cursor"] = f"{digest}.{stop}"
    return shown


def _ordered(value: Any, first: Sequence[str]) -> Any:
    if not isinstance(value, dict):
        return value
    names = [*(name for name in first if name in value), *(name for name in value if name not in first)]
    return {name: value[name] for name in names if name != "schema"}


def _at(document: Any, pointer: str) -> Any:
    """The part that a pointer names."""
    value = document
    for word in pointer.split("/")[1:]:
        name = word.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and re.fullmatch(r"[0-9]{1,9}", name) and int(name) < len(value):
            value = value[int(name)]
        else:
            raise UsageError("no-such-part", f"the answer has no part {pointer!r}", "take an id of an answer")
    if pointer and not pointer.startswith("/"):
        raise UsageError("no-such-part", f"{pointer!r} is no id of a part", "an id is like /findings/0")
    return value


def _split(pointer: str, value: Any, is_open: bool = False) -> Iterator[AnswerPart]:
    """The value as parts of moderate size, in its order; what is open is split in any case."""
    if isinstance(value, str) and len(value) > PART_CHARACTERS:
        yield AnswerPart(pointer, f"{value[:PART_CHARACTERS]}… ({len(value) - PART_CHARACTERS} more characters)")
    elif isinstance(value, (dict, list)) and value and (is_open or len(encoded(value)) > PART_CHARACTERS):
        for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _split(f"{pointer}/{str(name).replace('~', '~0').replace('/', '~1')}", inner)
    else:
        yield AnswerPart(pointer, value)


def _position(cursor: str, digest: str, parts: int) -> int:
    if not cursor:
        return 0
    known, _, place = cursor.partition(".")
    if known != digest or not re.fullmatch(r"[0-9]{1,9}", place) or int(place) >= parts:
        raise UsageError("stale-cursor", "the cursor is not of this answer", "call again without a cursor")
    return int(place)


def _names(pointer: str, parts: Sequence[AnswerPart]) -> list[str]:
    """The parts that are left, by their first name below the pointer."""
    words = pointer.count("/") + 2
    return list(dict.fromkeys("/".join(part.id.split("/")[:words]) for part in parts))
