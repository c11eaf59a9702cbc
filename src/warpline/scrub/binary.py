"""Bytes that hold texts among other things: each text is scrubbed in place, and the length stays."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from warpline.scrub.kinds import Kind

if TYPE_CHECKING:
    from warpline.scrub.text import Scrubber

_TEXT = re.compile(rb"[\t\n\r\x20-\x7e\x80-\xff]{4,}")
_WIDE = re.compile(rb"(?:[\t\n\r\x20-\x7e]\x00){4,}")
_WIDE_BIG = re.compile(rb"(?:\x00[\t\n\r\x20-\x7e]){4,}")
_VARIABLE = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*=")
LEAST_VARIABLES = 3
"""So many assignments with zeros between are an environment."""
_FILLER = "x"


def clean_bytes(raw: bytes, scrubber: Scrubber) -> tuple[bytes, tuple[Kind, ...]]:
    """The bytes with every text that leaks overwritten, and the kinds of what was found."""
    found: list[Kind] = []
    variables = sum(bool(_VARIABLE.match(part)) for part in raw.split(b"\0"))
    environment = variables >= LEAST_VARIABLES and Kind.ENVIRONMENT not in scrubber.keep

    def replaced(match: re.Match[bytes], encoding: str) -> bytes:
        text = match[0].decode(encoding, "surrogateescape" if encoding == "utf-8" else "strict")
        if environment and encoding == "utf-8" and _VARIABLE.match(match[0]):
            found.append(Kind.ENVIRONMENT)
            return _FILLER.encode() * len(match[0])
        _, kinds = scrubber.clean(text)
        if not kinds:
            return match[0]
        found.extend(kinds)
        return (_FILLER * (len(match[0]) // len(_FILLER.encode(encoding)))).encode(encoding)

    raw = _TEXT.sub(lambda match: replaced(match, "utf-8"), raw)
    raw = _WIDE.sub(lambda match: replaced(match, "utf-16-le"), raw)
    raw = _WIDE_BIG.sub(lambda match: replaced(match, "utf-16-be"), raw)
    return raw, tuple(found)
