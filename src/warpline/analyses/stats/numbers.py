"""The arithmetic that every report shares: spread of durations, percentages, and rounding as nsys rounds.

Nsight Systems rounds in SQLite, whose ``ROUND`` goes half away from zero on the exact binary value:
6121 ns over 4 calls is 1530.25 and prints as 1530.3, where ``printf`` and Python would print 1530.2.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import numpy.typing as npt
import polars as pl

DURATION = "duration_ns"
WITH_DURATION = (pl.col("end_ns") - pl.col("start_ns")).alias(DURATION)
PERCENT = "Time (%)"

TIMES_DIGITS = 1
MEGABYTES_DIGITS = 3
BYTES_PER_MEGABYTE = 1_000_000
NANOSECONDS_PER_SECOND = 1_000_000_000

# Products with a power of ten are off by at most an ulp; only values this near to a tie need exact arithmetic.
_NEAR_TIE = 1e-6


def round_half_away(values: npt.NDArray[np.float64], digits: int) -> npt.NDArray[np.float64]:
    """Values rounded as SQLite's ROUND does: the exact binary value, ties away from zero."""
    scale = 10.0**digits
    scaled = np.abs(values) * scale
    whole = np.floor(scaled + 0.5)
    tolerance = np.maximum(_NEAR_TIE, scaled * 4 * np.finfo(np.float64).eps)
    near_tie = np.abs(scaled - np.floor(scaled) - 0.5) <= tolerance
    rounded = np.copysign(whole / scale, values)
    step = Decimal(1).scaleb(-digits)
    for row in np.flatnonzero(near_tie):
        rounded[row] = float(Decimal(float(values[row])).quantize(step, rounding=ROUND_HALF_UP))
    return rounded


def rounded(expression: pl.Expr, digits: int = TIMES_DIGITS) -> pl.Expr:
    """The expression rounded as nsys rounds it; nulls stay null."""

    def apply(series: pl.Series) -> pl.Series:
        result = pl.Series(series.name, round_half_away(series.cast(pl.Float64).fill_null(0.0).to_numpy(), digits))
        return pl.select(pl.when(series.is_not_null()).then(result)).to_series().alias(series.name)

    return expression.map_batches(apply, return_dtype=pl.Float64)


def spread(value: str, prefix: str = "") -> list[pl.Expr]:
    """Aggregations total, count, average, median, least, greatest and sample standard deviation of a column."""
    column = pl.col(value)
    return [
        column.sum().alias(f"{prefix}total"),
        column.count().alias(f"{prefix}count"),
        pl.when(column.count() > 0).then(column.sum() / column.count()).alias(f"{prefix}avg"),
        column.median().alias(f"{prefix}med"),
        column.min().alias(f"{prefix}min"),
        column.max().alias(f"{prefix}max"),
        # The deviation of a single value is printed as zero.
        column.cast(pl.Float64).std(ddof=1).fill_null(0.0).alias(f"{prefix}std"),
    ]


def titled(prefix: str = "", title: str = "") -> list[pl.Expr]:
    """The columns Avg to StdDev of a spread of times, rounded and titled."""
    return [
        rounded(pl.col(f"{prefix}avg")).alias(f"{title}Avg (ns)"),
        rounded(pl.col(f"{prefix}med")).alias(f"{title}Med (ns)"),
        pl.col(f"{prefix}min").alias(f"{title}Min (ns)"),
        pl.col(f"{prefix}max").alias(f"{title}Max (ns)"),
        rounded(pl.col(f"{prefix}std")).alias(f"{title}StdDev (ns)"),
    ]


def time_summary(
    rows: pl.DataFrame, keys: dict[str, str], count_title: str, *, slowest_of_equals: bool = False
) -> pl.DataFrame:
    """The summary most reports are: share, total, count and spread of ``duration_ns`` for each key.

    ``keys`` maps the columns to group by to their titles, in the order in which they are printed. The share
    is of the listed rows, not of wall time. Longest total first; equal totals by key, or with
    ``slowest_of_equals`` by the longest average before the key.
    """
    grouped = rows.group_by(list(keys)).agg(spread(DURATION)).with_columns(pl.col(*keys).cast(pl.String))
    share = 100.0 * pl.col("total") / pl.col("total").sum()
    descending = ["total", "avg"] if slowest_of_equals else ["total"]
    ascending = [*reversed(keys)]
    grouped = grouped.sort([*descending, *ascending], descending=[True] * len(descending) + [False] * len(ascending))
    return grouped.select(
        # When nothing took any time there is no share to speak of.
        rounded(pl.when(pl.col("total").sum() > 0).then(share).otherwise(0.0)).alias(PERCENT),
        pl.col("total").alias("Total Time (ns)"),
        pl.col("count").alias(count_title),
        *titled(),
        *(pl.col(name).alias(title) for name, title in keys.items()),
    )


def bytes_per_second() -> pl.Expr:
    """Throughput of ``bytes`` in ``duration_ns``, null where no time passed.

    nsys divides a second by the duration in whole numbers first, which costs the last digits.
    """
    duration = pl.col(DURATION)
    return pl.when(duration > 0).then(NANOSECONDS_PER_SECOND // duration * pl.col("bytes"))


def megabytes(value: pl.Expr) -> pl.Expr:
    """Bytes as the decimal megabytes that nsys prints."""
    return rounded(value / BYTES_PER_MEGABYTE, MEGABYTES_DIGITS)
