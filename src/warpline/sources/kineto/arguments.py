"""Decodes arguments that the scanners left in the file, on request for a few events."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from warpline.errors import UnreadableFile
from warpline.sources.kineto import tolerant
from warpline.sources.kineto.text import decode_json, decode_raw, decode_string
from warpline.sources.unpack import XZ_MAGIC, Packing, Unpacked, packing_of

WINDOW_BYTES = 4 << 20


def read_arguments(path: Path, offsets: Sequence[int], lengths: Sequence[int]) -> list[dict[str, Any]]:
    """The `args` of the events at these offsets, as given in `RawEvents`; `{}` if the offset is -1.

    A plain file is mapped; a packed one is unpacked once from its beginning up to the last offset.
    """
    try:
        with path.open("rb") as file:
            compressed = packing_of(file.read(len(XZ_MAGIC))) is not Packing.PLAIN
            if compressed:
                raws = _from_packed(path, offsets, lengths)
            else:
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
                    pairs = zip(offsets, lengths, strict=True)
                    raws = [text[at : at + length] if at >= 0 else b"{}" for at, length in pairs]
    except (OSError, ValueError) as error:
        raise UnreadableFile("no-file", f"{path} cannot be read: {error}", "check the path") from error
    return [decode_arguments(raw) for raw in raws]


def _from_packed(path: Path, offsets: Sequence[int], lengths: Sequence[int]) -> list[bytes]:
    raws = [b"{}"] * len(offsets)
    order = [int(row) for row in np.argsort(np.asarray(offsets, np.int64), kind="stable") if offsets[row] >= 0]
    pieces = iter(Unpacked(path, WINDOW_BYTES, 1 << 62))
    text, base = b"", 0
    for row in order:
        start, end = int(offsets[row]), int(offsets[row]) + int(lengths[row])
        while base + len(text) < end:
            piece = next(pieces, None)
            if piece is None:
                break
            kept = max(0, min(start - base, len(text)))
            text, base = text[kept:] + piece, base + kept
        raws[row] = text[start - base : end - base]
    return raws


def decode_arguments(raw: bytes) -> dict[str, Any]:
    """One `args` object; invalid JSON is decoded key by key, and a value that cannot be decoded stays text."""
    try:
        value = decode_json(raw)
        return value if isinstance(value, dict) else {}
    except (ValueError, RecursionError):
        pass
    arguments: dict[str, Any] = {}
    try:
        position = tolerant.skip_space(raw, 1, len(raw))
        closed = raw[position] == tolerant.CLOSE
        while not closed:
            key, start = tolerant.read_key(raw, position, len(raw))
            after = tolerant.skip_value(raw, start, len(raw))
            arguments[decode_string(key)] = _decode_value(raw[start:after])
            position, closed = tolerant.next_key(raw, after, len(raw))
    except (tolerant.MalformedError, tolerant.StarvedError):
        pass  # The file changed since it was scanned; return what was readable.
    return arguments


def _decode_value(raw: bytes) -> Any:
    try:
        return decode_json(raw)
    except (ValueError, RecursionError):
        return decode_string(raw[1:-1]) if raw.startswith(b'"') else decode_raw(raw)
