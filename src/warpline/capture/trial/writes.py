"""Files that the program opens for writing: noted, and copied first where they are links in the working folder."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Callable
from typing import Any

MOST = 50
"""Files that are noted."""
NOT_THE_PROGRAMS = ("/dev/", "/proc/", "__pycache__")


class FileWrites:
    """Notes what is opened for writing, by Python's audit events; files that compiled code opens are not seen."""

    def __init__(self, working_copy: str, session: str, ask: Callable[[str], None] = lambda path: None) -> None:
        """`ask` is called before the first file outside the session's own folder is written."""
        self.files: list[str] = []
        """Outside the session's own folder."""
        self._ask = ask
        self._copy, self._session, self._busy = working_copy + os.sep, session + os.sep, False
        sys.addaudithook(self._hear)

    def _hear(self, event: str, details: tuple[Any, ...]) -> None:
        if event != "open" or self._busy or not isinstance(details[0], (str, bytes)):
            return
        path, mode, flags = details
        writes = any(letter in mode for letter in "wax+") if mode else (flags or 0) & (os.O_WRONLY | os.O_RDWR)
        if writes:
            self._busy = True
            try:
                self.about_to_write(os.fsdecode(path), keeps="w" not in (mode or ""))
            finally:
                self._busy = False

    def about_to_write(self, path: str, keeps: bool = False) -> None:
        """Note it. A link in the working folder becomes a file of its own; `keeps`: with what was in it."""
        full = os.path.abspath(path)  # noqa: PTH100 - links are not followed
        ours = full.startswith(self._session) or any(part in full for part in NOT_THE_PROGRAMS)
        if not ours and full not in self.files and len(self.files) < MOST:
            if not self.files:
                self._ask(full)
            self.files.append(full)
        if full.startswith(self._copy) and os.path.islink(full):  # noqa: PTH114
            with contextlib.suppress(OSError):
                original = os.path.realpath(full)
                os.unlink(full)  # noqa: PTH108
                if keeps:
                    shutil.copyfile(original, full)
