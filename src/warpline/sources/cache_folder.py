"""The cache folder, and the name of a file's entries in it: by content, so that a copied or renamed file is found."""

from __future__ import annotations

import hashlib
import mmap
import os
from functools import cache
from pathlib import Path

import platformdirs

from warpline.errors import UsageError
from warpline.sources.zlib_engine import engine

READER_VERSION = 13
"""Increment this when readers, linking or checks give another result for the same file."""
SMALL_FILE_BYTES = 64 << 10
"""Smaller files are parsed faster than looked up."""
SAMPLE_BYTES = 64 << 10
SAMPLES = 64
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
    """A checksum of every byte, a digest of samples, the length, and the reader's version; None for small files."""
    try:
        state = file.stat()
    except OSError:
        return None
    return None if state.st_size < SMALL_FILE_BYTES else _digest(file, state.st_size, state.st_mtime_ns)


@cache
def _digest(file: Path, size: int, _changed_ns: int) -> str | None:
    """The key of a file as it is now; found once.

    The checksum runs at memory speed, which a cryptographic digest of a gigabyte does not.
    """
    try:
        digest = hashlib.blake2b(f"{READER_VERSION} {size}".encode(), digest_size=16)
        with file.open("rb") as handle, mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as content:
            digest.update(engine.crc32(content).to_bytes(4, "little"))
            for sample in range(SAMPLES):
                offset = (size - min(size, SAMPLE_BYTES)) * sample // (SAMPLES - 1)
                digest.update(content[offset : offset + SAMPLE_BYTES])
    except (OSError, ValueError):
        return None
    return digest.hexdigest()
