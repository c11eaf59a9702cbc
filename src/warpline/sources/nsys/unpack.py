"""Decompress a gzipped export to a plain file that SQLite can open, with a limit on its size."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from warpline.errors import UnreadableFile, UsageError
from warpline.records import dataclass
from warpline.sources.detect import GZIP_MAGIC, SQLITE_MAGIC
from warpline.sources.health import HealthEntry
from warpline.sources.zlib_engine import GZIP_WINDOW_BITS, DamagedGzip, engine

MAX_BYTES = 16 << 30
"""Largest uncompressed export that is unpacked unless WARPLINE_MAX_BYTES says otherwise."""
BLOCK_BYTES = 1 << 20
HEADER_BYTES = 100
EXPORT_AGAIN = "export the report again: nsys export --type sqlite --force-overwrite=true REPORT.nsys-rep"


@dataclass(frozen=True, slots=True)
class PlainFile:
    """An SQLite file on disk, and what was wrong with it before it was opened."""

    path: Path
    health: tuple[HealthEntry, ...] = ()


@contextmanager
def plain_sqlite(path: Path) -> Iterator[PlainFile]:
    """The file itself, or a decompressed temporary copy that is removed afterwards."""
    head = _head(path)
    if head.startswith(GZIP_MAGIC):
        with tempfile.TemporaryDirectory(prefix="warpline-") as folder:
            unpacked = Path(folder) / "export.sqlite"
            damage = _unpack(path, unpacked)
            yield PlainFile(unpacked, (*damage, *_short_file(unpacked)))
        return
    check_magic(head, path)
    yield PlainFile(path, _short_file(path))


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(HEADER_BYTES)
    except OSError as error:
        raise UnreadableFile("unreadable-file", f"{path} cannot be read: {error.strerror or error}") from error


def check_magic(head: bytes, path: Path) -> None:
    """Raise an error with the likely reason if the file does not start like SQLite."""
    if head.startswith(SQLITE_MAGIC):
        return
    if not head:
        raise UnreadableFile("empty-file", f"{path} is empty: the export was interrupted", EXPORT_AGAIN)
    if not any(head):
        raise UnreadableFile("damaged-file", f"{path} starts with zeros: the export was interrupted", EXPORT_AGAIN)
    if SQLITE_MAGIC.startswith(head):
        raise UnreadableFile("damaged-file", f"{path} ends after {len(head)} bytes", EXPORT_AGAIN)
    raise UnreadableFile(
        "not-sqlite", f"{path} is not an SQLite file", "give an export made with nsys export --type sqlite"
    )


def most_bytes() -> int:
    """The limit on a decompressed file."""
    text = os.environ.get("WARPLINE_MAX_BYTES", "")
    if not text:
        return MAX_BYTES
    if not text.isdecimal():
        raise UsageError("bad-environment", f"WARPLINE_MAX_BYTES is {text!r}, not a whole number of bytes")
    return int(text)


def _unpack(path: Path, target: Path) -> list[HealthEntry]:
    """Decompress into ``target``, up to the damage if there is any."""
    bound, written, damage = most_bytes(), 0, ""
    try:
        with path.open("rb") as source, target.open("wb") as sink:
            try:
                for block in _blocks(source):
                    if not written:
                        check_magic(block[:HEADER_BYTES], path)
                    written += len(block)
                    if written > bound:
                        raise UnreadableFile(
                            "too-large",
                            f"{path} decompresses to more than {bound} bytes",
                            "set WARPLINE_MAX_BYTES to allow more, or decompress it yourself",
                        )
                    sink.write(block)
            except DamagedGzip as error:
                damage = str(error)
    except OSError as error:
        raise UnreadableFile(
            "cannot-unpack", f"{path} cannot be decompressed: {error.strerror or error}", "set TMPDIR to a larger disk"
        ) from error
    if not written:
        raise UnreadableFile("damaged-file", f"{path} is damaged gzip: {damage or 'it is empty'}", "copy it again")
    if not damage:
        return []
    return [
        HealthEntry(
            "truncated-file",
            "error",
            f"The gzip file is damaged or truncated after {written} plain bytes ({damage}): the rest is missing.",
        )
    ]


def _blocks(source: BinaryIO) -> Iterator[bytes]:
    """The unpacked bytes of all gzip members, block by block: a bomb is never held in memory."""
    stream = engine.decompressobj(GZIP_WINDOW_BITS)
    pending = source.read(BLOCK_BYTES)
    while pending:
        block = stream.decompress(pending, BLOCK_BYTES)
        if block:
            yield block
        if stream.eof:
            pending = stream.unused_data or source.read(BLOCK_BYTES)
            if not pending.startswith(GZIP_MAGIC):
                return
            stream = engine.decompressobj(GZIP_WINDOW_BITS)
        else:
            pending = stream.unconsumed_tail or source.read(BLOCK_BYTES)
    raise DamagedGzip("the file ends within the compressed data")


def _short_file(path: Path) -> tuple[HealthEntry, ...]:
    """A health entry if the file is shorter than its own header says."""
    head, size = _head(path), path.stat().st_size
    page_bytes = int.from_bytes(head[16:18], "big")
    page_bytes = 65_536 if page_bytes == 1 else page_bytes
    # The page count is valid only if the version-valid-for number equals the change counter.
    expected = page_bytes * int.from_bytes(head[28:32], "big") if head[24:28] == head[92:96] else 0
    if size >= expected:
        return ()
    return (
        HealthEntry(
            "truncated-file",
            "error",
            f"The file has {size} of {expected} bytes: it is truncated, and tables end early or are missing.",
        ),
    )
