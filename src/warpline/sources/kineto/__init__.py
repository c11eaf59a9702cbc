"""torch.profiler's Kineto JSON: scanned into columns, then sorted into tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from warpline.sources.kineto.stream import scan_file

if TYPE_CHECKING:
    from warpline.sources.rows import Rows

Scanner = Literal["auto", "native", "python"]


def read_kineto(path: Path, scanner: Scanner = "auto") -> Rows:
    """Read a Kineto trace, plain or gzipped; a damaged file is read up to the damage."""
    events = scan_file(path, scanner=scanner)
    from warpline.sources.kineto.tables import tables  # noqa: PLC0415 - polars can be loaded while the file is scanned

    return tables(events)
