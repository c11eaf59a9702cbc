"""The cache folder, and the name of a file's entries in it: by content, so that a copied or renamed file is found."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path

import platformdirs

from warpline.errors import UsageError

READER_VERSION = 15
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


def content_key(file: Path) -> str | None:
    """The name of a file's entry: its digest with the reader's version; None for small files."""
    try:
        if file.stat().st_size < SMALL_FILE_BYTES:
            return None
        return f"{READER_VERSION}-{content_digest(file)}"
    except OSError:
        return None


def content_digest(file: Path) -> str:
    """A cryptographic digest of every byte, so that nobody can make two files that share an answer."""
    state = file.stat()
    # A program can set the time of a file's last write but not that of its last change, which the system keeps.
    return _digest(file, state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)


@cache
def _digest(file: Path, *_state: int) -> str:
    """The digest of a file in that state; found once in a process."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()[:DIGEST_CHARS]
