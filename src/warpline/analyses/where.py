"""The user's Python line of an op or a call, if frames were recorded."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from warpline.trace.columns import NONE, ids, integers
from warpline.trace.names import matches
from warpline.trace.nesting import nearest_marked
from warpline.trace.trace import Trace

Int64s = npt.NDArray[np.int64]

LIBRARY = (
    r"^<|^nn\.Module|^(torch|triton|transformers|accelerate|lightning|pytorch_lightning|deepspeed|numpy|functorch|torchvision|"
    r"torchaudio|flash_attn|vllm|apex|importlib|threading|typing|contextlib|collections|multiprocessing|concurrent|"
    r"runpy|abc|copy|functools|queue|selectors|socket|random|warnings|weakref|inspect|enum|types|re|json|logging)"
    r"(/|\.py\(|\.)|site-packages/|dist-packages/|lib/python\d"
)
"""Frames of libraries and of Python itself. torch shortens its paths to begin with the package."""
_FRAME = re.compile(r"^(?P<file>.+?)\((?P<line>\d+)\): (?P<function>.*)$")


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the user's code."""

    file: str
    line: int
    """First line of the function: torch's tracer records where a function begins, not where it is."""
    function: str

    @classmethod
    def parse(cls, frame: str) -> Site | None:
        """Parse `train.py(12): step`; None for anything else."""
        found = _FRAME.match(frame)
        return cls(found["file"], int(found["line"]), found["function"]) if found else None


class UserFrames:
    """The frames of the user's code, prepared for many lookups."""

    def __init__(self, trace: Trace) -> None:
        own = ~matches(trace.python["name"], LIBRARY).to_numpy()
        self._own_or_above = np.append(nearest_marked(integers(trace.python["parent"]), own), NONE)
        self._frames = trace.frames if len(own) else None

    def at(self, threads: Int64s, moments: Int64s) -> Int64s:
        """Row of `python` of the innermost user frame on that thread at that moment, or NONE."""
        if self._frames is None:
            return np.full(len(moments), NONE, np.int64)
        found: Int64s = self._own_or_above[self._frames.innermost(threads, moments)]
        return found


def user_frames(trace: Trace, threads: Int64s, moments: Int64s) -> Int64s:
    """The same for a single lookup."""
    return UserFrames(trace).at(threads, moments)


def frame_names(trace: Trace, frames: Int64s) -> pl.Series:
    """The frames as text; null for NONE."""
    return trace.python["name"].gather(ids(frames)).cast(pl.String)


def with_sites(table: pl.DataFrame) -> pl.DataFrame:
    """The table with its `frame` column (text) replaced by file, line and function."""
    places = [Site.parse(frame) if frame is not None else None for frame in table["frame"]]
    return table.with_columns(
        pl.Series("file", [site.file if site else None for site in places], dtype=pl.String),
        pl.Series("line", [site.line if site else None for site in places], dtype=pl.Int64),
        pl.Series("function", [site.function if site else None for site in places], dtype=pl.String),
    ).drop("frame")
