"""The blocks of an ``.ncu-rep``: how many kernels it holds, whether it is whole, and how it was made.

The file is a magic word, a small header, and blocks: a length, a header in protocol-buffer encoding and a payload. In
the header, field 2 is the number of kernels in the payload, field 3 facts about the session, and field 5 the length of
the payload. This is what files of ncu 2022 to 2025 show; NVIDIA does not document it. NVIDIA's own reader reports
neither damage nor the version.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import BinaryIO

from msgspec import Struct, field

from warpline.sources.kinds import NCU_MAGIC

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_RESULTS, _SESSION, _PAYLOAD = 2, 3, 5
_COMPONENT, _COMMAND = 8, 11
"""Fields of the session: a component with its version; the command line."""
MAX_HEADER_BYTES = 64 << 20
"""A block's header lists every metric name once: 135 kB with all sections."""
TARGET = "Nsight Compute Target"
"""The component whose version is that of ncu."""


class Container(Struct):
    """What the headers of a report's blocks say."""

    results: int = 0
    """Profiled kernels."""
    truncated: bool = False
    versions: dict[str, str] = field(default_factory=dict)
    command: str = ""
    """The command line of ncu."""

    @property
    def tool_version(self) -> str:
        """The version of ncu, for example ``2025.3.1.0``."""
        return self.versions.get(TARGET, "").partition(" ")[0]


def read_container(file: BinaryIO) -> Container:
    """Read the headers of all blocks; the payloads are skipped."""
    end = file.seek(0, os.SEEK_END)
    file.seek(len(NCU_MAGIC))
    found = Container()
    position = file.tell() + 4 + int.from_bytes(file.read(4), "little")
    while position < end:
        file.seek(position)
        length = int.from_bytes(file.read(4), "little")
        header = file.read(min(length, MAX_HEADER_BYTES))
        if len(header) < length or not length:
            found.truncated = True
            break
        numbers, texts = _fields(header)
        position += 4 + length + numbers.get(_PAYLOAD, 0)
        if position > end:
            found.truncated = True
            break
        found.results += min(numbers.get(_RESULTS, 0), end)
        _take_session(found, texts.get(_SESSION, b""))
    return found


def _take_session(found: Container, message: bytes) -> None:
    _, texts = _fields(message)
    if _COMMAND in texts:
        found.command = texts[_COMMAND].decode(errors="replace").strip()
    if _COMPONENT in texts:
        _, named = _fields(texts[_COMPONENT])
        found.versions[named.get(1, b"").decode(errors="replace")] = named.get(2, b"").decode(errors="replace")


def _fields(message: bytes) -> tuple[dict[int, int], dict[int, bytes]]:
    """The integers and the texts of a protocol buffer; the last value of each field."""
    numbers: dict[int, int] = {}
    texts: dict[int, bytes] = {}
    for number, value in _values(message):
        if isinstance(value, int):
            numbers[number] = value
        else:
            texts[number] = value
    return numbers, texts


def _values(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        kind = key & 7
        if kind == _VARINT:
            value, position = _varint(message, position)
            yield key >> 3, value
        elif kind == _BYTES:
            length, position = _varint(message, position)
            yield key >> 3, message[position : position + length]
            position += length
        elif kind in (_FIXED32, _FIXED64):
            position += 4 if kind == _FIXED32 else 8
        else:
            return


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value, shift = 0, 0
    while position < len(message) and shift < 64:
        byte = message[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            break
    return value, position
