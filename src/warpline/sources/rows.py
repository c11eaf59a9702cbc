"""What every reader returns: tables of rows, not yet linked.

A reader fills the columns of ``warpline.trace.schema`` that its format has; the trace layer adds the
missing ones, links the tables to each other and checks the whole.
"""

from __future__ import annotations

import polars as pl
from msgspec import Struct, field

from warpline.sources.health import HealthEntry

FAR_NS = 500_000_000_000_000_000
"""Sixteen years: longer than any recording, and short enough to add times without overflow."""
ROCM_DESCRIPTOR = r"\.kd$| \[clone \.kd\]$"
"""What rocprofv3, Kineto and XLA may add to a kernel's name: the symbol by which ROCm finds it, plain and demangled."""


class Rows(Struct):
    """Tables by name, facts about the capture, and what the reader noticed."""

    source: str
    """Which profiler recorded them: ``kineto``, ``nsys``, ``rocprofv3`` …; the table of sources names each."""
    tables: dict[str, pl.DataFrame]
    meta: dict[str, str] = field(default_factory=dict)
    """Facts about the file and the capture: producer and version, flags, epoch, host program."""
    health: list[HealthEntry] = field(default_factory=list)


def with_thread(frame: pl.DataFrame, threads: pl.DataFrame) -> pl.DataFrame:
    """The frame with the row of its thread in `threads`, instead of the thread's number in its process."""
    row = threads.select("process", "tid", pl.col("row").alias("thread"))
    return frame.join(row, on=["process", "tid"], how="left", maintain_order="left", nulls_equal=True).drop("tid")
