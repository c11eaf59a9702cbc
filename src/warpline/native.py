"""Loads the small compiled libraries; each has a Python twin for where it was not built.

Only the standard library is imported here: the build (`hatch_build.py`) runs this file to name what it compiles.
"""

from __future__ import annotations

import ctypes
import hashlib
import warnings
from functools import cache
from pathlib import Path


@cache
def library_of(source: Path) -> Path:
    """The library of a C file. Its name holds a digest of the file and of the headers beside it, so a library of other
    sources is never loaded.
    """
    digest = hashlib.sha256()
    for file in (source, *sorted(source.parent.glob("*.h"))):
        text = file.read_bytes()
        digest.update(b"%d " % len(text) + text)
    return source.with_name(f"_{source.stem}.{digest.hexdigest()[:16]}.so")


def libraries_of(source: Path) -> list[Path]:
    """What was built of a C file, from these sources or others."""
    return list(source.parent.glob(f"_{source.stem}.*so"))


def load(library: Path, source: Path) -> ctypes.CDLL | None:
    """The library, or None where it was not built. One of other sources beside it is a checkout that was not rebuilt,
    which is said.
    """
    try:
        return ctypes.CDLL(str(library))
    except OSError:
        if libraries_of(source):
            warnings.warn(
                f"{source.name} has changed since it was compiled, so slower Python does its work", stacklevel=2
            )
        return None
