"""Which files a client may name: those below the folders that the server was started with.

A name is judged twice: as it is written, so that nothing outside is even looked up, and by where it leads, symbolic
links followed. This keeps a client to the folders; it does not
guard against another program that exchanges a file for a link while it is read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from warpline.errors import UsageError

MAX_ENTRIES = 100_000
"""Entries of a folder that are looked at for links."""


class Folders(Struct, frozen=True):
    """The folders that may be read."""

    roots: tuple[Path, ...]
    """Resolved."""
    aliases: tuple[Path, ...] = ()
    """The same as the command line named them, absolute."""

    @classmethod
    def of(cls, paths: tuple[Path, ...]) -> Folders:
        """These folders; each must exist."""
        for path in paths:
            if not path.is_dir():
                raise UsageError("no-folder", f"{path} is not a folder", "name folders that exist")
        aliases = tuple(Path(os.path.normpath(path.absolute())) for path in paths)
        return cls(tuple(path.resolve() for path in paths), aliases)

    def readable(self, name: str) -> Path:
        """The file or folder of that name, resolved; a relative name is looked for in each folder."""
        path = self._resolved(name)
        mode = self._mode(path, name)
        if stat.S_ISDIR(mode):
            self._refuse_links(path)
        elif stat.S_ISREG(mode):
            # A trace is read together with what `warpline run` left beside it.
            for beside in path.parent.glob(f"{_escaped(path.name.partition('.')[0])}.*"):
                self._refuse_link(beside)
            self._refuse_link(path.parent / "manifest.json")
        else:
            raise UsageError("not-a-file", f"{name} is neither a file nor a folder", "name a recording")
        return path

    def _resolved(self, name: str) -> Path:
        found = [path for root in self.roots if (path := self._below(root, name)) is not None]
        if not found:
            shown = ", ".join(map(str, self.roots))
            raise UsageError("outside-folders", f"{name!r} is not below {shown}", "only these folders may be read")
        return next((path for path in found if os.path.lexists(path)), found[0])

    def _below(self, root: Path, name: str) -> Path | None:
        written = Path(os.path.normpath(root / name))
        if not any(written.is_relative_to(folder) for folder in (*self.roots, *self.aliases)):
            return None
        try:
            path = written.resolve()
        except (OSError, ValueError, RuntimeError):
            return None
        return path if self._holds(path) else None

    def _holds(self, path: Path) -> bool:
        return any(path.is_relative_to(root) for root in self.roots)

    def _mode(self, path: Path, name: str) -> int:
        try:
            return path.stat().st_mode
        except OSError as error:
            raise UsageError("no-file", f"{name}: {error.strerror}", "name a file that exists") from error

    def _refuse_links(self, folder: Path) -> None:
        for entry in _entries(folder):
            self._refuse_link(entry)

    def _refuse_link(self, path: Path) -> None:
        if path.is_symlink() and not self._holds(Path(os.path.realpath(path))):
            raise UsageError("outside-folders", f"{path.name} leads out of the folders", "only these may be read")


def _entries(folder: Path) -> Iterator[Path]:
    seen = 0
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            seen += 1
            if seen > MAX_ENTRIES:
                raise UsageError(
                    "large-folder", f"{folder.name} has over {MAX_ENTRIES:,} entries", "name a smaller one"
                )
            yield Path(place, name)


def _escaped(name: str) -> str:
    """The name for a glob pattern, in which it stands for itself."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)
