"""Loads the small compiled libraries; each has a Python twin for where it was not built."""

from __future__ import annotations

import ctypes
from pathlib import Path


def load(path: Path, version_function: str, version: int) -> ctypes.CDLL | None:
    """The library, or None where it was not built or has another version of its interface."""
    try:
        library = ctypes.CDLL(str(path))
        return library if getattr(library, version_function)() == version else None
    except (OSError, AttributeError):
        return None
