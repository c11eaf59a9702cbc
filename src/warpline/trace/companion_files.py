"""What `warpline run` left beside a trace: a second pass at a few more steps, with Python frames and tensors."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from warpline.errors import UnreadableFile
from warpline.sources.second_pass import SecondPassRows, nothing_seen, read_second_pass

if TYPE_CHECKING:
    from warpline.trace.trace import Trace

LOOK, STACKS = ".look.json.gz", (".stacks.json.gz", ".stacks.json")
COMPANIONS = (LOOK, *STACKS)


class Companions(Struct, dict=True):
    """The files of a second pass, read on first use."""

    path: Path
    """The trace."""
    opened: Callable[[Path], Trace]
    problem: str = ""
    """Why a file could not be read; known once it is asked for."""

    def _file(self, suffix: str) -> Path | None:
        file = _beside(self.path, suffix)
        return file if file != self.path and file.is_file() else None

    @property
    def exists(self) -> bool:
        """Whether there was a second pass. A trace of that name alone may be somebody's own recording."""
        return self._file(LOOK) is not None

    @cached_property
    def look(self) -> SecondPassRows:
        """Data flow and lines; empty where there are none, or where their file is damaged."""
        file = self._file(LOOK)
        try:
            return read_second_pass(file) if file is not None else nothing_seen()
        except UnreadableFile as error:
            self.problem = str(error.args[0] if error.args else error)
            return nothing_seen()

    @cached_property
    def stacks(self) -> Trace | None:
        """The trace of the same steps with Python frames."""
        file = next((found for suffix in STACKS if (found := self._file(suffix)) is not None), None)
        try:
            return self.opened(file) if file is not None else None
        except UnreadableFile as error:
            self.problem = str(error.args[0] if error.args else error)
            return None


def companions_of(trace: Path) -> list[Path]:
    """Where the files of a second pass at a trace would be."""
    return [_beside(trace, suffix) for suffix in COMPANIONS]


def _beside(trace: Path, suffix: str) -> Path:
    return trace.with_name(trace.name.removesuffix(".gz").removesuffix(".json") + suffix)
