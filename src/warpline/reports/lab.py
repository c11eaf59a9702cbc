"""The lab's results as sections: for each experiment the question, what was seen, why, and the figures."""

from __future__ import annotations

from collections.abc import Iterator

from warpline.estimate import Estimate
from warpline.lab.model import LabColumn, LabRange, LabResult, LabResults, LabTable, LabValue
from warpline.lab.run import ALL, EXPERIMENTS
from warpline.reports.sections import (
    Column,
    Command,
    Commands,
    Content,
    Note,
    Notes,
    Report,
    Section,
    Table,
    Text,
    Value,
)

LEAST_IMPORTANT = ("interval", "range", "submit", "new_kernels")
"""Columns that a narrow terminal leaves out first, by the start of a name."""


def lab_report(results: LabResults) -> Report:
    """All experiments."""
    small = "; on a CPU sizes are small and ops have one thread" if results.sizes == "small" else ""
    title = f"Lab on {results.device}, torch {results.torch}, {results.date}{small}"
    return Report(title, tuple(Section(one.name, one.name, tuple(_content(one))) for one in results.experiments))


def lab_listing() -> Report:
    """The experiments, and how to run them."""
    columns = (Column("name", "experiment", key=True), Column("asks", "what it asks"), Column("needs", "needs"))
    rows = tuple((one.name, one.asks, "a GPU" if one.needs_gpu else "") for one in EXPERIMENTS.values())
    commands = Commands(
        (
            Command(f"warpline lab {next(iter(EXPERIMENTS))}", "run one"),
            Command(f"warpline lab {ALL} -o lab.html", "run all, as a page"),
        )
    )
    return Report("Lab", (Section("experiments", "Experiments", (Table(columns, rows), commands), is_lead=True),))


def _content(result: LabResult) -> Iterator[Content]:
    yield Text(result.asks, "strong")
    if result.not_run:
        yield Notes((Note("unknown", "not-run", result.not_run),))
        return
    if result.seen:
        yield Text(result.seen)
        yield Text(result.why, "quiet")
    for table in result.tables:
        yield Text(table.title, "advice")
        yield lab_table(table)
    if result.notes:
        yield Notes(tuple(Note("unknown", "", note) for note in result.notes))


def lab_table(table: LabTable) -> Table:
    """A table of the lab as one of a report, without the columns that no row has."""
    columns = tuple(_column(column, at == 0) for at, column in enumerate(table.columns))
    rows = tuple(tuple(map(_value, row)) for row in table.rows)
    return Table(columns, rows).without_empty(*(column.name for column in columns))


def _column(column: LabColumn, is_key: bool) -> Column:
    priority = 3 if column.name.startswith(LEAST_IMPORTANT) or "range" in column.name else 1
    return Column(column.name, column.title, column.unit, key=is_key, priority=priority)


def _value(value: LabValue) -> Value:
    return Estimate(value.low, value.expected, value.high) if isinstance(value, LabRange) else value
