"""Builds a trace from a reader's rows: guarantee the schema, link, find steps, check."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from warpline.sources.health import HealthEntry
from warpline.sources.rows import Rows
from warpline.trace.checks import check
from warpline.trace.link import link
from warpline.trace.repair import guarantee
from warpline.trace.schema import Health
from warpline.trace.steps.find import find_steps
from warpline.trace.trace import Trace


def build(file: Path, rows: Rows) -> Trace:
    """Build a trace from a reader's rows: all tables, linked and checked. Removes the tables from the rows, so that
    none is in memory twice."""
    frames, repairs = guarantee(rows)
    facts = {"source": rows.source, **rows.meta}
    frames["meta"] = pl.DataFrame(
        {"key": list(facts), "value": list(facts.values())}, schema={"key": pl.String, "value": pl.String}
    )
    trace = Trace(file, rows.source, link(frames))
    steps = find_steps(trace)
    if steps is not None:
        trace = trace.replaced({"steps": steps.table()}, None)
    said = rows.health + _unsaid(repairs.health(), rows.health)
    return trace.replaced({"health": _health_table(said + _unsaid(check(trace), said))}, None)


_EXPLAINED_BY = {
    "empty-trace": {"no-kernels", "launches-without-kernels"},
    "no-gpu-work": {"no-kernels", "launches-without-kernels", "other-device", "counters-only"},
}
"""Entries of the linked trace that add nothing once the reader, which knows the cause, has spoken."""


def _unsaid(found: list[HealthEntry], said: list[HealthEntry]) -> list[HealthEntry]:
    known = {entry.code for entry in said}
    return [entry for entry in found if entry.code not in known and not _EXPLAINED_BY.get(entry.code, set()) & known]


def _health_table(entries: list[HealthEntry]) -> pl.DataFrame:
    columns = {name: [getattr(entry, name) for entry in entries] for name in Health.columns}
    return pl.DataFrame(columns, schema=dict.fromkeys(Health.columns, pl.String))
