"""Reports of a Proton profile that has sums per call path and no timeline (Hatchet)."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from warpline.analyses.stats.numbers import PERCENT, rounded
from warpline.errors import CannotAnswer
from warpline.sources.proton_tree import CallPath, read_proton_tree

PROTON_REPORTS = PATHS, KERNELS = "proton_sum", "cuda_gpu_kern_sum"
INDENT = "  "
PER_NS = {"TFLOP/s": 1e-3, "GB/s": 1.0}
"""A FLOP and a byte per nanosecond in these units."""
TOTAL = pl.col("Total Time (ns)")


def proton_report(path: Path, name: str) -> pl.DataFrame:
    """The table of a report; CannotAnswer where it needs a timeline."""
    if name == KERNELS:
        return proton_kernels(read_proton_tree(path))
    if name == PATHS:
        return proton_paths(read_proton_tree(path))
    raise CannotAnswer(
        "no-data",
        f"{name}: cannot answer, because a Proton profile (Hatchet) has sums per call path, and no timeline",
        'record one with proton.start(data="trace")',
    )


def proton_kernels(paths: list[CallPath]) -> pl.DataFrame:
    """Time of each kernel; Proton keeps no spread."""
    kernels = [node for node in paths if node.own_ns]
    rows = pl.DataFrame(
        {
            "Name": [node.name for node in kernels],
            "Total Time (ns)": [node.own_ns for node in kernels],
            "Instances": [node.own_count for node in kernels],
        }
    )
    sums = rows.group_by("Name").sum().sort(["Total Time (ns)", "Name"], descending=[True, False])
    missing = [pl.lit(None, pl.Float64).alias(f"{title} (ns)") for title in ("Med", "Min", "Max", "StdDev")]
    return sums.select(_share(TOTAL.sum()), TOTAL, "Instances", _mean(), *missing, "Name")


def proton_paths(paths: list[CallPath]) -> pl.DataFrame:
    """Time of each call path with all below it, and the rates that the program's own counts of work give."""
    rows = pl.DataFrame(
        {
            "Total Time (ns)": [node.time_ns for node in paths],
            "Instances": [node.count for node in paths],
            "TFLOP/s": pl.Series([node.flops for node in paths], dtype=pl.Float64),
            "GB/s": pl.Series([node.bytes for node in paths], dtype=pl.Float64),
            "Call Path": [INDENT * node.depth + node.name for node in paths],
        }
    )
    whole = sum(node.own_ns for node in paths)
    rates = [rounded(pl.col(unit) * factor / TOTAL).alias(unit) for unit, factor in PER_NS.items()]
    return rows.select(_share(pl.lit(whole)), TOTAL, "Instances", _mean(), *rates, "Call Path")


def _share(whole: pl.Expr) -> pl.Expr:
    return rounded(100.0 * TOTAL / whole).alias(PERCENT)


def _mean() -> pl.Expr:
    """Null where the kernels were not counted."""
    return rounded(pl.when(pl.col("Instances") > 0).then(TOTAL / pl.col("Instances"))).alias("Avg (ns)")
