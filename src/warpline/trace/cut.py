"""Cuts a trace to a few steps: what replaying them needs, and no more.

Keeps the calls, ops, frames and ranges that overlap these steps, the operations in them, and whatever their calls
launched. Positions that refer to a dropped row become null.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec.structs import replace

from warpline.trace.arrays import NONE, Bools, Int64s
from warpline.trace.launches import launch_moments
from warpline.trace.schema import Steps
from warpline.trace.steps.choice import StepChoice, on_device
from warpline.trace.table import TraceTable
from warpline.trace.trace import Trace, Window

_REFERENCES = {
    "gpu": {"api_id": "api", "op_id": "ops"},
    "api": {"op_id": "ops"},
    "ops": {"parent": "ops", "forward_op": "ops", "frame": "python"},
    "ranges": {"parent": "ranges"},
    "python": {"parent": "python"},
    "syncs": {"api_id": "api"},
    "events": {"api_id": "api"},
}
"""Columns that hold the position of a row in another table."""


def cut_to_steps(trace: Trace) -> Trace:
    """The trace with only the selected steps and their rows."""
    steps = trace.steps_in_view
    return replace(cut_to_rows(trace, rows_of_steps(trace), steps), chosen_steps=StepChoice(0, len(steps)))


def cut_to_rows(trace: Trace, rows: Mapping[str, Bools], steps: Steps) -> Trace:
    """The trace with only these rows of some tables, and these steps."""
    targets = {target for columns in _REFERENCES.values() for target in columns.values()}
    places = {name: _places(rows[name]) for name in targets}
    tables: dict[str, TraceTable] = {}
    for name, chosen in rows.items():
        table = trace.tables[name][chosen]
        references = _REFERENCES.get(name, {})
        tables[name] = table.with_columns(
            {column: places[target][table.column(column)] for column, target in references.items()}
        )
    return replace(trace, **tables, all_steps=steps, chosen_steps=None)


def rows_of_steps(trace: Trace) -> dict[str, Bools]:
    """Which rows belong to the selected steps, for each table with times."""
    steps = trace.steps_in_view
    window = Window(int(steps.start_ns.min()), int(steps.end_ns.max()))
    starts, ends = trace.gpu.start_ns, trace.gpu.end_ns
    launched = launch_moments(trace.gpu, trace.api, window.start_ns, window.end_ns)
    # Work that was launched before the steps, and is not done when they begin, delays theirs.
    work = (launched < window.end_ns) & (ends > window.start_ns)
    if on_device(steps):
        work &= (starts < window.end_ns) | (launched >= window.start_ns)
        # Steps found on the device were launched before they ran.
        own = (starts >= window.start_ns) & (starts < window.end_ns)
        window = Window(int(launched[own].min(initial=window.start_ns)), window.end_ns)
    return _rows(trace, window, work)


def _rows(trace: Trace, window: Window, work: Bools) -> dict[str, Bools]:
    """Which rows of each table belong to the window; `work` are those of `gpu`."""
    rows = {"gpu": work}
    for name in ("api", "ops", "ranges", "python", "osrt", "overhead", "faults"):
        starts, ends = trace.tables[name].column("start_ns"), trace.tables[name].column("end_ns")
        rows[name] = (starts < window.end_ns) & ((ends >= window.start_ns) | (ends == NONE))
    for name in ("memory", "counters"):
        moments = trace.tables[name].column("time_ns")
        rows[name] = (moments >= window.start_ns) & (moments < window.end_ns)
    for name in ("syncs", "events"):
        rows[name] = np.append(rows["api"], True)[trace.tables[name].column("api_id")]
    return rows


def _places(chosen: Bools) -> Int64s:
    """Where each row lies among the chosen ones; NONE for the others, and at the end."""
    places = np.full(len(chosen) + 1, NONE, np.int64)
    places[np.flatnonzero(chosen)] = np.arange(np.count_nonzero(chosen))
    return places
