"""Scrub texts inside binary data, in place and without changing its length."""

from __future__ import annotations

import re
from collections.abc import Callable

from warpline.scrub.kinds import Kind

_TEXT = re.compile(rb"[\t\n\r\x20-\x7e\x80-\xff]{4,}")
# Several texts separated by zero bytes are an environment or a command line.
_LIST = re.compile(rb"(?:[\t\n\r\x20-\x7e]{2,}\x00){2,}[\t\n\r\x20-\x7e]{2,}")
_WIDE = re.compile(rb"(?:(?:[\t\n\r\x20-\x7e]\x00){2,}(?:\x00\x00)?)+")
_WIDE_BIG = re.compile(rb"(?:(?:\x00[\t\n\r\x20-\x7e]){2,}(?:\x00\x00)?)+")
_FILLER = "x"


def clean_bytes(raw: bytes, clean: Callable[[str], tuple[str, tuple[Kind, ...]]]) -> tuple[bytes, tuple[Kind, ...]]:
    """Overwrite every leaking text with the scrubber ``clean``; return the bytes and the kinds of leaks."""
    found: list[Kind] = []

    def replaced(match: re.Match[bytes], encoding: str) -> bytes:
        text = match[0].decode(encoding, "surrogateescape" if encoding == "utf-8" else "strict")
        _, kinds = clean(text)
        if not kinds:
            return match[0]
        found.extend(kinds)
        return (_FILLER * (len(match[0]) // len(_FILLER.encode(encoding)))).encode(encoding)

    raw = _LIST.sub(lambda match: replaced(match, "utf-8"), raw)
    raw = _TEXT.sub(lambda match: replaced(match, "utf-8"), raw)
    raw = _WIDE.sub(lambda match: replaced(match, "utf-16-le"), raw)
    raw = _WIDE_BIG.sub(lambda match: replaced(match, "utf-16-be"), raw)
    return raw, tuple(found)
