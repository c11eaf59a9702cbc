"""Files that the program opens for writing: noted, and copied first where they are links in the working folder."""

from __future__ import annotations

import builtins
import contextlib
import io
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from typing import Any

from warpline.capture.patches import replace

MOST = 50
"""Files that are noted."""
NOT_THE_PROGRAMS = ("/dev/", "/proc/", "__pycache__", "/torchinductor_")
"""Parts of paths; the last is a cache of torch.compile that always lies in the folder for temporary files."""


class FileWrites:
    """Notes what Python opens for writing; files that compiled code opens are not seen.

    The functions that open files are replaced. An audit hook would hear more, but it stays for good and is called for
    each `id()`, which costs a program that the CPU bounds some percent.
    """

    def __init__(self, working_copy: str, session: str, ask: Callable[[str], None] = lambda path: None) -> None:
        """`ask` is called before the first file outside the session's own folder is written."""
        self.files: list[str] = []
        """Outside the session's own folder."""
        self._ask = ask
        self._copy, self._session, self._busy = working_copy + os.sep, session + os.sep, False
        self._temporary: list[str] = []
        for owner, how in ((builtins, "mode"), (io, "mode"), (os, "flags")):
            replace(owner, "open", partial(HeardOpen, how=how, hear=self._heard))
        replace(tempfile, "mkdtemp", self._heard_mkdtemp)

    def _heard_mkdtemp(self, original: Any) -> Any:
        def mkdtemp(*arguments: Any, **named: Any) -> Any:
            made = original(*arguments, **named)
            self._temporary.append(os.path.join(os.fsdecode(made), ""))  # noqa: PTH118
            return made

        return mkdtemp

    def _heard(self, path: Any, how: Any) -> None:
        is_flags = isinstance(how, int)
        if is_flags and how & os.O_EXCL:
            return  # it makes a new file, as `tempfile` does, or fails
        writes = how & (os.O_WRONLY | os.O_RDWR) if is_flags else any(letter in str(how) for letter in "wax+")
        if writes and not self._busy and isinstance(path, (str, bytes, os.PathLike)):
            self._busy = True
            try:
                self.about_to_write(os.fsdecode(path), keeps=is_flags or "w" not in str(how))
            finally:
                self._busy = False

    def about_to_write(self, path: str, keeps: bool = False) -> None:
        """Note it. A link in the working folder becomes a file of its own; `keeps`: with what was in it."""
        full = os.path.abspath(path)  # noqa: PTH100 - links are not followed
        ours = full.startswith((self._session, *self._temporary)) or any(part in full for part in NOT_THE_PROGRAMS)
        ours = ours or os.path.isdir(full)  # noqa: PTH112 - `tempfile` opens a folder, and a file without a name in it
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


class HeardOpen:
    """A function that opens files, with its calls heard. An object, because a function would become a method of a class
    that has it as an attribute, which the original does not."""

    def __init__(self, original: Any, how: str, hear: Callable[[Any, Any], None]) -> None:
        """`how` is the name of the second argument."""
        self._original, self._how, self._hear = original, how, hear

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        path = arguments[0] if arguments else named.get("file", named.get("path"))
        if "dir_fd" not in named:
            self._hear(path, arguments[1] if len(arguments) > 1 else named.get(self._how, "r"))
        return self._original(*arguments, **named)
