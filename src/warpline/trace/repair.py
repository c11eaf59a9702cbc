"""Makes a reader's rows keep what the schema says, whatever the file held; analyses then need no checks of their own.

The one place for null and odd values: every trace passes here before it is linked. A required text that is missing
becomes "(no name)" or "unknown", a missing thread becomes one more row of `threads`, a row without possible times is
left out, and a number outside its column's bounds becomes null. Names that are too long for a column are shortened, and
`long_names` has them in full. Each repair is counted in a health entry.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any

import numpy as np
import polars as pl
from msgspec import Struct, field

from warpline.sources.health import HealthEntry
from warpline.sources.rows import FAR_NS, Rows
from warpline.sources.valid_text import valid_text
from warpline.trace.arrays import LONG_AGO, NEVER
from warpline.trace.column_rules import NAME_CHARS, NO_NAME, UNKNOWN
from warpline.trace.schema import TABLES, conform, empty
from warpline.trace.table import Names, TraceColumn

Tables = dict[str, pl.DataFrame]
Columns = dict[str, TraceColumn[Any]]

_WITHOUT_READER = ("steps", "meta", "health", "long_names")
"""Tables that the trace layer makes; a reader gives none of them."""
_NAMES = {"name", "op"}
_GPU_RANGE = "gpu"
_DIGEST_CHARS = 12


class Repairs(Struct):
    """What had to be changed: counts, by place, and the names that were shortened."""

    missing: Counter[str] = field(default_factory=Counter)
    impossible_times: Counter[str] = field(default_factory=Counter)
    negative: Counter[str] = field(default_factory=Counter)
    impossible_values: Counter[str] = field(default_factory=Counter)
    long_arguments: Counter[str] = field(default_factory=Counter)
    long_names: dict[str, str] = field(default_factory=dict)
    """Each shortened name and the whole of it."""

    def health(self) -> list[HealthEntry]:
        """One entry for each kind of repair."""
        entries = []
        if self.impossible_times:
            problem = "have no time, are decades away from the others, or are decades long, and are ignored"
            entries.append(HealthEntry("impossible-time", "error", f"{_counted(self.impossible_times)} {problem}."))
        if self.negative:
            problem = "end before they start, which counts as zero"
            entries.append(HealthEntry("negative-duration", "warning", f"{_counted(self.negative)} {problem}."))
        if self.impossible_values:
            problem = "cannot be true (below zero, or larger than any device allows) and are ignored"
            message = f"{_counted(self.impossible_values, 'values')} {problem}."
            entries.append(HealthEntry("impossible-values", "warning", message))
        if self.missing:
            problem = f"are missing; {NO_NAME} and {UNKNOWN} stand in for them"
            message = f"{_counted(self.missing, 'values')} {problem}."
            entries.append(HealthEntry("missing-values", "info", message))
        if self.long_arguments:
            message = f"{_counted(self.long_arguments, 'values')} are too long for arguments and are ignored."
            entries.append(HealthEntry("long-arguments", "info", message))
        if self.long_names:
            count = len(self.long_names)
            message = f"{count:,} {'name is' if count == 1 else 'names are'} longer than {NAME_CHARS:,} characters and "
            message += f'{"is" if count == 1 else "are"} shortened; "select * from long_names" shows them in full.'
            entries.append(HealthEntry("long-names", "info", message))
        return entries


def _counted(counts: Counter[str], what: str = "rows") -> str:
    listed = ", ".join(f"{count:,} of {place}" for place, count in counts.most_common(4))
    more = f", and {len(counts) - 4} more" if len(counts) > 4 else ""
    return f"{counts.total():,} {what} ({listed}{more})"


def guarantee(rows: Rows) -> tuple[Tables, Repairs]:
    """The reader's tables as the schema describes them. Removes them from the rows, so that none is in memory twice."""
    repairs = Repairs()
    read = rows.tables
    tables = {name: _typed(name, read.pop(name, pl.DataFrame()), repairs) for name in TABLES}
    _in_time(tables, repairs)
    for name in TABLES:
        if name not in _WITHOUT_READER:
            tables[name] = _checked(name, tables[name], repairs)
    _threads(tables, repairs)
    if len(tables["devices"]) > 1:
        ordinal = pl.col("device")
        tables["devices"] = tables["devices"].filter(ordinal.is_null() | ordinal.is_first_distinct())
    rows.meta = {shortened(valid_text(key)): shortened(valid_text(value)) for key, value in rows.meta.items()}
    rows.health = [HealthEntry(one.code, one.severity, shortened(valid_text(one.message))) for one in rows.health]
    tables["long_names"] = _long_names(repairs)
    return tables, repairs


def guaranteed(name: str, frame: pl.DataFrame) -> pl.DataFrame:
    """One table that comes beside a trace, the same way; its long names are only shortened."""
    repairs = Repairs()
    return _checked(name, _typed(name, frame, repairs), repairs)


def shortened(text: str) -> str:
    """The beginning and the end of a longer text; a digest of the whole keeps different texts different."""
    if len(text) <= NAME_CHARS:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:_DIGEST_CHARS]
    mark = f"…[{len(text):,} characters, {digest}]…"
    tail = (NAME_CHARS - len(mark)) // 2
    return text[: NAME_CHARS - len(mark) - tail] + mark + text[len(text) - tail :]


def _typed(name: str, frame: pl.DataFrame, repairs: Repairs) -> pl.DataFrame:
    """With the columns of the schema; a value that does not fit its type is null."""
    if not len(frame):
        return empty(name)
    typed = conform(name, frame, strict=False)
    for column in frame.columns:
        lost = typed[column].null_count() - frame[column].null_count()
        if lost:
            repairs.impossible_values[f"{name}.{column}"] += lost
    return typed


def _in_time(tables: Tables, repairs: Repairs) -> None:
    """Leave out the rows without a time, and those decades away from the typical time, which only a flipped bit makes:
    two times can then be added without overflow."""
    for name, table in tables.items():
        needed = [
            column for column, about in TABLES[name].columns.items() if about.required and about.dtype is pl.Int64
        ]
        if name not in _WITHOUT_READER and any(table[column].null_count() for column in needed):
            tables[name] = table.drop_nulls(needed)
            repairs.impossible_times[name] += len(table) - len(tables[name])
    timed = {name: _first_time(TABLES[name].columns) for name in tables if name not in _WITHOUT_READER}
    starts = {name: tables[name][column].to_numpy() for name, column in timed.items() if column and len(tables[name])}
    if not starts:
        return
    first, last = min(int(some.min()) for some in starts.values()), max(int(some.max()) for some in starts.values())
    # If all begin within that range, any of them is typical; else the median is.
    centre = first if last - first <= FAR_NS else int(np.median(np.concatenate(list(starts.values()))))
    low, high = max(centre - FAR_NS, first, LONG_AGO), min(centre + FAR_NS, last, NEVER)
    for name in starts:
        tables[name] = _near(name, tables[name], timed[name], low, high, repairs)


def _first_time(table: Columns) -> str:
    return next((column for column in ("start_ns", "time_ns") if column in table), "")


def _near(name: str, table: pl.DataFrame, column: str, low: int, high: int, repairs: Repairs) -> pl.DataFrame:
    if _all_near(table, column, low, high):
        return table
    start = pl.col(column)
    keep = start.is_between(low, high)
    if "end_ns" in table.columns:
        early = int(table.select(((pl.col("end_ns") < start) & keep).sum()).item() or 0)
        if early:
            repairs.negative[name] += early
            table = table.with_columns(end_ns=pl.when(pl.col("end_ns") < start).then(start).otherwise("end_ns"))
        # Written without a difference, which could overflow.
        keep = keep & (pl.col("end_ns") <= start.clip(low, high) + FAR_NS).fill_null(value=True)
    if name == "ranges":
        keep = keep & _possible_gpu_span(low, high)
    possible = table.filter(keep)
    if len(possible) < len(table):
        repairs.impossible_times[name] += len(table) - len(possible)
    return possible


def _all_near(table: pl.DataFrame, column: str, low: int, high: int) -> bool:
    starts = table[column].to_numpy()
    if int(starts.min()) < low or int(starts.max()) > high:
        return False
    for other in ("gpu_start_ns", "gpu_end_ns"):
        if other in table.columns and table[other].null_count() < len(table):
            return False
    if "end_ns" not in table.columns:
        return True
    # The difference may overflow, and is then below zero or far too long.
    lengths = table["end_ns"].fill_null(high).to_numpy() - starts
    return int(lengths.min()) >= 0 and int(lengths.max()) <= FAR_NS


def _possible_gpu_span(low: int, high: int) -> pl.Expr:
    return pl.all_horizontal(
        pl.col(column).is_between(low - FAR_NS, high + FAR_NS).fill_null(value=True)
        for column in ("gpu_start_ns", "gpu_end_ns")
    )


def _checked(name: str, table: pl.DataFrame, repairs: Repairs) -> pl.DataFrame:
    """With possible values in every column, and a text in every required one."""
    if not len(table):
        return table
    about = TABLES[name].columns
    changed: list[pl.Series] = []
    for column, rule in about.items():
        series = table[column]
        checked = _possible(series, rule, f"{name}.{column}", repairs)
        if rule.required and checked.null_count() and rule.dtype in (pl.Categorical, pl.String):
            repairs.missing[f"{name}.{column}"] += checked.null_count()
            checked = checked.fill_null(NO_NAME if column in _NAMES else UNKNOWN)
        if checked is not series:
            changed.append(checked.alias(column))
    table = table.with_columns(changed) if changed else table
    keys = [column for column, rule in about.items() if rule.required and column != "thread"]
    return table.drop_nulls(keys) if any(table[column].null_count() for column in keys) else table


def _possible(series: pl.Series, rule: TraceColumn[Any], place: str, repairs: Repairs) -> pl.Series:
    if rule.bounds is not None:
        least, most = rule.bounds.least, rule.bounds.most
        low, high = series.min(), series.max()
        if low is not None and (low < least or high > most):  # type: ignore[operator]
            return _nulled(series, ~series.is_between(least, most), place, repairs.impossible_values)
    if rule.dtype is pl.Float64 and not series.is_finite().all():
        return _nulled(series, ~series.is_finite(), place, repairs.impossible_values)
    if rule.dtype in (pl.Categorical, pl.String):
        longest = series.unique().cast(pl.String).str.len_chars().max()
        if int(longest or 0) > rule.most_chars:  # type: ignore[arg-type]
            return _without_long(series, rule, place, repairs)
    return series


def _nulled(series: pl.Series, wrong: pl.Series, place: str, counts: Counter[str]) -> pl.Series:
    wrong = wrong.fill_null(value=False)
    counts[place] += int(wrong.sum())
    return series.set(wrong, None)


def _without_long(series: pl.Series, rule: TraceColumn[Any], place: str, repairs: Repairs) -> pl.Series:
    """The column with shorter names, or without the arguments that are too long: they are JSON, of which a part means
    nothing."""

    def short(text: str) -> str | None:
        if len(text) <= rule.most_chars:
            return text
        if rule.most_chars != NAME_CHARS:
            repairs.long_arguments[place] += 1
            return None
        repairs.long_names[shortened(text)] = text
        return shortened(text)

    names = Names.of(series.cast(pl.Categorical)).renamed(short)
    return names.series().cast(rule.dtype)


def _threads(tables: Tables, repairs: Repairs) -> None:
    """A row of `threads` for every thread that a row refers to: one more for those of no thread."""
    count = len(tables["threads"])
    unknown = False
    for name in TABLES:
        table = tables[name]
        if "thread" not in table.columns or name in _WITHOUT_READER or not len(table):
            continue
        threads = table["thread"]
        if not threads.null_count() and int(threads.max() or 0) < count:  # type: ignore[arg-type]
            continue
        needed = _needs_thread(name, table)
        beyond = threads >= count
        lost, stray = needed & beyond.fill_null(value=True), ~needed & beyond.fill_null(value=False)
        if lost.any():
            unknown = True
            repairs.missing[f"{name}.thread"] += int(lost.sum())
        tables[name] = table.with_columns(thread=threads.set(lost, count).set(stray, None))
    ended = tables["ranges"]["end_thread"]
    if (ended >= count).any():
        tables["ranges"] = tables["ranges"].with_columns(end_thread=ended.set(ended >= count, None))
    if unknown:
        row = pl.DataFrame({"name": [UNKNOWN]})
        tables["threads"] = pl.concat([tables["threads"], conform("threads", row)])


def _needs_thread(name: str, table: pl.DataFrame) -> pl.Series:
    """Which rows lie on a thread: those of the CPU."""
    if name == "ranges":
        return table["style"].cast(pl.String) != _GPU_RANGE
    return pl.Series([TABLES[name].columns["thread"].required]).new_from_index(0, len(table))


def _long_names(repairs: Repairs) -> pl.DataFrame:
    names = repairs.long_names
    return pl.DataFrame(
        {"name": list(names), "whole": list(names.values())},
        schema=dict.fromkeys(TABLES["long_names"].columns, pl.String),
    )
