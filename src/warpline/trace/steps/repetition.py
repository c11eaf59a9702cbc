"""Finds steps from repeating GPU activity, if neither a range nor a function marks them.

The sequence is the program's launches in order, with the waits in between. It shows
how long a step is; the pauses of the program show where a step starts: they are longer between steps than within.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from msgspec import Struct

from warpline.api_names import DEVICE_WAIT, EVENT_WAIT, STREAM_WAIT
from warpline.trace.arrays import NONE, Bools, Int64s, combinations, integers
from warpline.trace.link import Tables
from warpline.trace.names import named
from warpline.trace.schema import conform, empty
from warpline.trace.steps.pauses import longest_place, regular_pauses
from warpline.trace.steps.period import LEAST_REPEATS, Codes, Period, find_period
from warpline.trace.steps.proper_steps import are_proper

HOW_ALIKE = (
    (("kind", "name", "grid_x", "grid_y", "grid_z", "block_x", "bytes", "copy_kind"), 0.98),
    (("kind", "name"), 0.9),
)
"""Columns that must be equal for two operations to match, and the required share; the strictest first."""
LEAST_DISTINCT = 0.25
"""Share of the distinct work that a step must hold: trials of one kernel repeat
too, and so does the filling of parameters."""
LONGEST_OPENING = 64
"""Number of items that identify the start of a step."""
ABOUT_A_PERIOD = (0.8, 1.25)
LAST_ALIKE = 0.9
"""Share of the last step that must exist and match the others."""


class Requests(Struct, frozen=True):
    """The program's requests in order: launches, and waits."""

    row: Int64s
    """Row of `gpu`; NONE for a wait."""
    pause_ns: Int64s
    """How long nothing was asked for before it, and before the waits that precede it; 0 for waits."""
    codes: tuple[Codes, ...]
    """What it is, once for each entry of `HOW_ALIKE`."""


def steps_from_repetition(tables: Tables) -> pl.DataFrame:
    """The steps table from the period of the requests; empty if nothing repeats, or only a part of the work does."""
    requests = _requests(tables)
    for codes, (_, same) in zip(requests.codes, HOW_ALIKE, strict=True):
        period = find_period(codes, same)
        if period is not None and _variety(codes, requests.row != NONE, period) >= LEAST_DISTINCT:
            steps = _steps(tables["gpu"], requests, *_marks(codes, requests.pause_ns, period))
            return steps if len(steps) and are_proper(steps, tables) else empty("steps")
    return empty("steps")


def _variety(codes: Codes, is_work: Bools, period: Period) -> float:
    """Share of the distinct work that one period holds."""
    one = slice(period.first, period.first + period.length)
    return len(np.unique(codes[one][is_work[one]])) / len(np.unique(codes[is_work]))


def _requests(tables: Tables) -> Requests:
    gpu, api = tables["gpu"], tables["api"]
    waits = api.with_row_index("call").filter(named(f"{DEVICE_WAIT}|{STREAM_WAIT}|{EVENT_WAIT}"))
    calls = np.append(integers(gpu["api_id"]), integers(waits["call"]))
    moments = np.append(integers(gpu["start_ns"]), np.zeros(len(waits), np.int64))
    start, end = (
        np.where(calls == NONE, moments, np.append(integers(api[name]), NONE)[calls]) for name in ("start_ns", "end_ns")
    )
    # Work of one graph has one launch, and an order that changes from replay to replay.
    order = np.lexsort((np.append(integers(gpu["stream"]), np.full(len(waits), NONE)), start))
    row = np.append(np.arange(len(gpu)), np.full(len(waits), NONE))[order]
    idle = np.append(0, np.clip(start[order][1:] - np.maximum.accumulate(end[order])[:-1], 0, None))
    next_work = np.searchsorted(np.flatnonzero(row != NONE), np.arange(len(row)))
    pause = np.zeros(len(row), np.int64)
    pause[row != NONE] = np.bincount(next_work, idle, len(gpu))[: len(gpu)].astype(np.int64)
    waited = waits.select(pl.col("name").hash(1)).to_series().to_numpy()
    worked = (gpu.select(pl.struct(columns).hash()).to_series().to_numpy() for columns, _ in HOW_ALIKE)
    codes = tuple(np.append(work, waited)[order] for work in worked)
    return Requests(row, pause, codes)


def _marks(codes: Codes, pause_ns: Int64s, period: Period) -> tuple[Int64s, int]:
    """Where each step begins, and where the last one ends, if all of it is there (else it only ends the one before)."""
    pauses = pause_ns[period.first :][: period.repeats * period.length].reshape(-1, period.length)
    regular = regular_pauses(pauses)
    if regular is not None:
        first = period.first + regular.first * period.length + regular.place
        period = Period(first, period.beyond, regular.every * period.length)
        marks = np.arange(period.first, period.beyond, period.length)
    else:
        shifted = Period(period.first + longest_place(pauses), period.beyond, period.length)
        period = shifted if shifted.repeats >= min(period.repeats, LEAST_REPEATS) else period
        marks = _alike(codes, np.arange(period.first, period.beyond, period.length), period)
    last, usual = (codes[begin:][: period.length] for begin in (marks[-1], period.first))
    whole = len(last) == len(usual) and (last == usual).mean() >= LAST_ALIKE
    return marks, int(marks[-1]) + (period.length if whole else 0)


def _alike(codes: Codes, marks: Int64s, period: Period) -> Int64s:
    """The marks, and more of them about one period apart where the same items follow: steps before or after the stretch
    that repeats, with a little more or less in them."""
    here = np.ones(len(codes), bool)
    for ahead in range(min(period.length, LONGEST_OPENING)):
        here &= np.append(codes[ahead:], np.zeros(ahead, np.uint64)) == codes[period.first + ahead]
        if here[period.first : period.beyond].sum() <= len(marks):
            break
    else:
        return marks
    shortest, longest = (share * period.length for share in ABOUT_A_PERIOD)
    places = np.union1d(np.flatnonzero(here), marks)
    far = (np.diff(places) < shortest) | (np.diff(places) > longest)
    stretch = np.append(0, np.cumsum(far))
    found: Int64s = places[stretch == stretch[np.searchsorted(places, marks[0])]]
    return found


def _steps(gpu: pl.DataFrame, requests: Requests, marks: Int64s, end: int) -> pl.DataFrame:
    """Steps begin with their first work on the busiest stream, and end where the next begins; a last one that is whole
    ends with its work."""
    starts, ends, streams, devices = (integers(gpu[name]) for name in ("start_ns", "end_ns", "stream", "device"))
    which = combinations(devices, streams)[1]
    lane = np.flatnonzero(np.append(which == np.bincount(which).argmax(), False)[requests.row])
    spots = np.searchsorted(lane, marks)
    begins = starts[requests.row[lane[spots[spots < len(lane)]]]]
    if end > marks[-1]:
        rows = requests.row[marks[-1] : end]
        begins = np.append(begins, ends[rows[rows != NONE]].max(initial=0))
    if len(begins) < LEAST_REPEATS or (np.diff(begins) <= 0).any():
        return empty("steps")
    steps = pl.DataFrame(
        {
            "index": np.arange(len(begins) - 1),
            "name": [f"repeat {number}" for number in range(len(begins) - 1)],
            "start_ns": begins[:-1],
            "end_ns": begins[1:],
        }
    )
    return conform("steps", steps.with_columns(found_by=pl.lit("repetition")))
