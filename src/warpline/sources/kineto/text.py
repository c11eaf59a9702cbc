"""Converts raw JSON strings to Python strings, including invalid ones that strict parsers refuse.

Both scanners hand their raw text to these functions, so the rules for damaged strings exist once.
"""

from __future__ import annotations

import json
import re
from typing import Any

from warpline.sources.valid_text import valid_json

_ESCAPE = re.compile(
    r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|\\u([0-9a-fA-F]{4})|\\([\"\\/bfnrt])"
)
_SHORT_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_INTEGER = re.compile(rb"-?[0-9]{1,40}")


def _unescape(match: re.Match[str]) -> str:
    high, low, single, short = match.groups()
    if high is not None:
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + (int(low, 16) - 0xDC00))
    if single is not None:
        code = int(single, 16)
        return "\ufffd" if 0xD800 <= code < 0xE000 else chr(code)
    return _SHORT_ESCAPES.get(short, short)


def decode_raw(raw: bytes) -> str:
    """Raw JSON text as a string, escapes untouched."""
    return raw.decode("utf-8", "replace")


def decode_string(body: bytes) -> str:
    """The text between the quotes of a JSON string.

    An escape that JSON does not know stays as written (`C:\\dev` from Windows paths), and bytes that are
    not UTF-8 or half a surrogate pair become U+FFFD, so that the result can always be encoded again.
    """
    text = decode_raw(body)
    return _ESCAPE.sub(_unescape, text) if "\\" in text else text


def decode_json(raw: bytes) -> Any:
    """The value of raw JSON text; ValueError or RecursionError if it is invalid."""
    return valid_json(json.loads(decode_raw(raw), strict=False))


def label_of(value: int | str) -> str:
    """A process or thread id as JSON text in its one canonical spelling: `730`, `"stream 7"`."""
    return str(value) if isinstance(value, int) else json.dumps(value, ensure_ascii=False)


def decode_label(raw: bytes) -> str:
    """The canonical spelling of a raw process or thread id; other values stay unchanged."""
    if raw.startswith(b'"'):
        return label_of(decode_string(raw[1:-1]))
    return label_of(int(raw)) if _INTEGER.fullmatch(raw) else decode_raw(raw)
