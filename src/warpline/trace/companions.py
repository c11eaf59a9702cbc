"""What `warpline run` left beside a trace: a second pass at a few more steps, with Python frames and tensors."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
from msgspec import Struct

from warpline.errors import UnreadableFile
from warpline.sources.second_pass import SecondPassRows, nothing_seen, read_second_pass
from warpline.trace.execution_trace import read_execution_trace
from warpline.trace.repair import guaranteed
from warpline.trace.schema import Steps, empty

if TYPE_CHECKING:
    from warpline.trace.trace import Trace

LOOK, STACKS = ".look.json.gz", (".stacks.json.gz", ".stacks.json")
COMPANIONS = (LOOK, *STACKS)
"""Endings of the files beside a trace, which are not traces to open by themselves."""


class Companions(Struct, dict=True):
    """The files beside a trace, which are read on first use."""

    path: Path
    """The trace."""
    opened: Callable[[Path], Trace]
    execution_trace: Path | None = None
    """The execution trace of the same run, where there is no second pass."""
    problem: str = ""
    """Why a file could not be read; known once it is asked for."""

    def _file(self, suffix: str) -> Path | None:
        stem = self.path.name.removesuffix(".gz").removesuffix(".json")
        file = self.path.with_name(stem + suffix)
        return file if file != self.path and file.is_file() else None

    @property
    def exists(self) -> bool:
        """Whether there was a second pass, or an execution trace. A trace of that name alone may be somebody's own
        recording."""
        return self._file(LOOK) is not None or self.execution_trace is not None

    @cached_property
    def look(self) -> SecondPassRows:
        """Data flow and lines; empty where there are none, or where their file is damaged."""
        file = self._file(LOOK)
        try:
            return read_second_pass(file) if file is not None else nothing_seen()
        except UnreadableFile as error:
            self.problem = error.message
            return nothing_seen()

    def dataflow(self, steps: Steps) -> pl.DataFrame:
        """Rows of the `dataflow` table; ranges named as these steps are the steps of an execution trace."""
        rows = self.look.dataflow if self.execution_trace is None else self._executed(self.execution_trace, steps)
        return guaranteed("dataflow", rows) if len(rows) else empty("dataflow")

    def _executed(self, file: Path, steps: Steps) -> pl.DataFrame:
        try:
            return read_execution_trace(file, {name for name in steps.name if name})
        except UnreadableFile as error:
            self.problem = error.message
            return pl.DataFrame()

    @cached_property
    def stacks(self) -> Trace | None:
        """The trace of the same steps with Python frames."""
        file = next((found for suffix in STACKS if (found := self._file(suffix)) is not None), None)
        try:
            return self.opened(file) if file is not None else None
        except UnreadableFile as error:
            self.problem = error.message
            return None
