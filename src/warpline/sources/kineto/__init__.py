"""torch.profiler's Kineto JSON: scanned into columns, then sorted into tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from warpline.sources.kineto.stream import scan_file

if TYPE_CHECKING:
    from warpline.sources.rows import Rows

Scanner = Literal["auto", "native", "python"]


def read_kineto(
    path: Path, scanner: Scanner = "auto", before_imports: Callable[[bool], None] = lambda everything: None
) -> Rows:
    """Read a Kineto trace, plain or gzipped; a damaged file is read up to the damage.

    Traces of XLA and of old torch are read too; Chrome traces of other programs are refused. `before_imports` is
    called when the text is read, and before numpy and polars are imported to make its tables.
    """
    raw = scan_file(path, scanner=scanner, before_imports=before_imports)
    from warpline.sources.kineto.foreign import other_device, refuse_foreign  # noqa: PLC0415
    from warpline.sources.kineto.lanes import adopt  # noqa: PLC0415
    from warpline.sources.kineto.tables import CATEGORIES, tables  # noqa: PLC0415

    producer = adopt(raw)
    refuse_foreign(raw, path, set(CATEGORIES))
    rows = tables(raw)
    other = other_device(raw, set(CATEGORIES))
    if producer is not None:
        rows.source = producer
    if other is not None:
        rows.health.append(other)
    return rows
