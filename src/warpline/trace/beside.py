"""What `warpline run` left beside a trace: a second look at a few more steps, with Python frames and tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from warpline.errors import UnreadableFile
from warpline.sources.look import Look, read_look

if TYPE_CHECKING:
    from warpline.trace.trace import Trace

LOOK, STACKS = ".look.json.gz", (".stacks.json.gz", ".stacks.json")
COMPANIONS = (LOOK, *STACKS)


@dataclass
class Beside:
    """The files of a second look, read on first use."""

    path: Path
    """The trace."""
    opened: Callable[[Path], Trace]

    def _file(self, suffix: str) -> Path | None:
        name = self.path.name.removesuffix(".gz").removesuffix(".json")
        file = self.path.with_name(name + suffix)
        return file if file != self.path and file.is_file() else None

    @property
    def exists(self) -> bool:
        """Whether there was a second look. A trace of that name alone may be somebody's own recording."""
        return self._file(LOOK) is not None

    @cached_property
    def look(self) -> Look:
        """Data flow and lines; empty where there are none, or where their file is damaged."""
        file = self._file(LOOK)
        if file is not None:
            try:
                return read_look(file)
            except UnreadableFile:
                pass
        return Look(pl.DataFrame(), pl.DataFrame(schema={"start_ns": pl.Int64, "line": pl.Int32}))

    @cached_property
    def stacks(self) -> Trace | None:
        """The trace of the same steps with Python frames."""
        file = next((found for suffix in STACKS if (found := self._file(suffix)) is not None), None)
        try:
            return self.opened(file) if file is not None else None
        except UnreadableFile:
            return None
