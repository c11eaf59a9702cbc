"""A packed database as a plain file that SQLite can open."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from warpline.errors import UnreadableFile
from warpline.sources.health import HealthEntry
from warpline.sources.kinds import SQLITE_MAGIC
from warpline.sources.unpack import Packing, Unpacked, packing_of
from warpline.units import uncapitalised

HEADER_BYTES = 100
RECORD_AGAIN = "record or copy it again"
"""What to do about a damaged file whose reader knows no better."""


class PlainFile(Struct, frozen=True):
    """An SQLite file on disk, and what was wrong with it before it was opened."""

    path: Path
    health: tuple[HealthEntry, ...] = ()


@contextmanager
def plain_sqlite(path: Path, again: str = RECORD_AGAIN) -> Iterator[PlainFile]:
    """The file itself, or a decompressed temporary copy that is removed afterwards; ``again`` is the hint in errors."""
    head = _head(path)
    if packing_of(head) is not Packing.PLAIN:
        with tempfile.TemporaryDirectory(prefix="warpline-") as folder:
            unpacked = Path(folder) / "export.sqlite"
            damage = _unpack(path, unpacked, again)
            yield PlainFile(unpacked, (*damage, *_short_file(unpacked)))
        return
    check_magic(head, path, again)
    yield PlainFile(path, _short_file(path))


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(HEADER_BYTES)
    except OSError as error:
        raise UnreadableFile("unreadable-file", f"{path} cannot be read: {error.strerror or error}") from error


def check_magic(head: bytes, path: Path, again: str) -> None:
    """Raise an error with the likely reason if the file does not start like SQLite."""
    if head.startswith(SQLITE_MAGIC):
        return
    if not head:
        raise UnreadableFile("empty-file", f"{path} is empty: its writer was interrupted", again)
    if not any(head):
        raise UnreadableFile("damaged-file", f"{path} starts with zeros: its writer was interrupted", again)
    if SQLITE_MAGIC.startswith(head):
        raise UnreadableFile("damaged-file", f"{path} ends after {len(head)} bytes", again)
    raise UnreadableFile("not-sqlite", f"{path} is not an SQLite file", "give an SQLite file that a profiler wrote")


def _unpack(path: Path, target: Path, again: str) -> list[HealthEntry]:
    """Unpack into ``target``, up to the damage if there is any."""
    unpacked, written = Unpacked(path), 0
    try:
        with target.open("wb") as sink:
            for block in unpacked:
                if not written:
                    check_magic(block[:HEADER_BYTES], path, again)
                written += len(block)
                sink.write(block)
    except OSError as error:
        raise UnreadableFile(
            "cannot-unpack", f"{path} cannot be unpacked: {error.strerror or error}", "set TMPDIR to a larger disk"
        ) from error
    if not written and not unpacked.damage:
        raise UnreadableFile("empty-file", f"{path} is empty: its writer was interrupted", again)
    if not written:
        why = unpacked.damage
        raise UnreadableFile("damaged-file", f"{path} has no content: {uncapitalised(why)}", "copy it again")
    if not unpacked.damage:
        return []
    return [HealthEntry("truncated-file", "error", f"{unpacked.damage} {written} bytes were unpacked.")]


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
