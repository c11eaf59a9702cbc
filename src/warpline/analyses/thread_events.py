"""Events of several tables as intervals on threads, to be nested in one tree: ops, ranges, Python frames and calls."""

from __future__ import annotations

from typing import Self

import numpy as np
from msgspec import Struct

from warpline.library_names import PROFILER_STEP
from warpline.trace.arrays import NONE, Bools, Int64s
from warpline.trace.nesting import Nest, clock_tick_ns, nest, order_for_nesting
from warpline.trace.schema import Api, Ops, OsRuntime, Overhead, Python, Ranges
from warpline.trace.table import Names, RowChoice, Words
from warpline.trace.trace import Trace

OP, RANGE, CALL, FRAME, OS_CALL = "op", "range", "call", "python", "os"
"""Kinds of events."""

ThreadTable = Api | Ops | OsRuntime | Overhead | Python | Ranges
"""Tables whose rows lie on threads."""


class ThreadEvents(Struct, frozen=True):
    """Intervals on threads."""

    kind: Names
    row: Int64s
    """Position in the table of its kind."""
    name: Names
    thread: Int64s
    start_ns: Int64s
    end_ns: Int64s

    @classmethod
    def of(cls, *parts: tuple[str, ThreadTable, Bools]) -> Self:
        """Events by kind: of each table the chosen rows that have a thread and an end, one table after the other."""
        rows = [np.flatnonzero(chosen & (table.thread != NONE) & (table.end_ns != NONE)) for _, table, chosen in parts]
        tables = [table[each] for (_, table, _), each in zip(parts, rows, strict=True)]
        return cls(
            Names(Words([kind for kind, _, _ in parts]), np.repeat(np.arange(len(parts)), list(map(len, rows)))),
            np.concatenate(rows),
            Names.joined([table.name for table in tables]),
            np.concatenate([table.thread for table in tables]),
            np.concatenate([table.start_ns for table in tables]),
            np.concatenate([table.end_ns for table in tables]),
        )

    def __len__(self) -> int:
        return len(self.row)

    def __getitem__(self, rows: RowChoice) -> Self:
        columns = (getattr(self, name)[rows] for name in self.__struct_fields__)
        return type(self)(*columns)

    def in_order(self) -> Self:
        """The same in the order in which they nest."""
        return self[order_for_nesting(self.thread, self.start_ns, self.end_ns)]

    def nested(self, ticks: int = 1) -> Nest:
        """The tree of events that are in order; one may outlast its parent by so many ticks of the clock."""
        tick_ns = ticks * clock_tick_ns(self.start_ns, self.end_ns)
        return nest(self.thread, self.start_ns, self.end_ns, tick_ns)


def thread_events(trace: Trace) -> ThreadEvents:
    """Ops, frames, calls and ranges of all threads, without the profiler's steps."""
    tables: dict[str, ThreadTable] = {OP: trace.ops, FRAME: trace.python, CALL: trace.api, OS_CALL: trace.osrt}
    every = [(kind, table, np.ones(len(table), bool)) for kind, table in tables.items()]
    return ThreadEvents.of(*every, (RANGE, trace.ranges, ~trace.ranges.name.like(PROFILER_STEP)))
