"""JSON as damaged writers leave it: any text in place of a value, and one key several times."""

from __future__ import annotations

import json
from typing import Any


class Raw:
    """A piece of the file's text, written in place of a value, as it is."""

    def __init__(self, written: str) -> None:
        self.text = written


class Again(str):
    """A key that is in its object already: it hashes as another one, and is written as the same."""

    __slots__ = ()

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


_MARK = "\ue000raw%d\ue000"


def written(document: Any, indent: int | None = None) -> str:
    """The document as text; lone surrogates stay escaped, everything else may be what no standard allows."""
    pieces: list[str] = []

    def plain(value: Any) -> Any:
        if isinstance(value, Raw):
            pieces.append(value.text)
            return _MARK % (len(pieces) - 1)
        if isinstance(value, dict):
            return {_key(key): plain(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [plain(inner) for inner in value]
        return value

    def _key(key: Any) -> str:
        if not isinstance(key, Again):
            return str(key)
        pieces.append(json.dumps(str.__str__(key)))
        return _MARK % (len(pieces) - 1)

    result = json.dumps(plain(document), indent=indent)
    for number, piece in enumerate(pieces):
        result = result.replace(json.dumps(_MARK % number), piece)
    return result
