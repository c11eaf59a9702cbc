"""A working folder made of links: what the program writes into its folder lands in a scratch folder instead.

Folders are made anew and files are linked, so that new files and deletions stay in the copy. The agent turns a link
into a file of its own before Python or `torch.save` writes it. Programs are copied: many find their folder by
`Path(__file__).resolve()`, which would follow a link. Paths outside the folder are the program's own.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections import deque
from collections.abc import Sequence
from pathlib import Path

MAX_ENTRIES = 2000
"""Folders beyond are linked as a whole: a dataset has too many files to link one by one."""
PROGRAMS = (".py", ".sh")


def from_anywhere(command: Sequence[str], folder: Path) -> list[str]:
    """The command with whole paths for files outside the folder, where `../train.py` would not lead in the copy.

    Links stay: the Python of a virtual environment is one, and what it links to lacks the packages.
    """
    return [
        os.path.normpath(folder / word) if ".." in Path(word).parts and (folder / word).exists() else word
        for word in command
    ]


def make_working_copy(source: Path, target: Path, scratch: Path) -> None:
    """Fill the target; `scratch` is left out, because it may lie in the source."""
    target.mkdir()
    waiting = deque([(source, target)])
    entries = 0
    while waiting:
        folder, copy = waiting.popleft()
        try:
            inside = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            continue
        if entries + len(inside) > MAX_ENTRIES and copy != target:
            copy.rmdir()
            copy.symlink_to(folder)
            continue
        entries += len(inside)
        for entry in inside:
            path, linked = folder / entry.name, copy / entry.name
            if path == scratch:
                continue
            with contextlib.suppress(OSError):
                if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                    linked.mkdir()
                    waiting.append((path, linked))
                elif entry.name.endswith(PROGRAMS) and entry.is_file(follow_symlinks=False):
                    shutil.copy2(path, linked)
                else:
                    linked.symlink_to(path)
