"""torch.profiler's Kineto JSON: scanned into columns, then sorted into tables."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from warpline.sources.kineto.foreign import counters_only, other_device, refuse_foreign
from warpline.sources.kineto.lanes import OLD_TORCH, OPS_ONLY, adopt
from warpline.sources.kineto.proton import LIMITS, PROTON, adopt_proton
from warpline.sources.kineto.stream import scan_file
from warpline.sources.kineto.tables import CATEGORIES, tables
from warpline.sources.rows import Rows

Scanner = Literal["auto", "native", "python"]


def read_kineto(path: Path, scanner: Scanner = "auto") -> Rows:
    """Read a Kineto trace, plain or gzipped; a damaged file is read up to the damage.

    Traces of XLA, Proton and old torch are read too; Chrome traces of other programs are refused.
    """
    raw = scan_file(path, scanner=scanner)
    is_proton = adopt_proton(raw, path)
    producer = PROTON if is_proton else adopt(raw)
    refuse_foreign(raw, path, set(CATEGORIES))
    rows = tables(raw)
    gpu_rows = len(rows.tables["gpu"]) if "gpu" in rows.tables else 0
    other = other_device(raw, set(CATEGORIES)) or counters_only(raw, gpu_rows)
    if producer is not None:
        rows.source = producer
    if other is not None:
        rows.health.append(other)
    if producer == OLD_TORCH and not gpu_rows and "ranges" in rows.tables:
        rows.health.append(OPS_ONLY)
    if is_proton:
        rows.health.append(LIMITS)
    return rows
