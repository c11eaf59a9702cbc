"""torch.profiler's Kineto JSON: scanned into columns, then sorted into tables."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from warpline.sources.kineto.stream import scan_file
from warpline.sources.kineto.tables import tables
from warpline.sources.rows import Rows

Scanner = Literal["auto", "native", "python"]


def read_kineto(path: Path, scanner: Scanner = "auto") -> Rows:
    """Read a Kineto trace, plain or gzipped; a damaged file is read up to the damage."""
    return tables(scan_file(path, scanner=scanner))
