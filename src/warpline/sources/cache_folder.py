"""The cache folder, and the name of a file's entries in it: by content, so that a copied or renamed file is found."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs
from msgspec import Struct

from warpline.errors import UsageError
from warpline.sources.private_files import opened_folder, own_folder, private_folder

READER_VERSION = 17
"""Increment this when readers, linking or checks give another result for the same file."""
SMALL_FILE_BYTES = 64 << 10
"""Smaller files are parsed faster than looked up."""
DIGEST_CHARS = 40
"""160 bits: finding two files that share them takes 2^80 attempts."""
LIMIT_BYTES = 4 << 30
"""Size of the cache folder unless WARPLINE_CACHE_BYTES says otherwise."""


def cache_folder() -> Path:
    """$WARPLINE_CACHE, else the user's cache folder."""
    chosen = os.environ.get("WARPLINE_CACHE")
    return Path(chosen) if chosen else platformdirs.user_cache_path("warpline", appauthor=False)


def limit_bytes() -> int:
    """The size that the cache folder may have."""
    text = os.environ.get("WARPLINE_CACHE_BYTES", "")
    if not text:
        return LIMIT_BYTES
    if not (text.isascii() and text.isdecimal()):
        raise UsageError(
            "bad-environment", f"WARPLINE_CACHE_BYTES is {text!r}, not a whole number of bytes", "correct or unset it"
        )
    return int(text)


def traces_folder() -> Path:
    """The folder of parsed traces."""
    return cache_folder() / "traces"


@contextmanager
def opened_traces() -> Iterator[int]:
    """A descriptor of the folder of parsed traces; OSError unless it and the cache folder are this user's own."""
    with opened_folder(cache_folder()) as cache, opened_folder(traces_folder().name, cache) as traces:
        yield traces


def writable_traces() -> Path:
    """The folder of parsed traces, created if missing; OSError as above."""
    own_folder(cache_folder())
    return private_folder(traces_folder())


class Content(Struct, frozen=True):
    """What a file held when it was first looked at."""

    file: Path
    digest: str
    """A cryptographic digest of every byte, so that nobody can make two files that share an answer."""
    way: dict[Path, _State]

    @classmethod
    def of(cls, file: Path) -> Content:
        """The content of a file; OSError if it cannot be read."""
        way = _way(file)
        with file.open("rb") as content:
            return cls(file, hashlib.file_digest(content, "sha256").hexdigest()[:DIGEST_CHARS], way)

    @property
    def key(self) -> str:
        """The name of its entry: the digest with the reader's version."""
        return f"{READER_VERSION}-{self.digest}"

    def is_unchanged(self) -> bool:
        """Whether all that was read from the file since then is of this content."""
        try:
            now = _way(self.file)
        except OSError:
            return False
        changed = {path for path, state in self.way.items() if now.get(path) != state}
        # A folder changes with its files, too; if it was renamed, the folder that it lies in changed as well.
        return all(self.way[path].is_own_folder and path.parent not in changed for path in changed)


def content_of(file: Path) -> Content | None:
    """The content of a file that is worth an entry; None for small files and what cannot be read."""
    try:
        return Content.of(file) if file.stat().st_size >= SMALL_FILE_BYTES else None
    except OSError:
        return None


class _State(Struct, frozen=True):
    """What the system keeps of a file, folder or link. A program can set the time of the last write, but not that of
    the last change, to which a rename belongs."""

    is_own_folder: bool
    """A folder of this user or of root."""
    numbers: tuple[int, ...]

    @classmethod
    def of(cls, path: Path) -> _State:
        state = path.lstat()
        is_own_folder = stat.S_ISDIR(state.st_mode) and state.st_uid in {0, os.geteuid()}
        if is_own_folder and state.st_mode & stat.S_ISVTX:  # as /tmp: nobody renames what belongs to another user
            return cls(True, ())
        return cls(is_own_folder, (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns))


def _way(file: Path) -> dict[Path, _State]:
    """The state of a file and of every folder and link on the way to it: whoever puts another file there for a while
    renames one of them."""
    found: dict[Path, _State] = {}
    waiting = [file.absolute()]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found[path] = _State.of(path)
            waiting.append(path.parent)
            if path.is_symlink():
                waiting.append(path.parent / path.readlink())
    return found
