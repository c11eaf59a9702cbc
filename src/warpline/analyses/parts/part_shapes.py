"""Which kernel ran for which shapes: libraries choose one by the sizes, types and layouts of the operands."""

from __future__ import annotations

import numpy as np
import polars as pl

from warpline.analyses.roofline.pieces import Gathered
from warpline.analyses.roofline.row_work import RowWork
from warpline.trace.arrays import Int64s
from warpline.trace.names import texts

CHOSEN = ("gemm", "conv", "attention")
"""Classes of kernels that a library chooses by shape."""


def shapes_by_kernel(gathered: Gathered, here: Int64s, classes: list[str], work: RowWork) -> pl.DataFrame:
    """One row per op, shapes and kernel of the classes that libraries choose, longest first."""
    wanted = np.zeros(len(gathered.gpu), bool)
    wanted[here] = np.isin(np.array([classes[at] for at in here.tolist()], object), CHOSEN)
    ops, shapes = [""] * len(wanted), [""] * len(wanted)
    for piece in gathered.pieces:
        for position in piece.rows:
            if wanted[position] and (piece.work is not None or piece.shapes):
                ops[position], shapes[position] = piece.op, piece.shapes
    grid = pl.concat_str([pl.col(f"grid_{axis}").cast(pl.String).fill_null("?") for axis in "xyz"], separator="×")
    table = gathered.gpu.select(
        op=pl.Series(ops, dtype=pl.String),
        shapes=pl.Series(shapes, dtype=pl.String),
        kernel=pl.Series(texts(gathered.gpu["name"]).tolist(), dtype=pl.String),
        grid=pl.when(pl.col("grid_x").is_not_null()).then(grid),
        time=pl.col("end_ns") - pl.col("start_ns"),
        flops=pl.Series(work.flops),
        floor=pl.Series(work.floor_ns),
        priced=pl.Series(np.where(work.priced, gathered.numbers["time_ns"].to_numpy(), 0)),
    ).filter(pl.Series(wanted))
    measured = pl.col("priced").sum()
    return (
        table.group_by("op", "shapes", "kernel", "grid")
        .agg(
            count=pl.len(),
            time_ns=pl.col("time").sum(),
            mean_ns=pl.col("time").mean(),
            flops=pl.col("flops").sum(),
            roof_pct=pl.when(measured > 0).then(100 * pl.col("floor").sum() / measured),
        )
        .with_columns(op=_or_null("op"), shapes=_or_null("shapes"))
        .sort("time_ns", "kernel", "shapes", "op", "grid", descending=[True, False, False, False, False])
    )


def _or_null(name: str) -> pl.Expr:
    return pl.when(pl.col(name) != "").then(pl.col(name))
