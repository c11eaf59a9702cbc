"""Results that were written before: read again, and laid beside those of another machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

from warpline.errors import UnreadableFile, UsageError
from warpline.lab.model import (
    SCHEMA,
    LabColumn,
    LabRange,
    LabResult,
    LabResults,
    LabTable,
    LabUnit,
    LabValue,
)
from warpline.untrusted_json import read_json

UNITS = get_args(LabUnit)
COMPARED = ("step_ns", "time_ns")
"""The column of a table in which two machines are compared."""


def read_results(path: Path) -> LabResults:
    """The results in a file that `warpline lab … --json` wrote."""
    try:
        document = read_json(path)
        if document["schema"] != SCHEMA:
            raise ValueError(f"its schema is {document['schema']}")
        experiments = tuple(map(_result, document["experiments"]))
        cuda = document["cuda"]
        return LabResults(
            str(document["device"]),
            str(document["torch"]),
            None if cuda is None else str(cuda),
            str(document["date"]),
            "small" if document["sizes"] == "small" else "full",
            experiments,
        )
    except OSError as error:
        raise UnreadableFile("no-such-file", f"{path}: {error.strerror}", "check the path") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        message = f"{path.name} has no results of the lab ({type(error).__name__}: {error})"
        raise UnreadableFile(
            "not-lab-results", message, f"write them with: warpline lab all --json > {path.name}"
        ) from error


def _result(entry: dict[str, Any]) -> LabResult:
    return LabResult(
        str(entry["name"]),
        str(entry["asks"]),
        str(entry["seen"]),
        str(entry["why"]),
        tuple(map(_table, entry["tables"])),
        tuple(map(str, entry["notes"])),
        str(entry["not_run"] or ""),
        float(entry["seconds"]),
    )


def _table(entry: dict[str, Any]) -> LabTable:
    columns = tuple(
        LabColumn(str(one["name"]), str(one["title"]), one["unit"] if one["unit"] in UNITS else "text")
        for one in entry["columns"]
    )
    rows = tuple(tuple(_value(row[column.name]) for column in columns) for row in entry["rows"])
    return LabTable(str(entry["name"]), str(entry["title"]), columns, rows)


def _value(value: Any) -> LabValue:
    if isinstance(value, dict):
        return LabRange(float(value["low"]), float(value["expected"]), float(value["high"]))
    if value is None or isinstance(value, str | int | float):
        return value
    raise ValueError("a value is a number, a text or a range")


def side_by_side(one: LabResults, other: LabResults) -> LabResults:
    """The rows that both have, with the times of both and their ratio."""
    if one.sizes != other.sizes:
        what = f"{one.device} ran with {one.sizes} sizes, {other.device} with {other.sizes} ones"
        raise UsageError("other-sizes", what, "compare two GPUs, or two CPUs")
    others = {result.name: result for result in other.experiments}
    results = []
    for result in one.experiments:
        tables = {table.name: table for table in others[result.name].tables} if result.name in others else {}
        both = [_both(table, tables[table.name], one, other) for table in result.tables if table.name in tables]
        if both:
            results.append(LabResult(result.name, result.asks, "", "", tuple(filter(None, both)), (), "", 0.0))
    if not results:
        raise UsageError("nothing-in-common", "the two files have no experiment in common")
    return LabResults(f"{one.device} and {other.device}", one.torch, one.cuda, one.date, one.sizes, tuple(results))


def _both(table: LabTable, other: LabTable, a: LabResults, b: LabResults) -> LabTable | None:
    times, others = _times(table), _times(other)
    rows: list[tuple[LabValue, ...]] = [
        (name, ns, others[name], ns / others[name]) for name, ns in times.items() if others.get(name)
    ]
    columns = (
        LabColumn("row", table.columns[0].title),
        LabColumn("a_ns", a.device, "ns"),
        LabColumn("b_ns", b.device, "ns"),
        LabColumn("gain", "the second is as fast", "gain"),
    )
    return LabTable(table.name, table.title, columns, tuple(rows)) if rows else None


def _times(table: LabTable) -> dict[str, float]:
    places = [at for at, column in enumerate(table.columns) if column.name in COMPARED]
    if not places:
        return {}
    times = {str(row[0]): row[places[0]] for row in table.rows}
    return {name: float(value) for name, value in times.items() if isinstance(value, int | float)}
