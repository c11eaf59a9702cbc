"""Text that UTF-8 can encode. JSON can hold half a surrogate pair (`"\\ud800"`), which Python's parser keeps."""

from __future__ import annotations

import re
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")


def valid_text(text: str) -> str:
    """The text with U+FFFD for each unpaired surrogate."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def valid_json(value: Any) -> Any:
    """A parsed JSON value, with valid text everywhere in it."""
    if isinstance(value, str):
        return valid_text(value)
    if isinstance(value, list):
        return [valid_json(entry) for entry in value]
    if isinstance(value, dict):
        return {valid_text(key): valid_json(entry) for key, entry in value.items()}
    return value
