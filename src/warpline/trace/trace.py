"""The trace: one profile, linked and checked. Each table is an attribute whose columns are numpy arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeVar, cast

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from warpline.errors import UsageError
from warpline.sources.health import SEVERITIES, HealthEntry
from warpline.trace.arrays import Int64s
from warpline.trace.companions import Companions
from warpline.trace.schema import (
    TABLES,
    Api,
    Counters,
    Dataflow,
    Devices,
    Events,
    Faults,
    Gpu,
    Health,
    LongNames,
    Memory,
    Meta,
    Ops,
    OsRuntime,
    Overhead,
    Python,
    Ranges,
    Steps,
    Syncs,
    Threads,
)
from warpline.trace.steps.choice import ColdSteps, StepChoice, completed
from warpline.trace.table import TraceTable

Found = TypeVar("Found")
_ATTRIBUTES = {name: "all_steps" if name == "steps" else name for name in TABLES}
"""The attribute of a trace that holds a table."""


class Window(Struct, frozen=True):
    """The time that an analysis looks at."""

    start_ns: int
    end_ns: int

    @property
    def length_ns(self) -> int:
        """How long it is."""
        return self.end_ns - self.start_ns


class Trace(Struct, frozen=True, dict=True, eq=False):
    """One profile: `trace.gpu.start_ns` is a numpy array, and so is every column of `warpline.trace.schema`.

    A row's id is its position. Tables are read when they are first asked for. A trace does not change:
    `msgspec.structs.replace` makes another one, with other tables or other steps in view.
    """

    file: Path
    source: str
    """`kineto`, `nsys` or another source."""
    gpu: Gpu
    api: Api
    ops: Ops
    ranges: Ranges
    python: Python
    syncs: Syncs
    events: Events
    osrt: OsRuntime
    memory: Memory
    overhead: Overhead
    faults: Faults
    dataflow: Dataflow
    counters: Counters
    threads: Threads
    devices: Devices
    long_names: LongNames
    all_steps: Steps
    """Training or inference steps, in order; `steps_in_view` are the chosen ones."""
    meta: Meta
    health: Health
    chosen_steps: StepChoice | None = None
    cold: ColdSteps | None = None
    """The cold steps, where the steps in view were chosen without them."""
    companions: Companions | None = None
    """A second pass at the same program, where `warpline run` left one."""

    @classmethod
    def of_tables(cls, file: Path, source: str, tables: Mapping[str, TraceTable]) -> Self:
        """The trace with these tables, by name."""
        attributes: dict[str, Any] = {_ATTRIBUTES[name]: table for name, table in tables.items()}
        return cls(file, source, **attributes)

    @property
    def tables(self) -> dict[str, TraceTable]:
        """Every table by name."""
        return {name: getattr(self, attribute) for name, attribute in _ATTRIBUTES.items()}

    @property
    def facts(self) -> dict[str, str]:
        """The `meta` table as a dictionary: version of the profiler, zero of the clock, and so on."""
        return dict(self.meta.stored.iter_rows())

    @property
    def health_entries(self) -> list[HealthEntry]:
        """What is wrong or odd about the profile, worst first."""
        entries = [HealthEntry(*row) for row in self.health.stored.iter_rows()]
        return sorted(entries, key=lambda entry: SEVERITIES.index(entry.severity))

    @cached_property
    def window(self) -> Window:
        """The chosen steps until their work is done, else from the first to the last thing a device did; empty without
        GPU work."""
        if self.chosen_steps is not None:
            starts, ends = self.step_spans
            return Window(int(starts[0]), int(ends[-1]))
        if not len(self.gpu):
            return Window(0, 0)
        return Window(int(self.gpu.start_ns.min()), int(self.gpu.end_ns.max()))

    @property
    def steps_in_view(self) -> Steps:
        """The chosen steps, or all."""
        return self.all_steps[self._in_view]

    @property
    def has_some_steps_chosen(self) -> bool:
        """Whether some of the steps were chosen: all of them are the same as no choice."""
        return len(self.steps_in_view) < len(self.all_steps)

    @property
    def step_ns(self) -> int | None:
        """Median length of the steps in view, None without steps."""
        starts, ends = self.step_spans
        return int(np.median(ends - starts)) if len(starts) else None

    @cached_property
    def step_spans(self) -> tuple[Int64s, Int64s]:
        """Start and end of each step in view: see `warpline.trace.steps.choice.completed`."""
        starts, ends = completed(self.all_steps, self.gpu, self.api)
        return starts[self._in_view], ends[self._in_view]

    @property
    def _in_view(self) -> slice:
        choice = self.chosen_steps
        return slice(None) if choice is None else slice(choice.first, choice.beyond)

    def once(self, find: Callable[[Trace], Found]) -> Found:
        """What a function makes of this trace and its chosen steps; made once."""
        if find not in self._found:
            self._found[find] = find(self)
        return cast("Found", self._found[find])

    @cached_property
    def _found(self) -> dict[Callable[[Trace], Any], Any]:
        return {}

    def whole(self) -> Self:
        """The same trace, looked at from its first to its last operation."""
        return replace(self, chosen_steps=None, cold=None)

    def with_steps(self, choice: StepChoice) -> Self:
        """The same trace, looked at only during these steps."""
        if not len(self.all_steps):
            raise UsageError(
                "no-steps",
                "the trace has no steps to choose from: no ProfilerStep, no loop, and no work that repeats",
                "name a range with --step-range NAME",
            )
        choice.check(self.all_steps)
        return replace(self, chosen_steps=choice)
