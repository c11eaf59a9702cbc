"""Output files that appear whole or not at all: a full disk or a kill leaves what was there before."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic_file(target: Path) -> Iterator[Path]:
    """A file beside the target to write into; it gets the target's name when all is written.

    A target that is no regular file (`/dev/stdout`, a pipe), or in a folder without room for another name, is written
    in place. A link stays one: the file that it names is replaced.
    """
    target = target.resolve()
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        yield target
        return
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name[:100]}.", suffix=".part", dir=target.parent)
    except PermissionError:
        yield target
        return
    os.close(handle)
    part = Path(name)
    try:
        part.chmod(_new_mode() if mode is None else stat.S_IMODE(mode))
        yield part
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def write_atomically(target: Path, text: str) -> None:
    """Write a text that way, in UTF-8."""
    with atomic_file(target) as part:
        part.write_text(text, encoding="utf-8")


def _new_mode() -> int:
    """The permissions that `open` would give a new file."""
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask
