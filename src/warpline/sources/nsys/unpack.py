"""A gzipped export as a plain file that SQLite can open, within a bound on its size."""

from __future__ import annotations

import os
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from zlib_ng import gzip_ng

from warpline.errors import UnreadableFile, UsageError
from warpline.sources.nsys.database import MAGIC

GZIP_MAGIC = b"\x1f\x8b"
MOST_BYTES = 16 << 30
"""Largest uncompressed export that is unpacked unless WARPLINE_MAX_BYTES says otherwise."""
BLOCK_BYTES = 1 << 20


@contextmanager
def plain_sqlite(path: Path) -> Iterator[Path]:
    """The file itself, or an unpacked temporary copy that is removed afterwards."""
    try:
        with path.open("rb") as file:
            head = file.read(len(MAGIC))
    except OSError as error:
        raise UnreadableFile("unreadable-file", f"{path} cannot be read: {error.strerror}") from error
    if head.startswith(GZIP_MAGIC):
        with tempfile.TemporaryDirectory(prefix="warpline-") as folder:
            unpacked = Path(folder) / "export.sqlite"
            _unpack(path, unpacked)
            yield unpacked
        return
    if head != MAGIC:
        raise UnreadableFile(
            "not-sqlite", f"{path} is not an SQLite file", "give an nsys export (nsys export --type sqlite)"
        )
    yield path


def most_bytes() -> int:
    """The bound on an unpacked file."""
    text = os.environ.get("WARPLINE_MAX_BYTES", "")
    if not text:
        return MOST_BYTES
    if not text.isdecimal():
        raise UsageError("bad-environment", f"WARPLINE_MAX_BYTES is {text!r}, not a whole number of bytes")
    return int(text)


def _unpack(path: Path, target: Path) -> None:
    bound = most_bytes()
    try:
        with gzip_ng.open(path, "rb") as source, target.open("wb") as sink:
            _copy(source, sink, bound, path)
    except (OSError, EOFError, zlib.error) as error:
        if not target.exists() or target.stat().st_size < len(MAGIC):
            raise UnreadableFile("damaged-file", f"{path} is damaged gzip: {error}", "copy it again") from error


def _copy(source: BinaryIO, sink: BinaryIO, bound: int, path: Path) -> None:
    written = 0
    while block := source.read(BLOCK_BYTES):
        if not written and not block.startswith(MAGIC):
            raise UnreadableFile("not-sqlite", f"{path} does not hold an SQLite file inside its gzip")
        written += len(block)
        if written > bound:
            raise UnreadableFile("too-large", f"{path} unpacks to more than {bound} bytes", "set WARPLINE_MAX_BYTES")
        sink.write(block)
