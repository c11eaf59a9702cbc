"""The trace: one profile, linked and checked, as a set of polars frames."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
from msgspec import Struct
from msgspec.structs import replace

from warpline.errors import UsageError
from warpline.sources.health import SEVERITIES, HealthEntry
from warpline.trace.cold import ColdSteps
from warpline.trace.columns import Int64s, integers
from warpline.trace.companion_files import Companions
from warpline.trace.nesting import Nest
from warpline.trace.properties import TableProperties
from warpline.trace.repair import guaranteed
from warpline.trace.schema import TABLES, empty
from warpline.trace.steps.find import StepChoice, completed, steps_named


class Window(Struct, frozen=True):
    """The stretch of time that an analysis looks at."""

    start_ns: int
    end_ns: int

    @property
    def length_ns(self) -> int:
        """How long it is."""
        return self.end_ns - self.start_ns


class Trace(TableProperties, Struct, dict=True):
    """One profile as the analyses read it: each table of `warpline.trace.schema.TABLES` is a property.

    Names are categorical, and a row's id is its position. What `warpline.open` returns has the same tables with an
    `id` column and plain strings. A table may be loaded when it is first asked for.
    """

    path: Path
    source: str
    """`kineto` or `nsys`."""
    _tables: dict[str, pl.DataFrame | Callable[[], pl.DataFrame]]
    chosen_steps: StepChoice | None = None
    cold: ColdSteps | None = None
    """The cold steps, where the steps in view were chosen without them."""
    companions: Companions | None = None
    """A second pass at the same program, where `warpline run` left one."""

    def table(self, name: str) -> pl.DataFrame:
        """A table by name."""
        if name not in TABLES:
            raise UsageError("no-such-table", f"there is no table {name!r}", f"the tables are {', '.join(TABLES)}")
        frame = self._tables[name]
        if not isinstance(frame, pl.DataFrame):
            frame = self._tables[name] = frame()
        return frame

    @property
    def steps(self) -> pl.DataFrame:
        """Training or inference steps, in order."""
        return self.table("steps")

    @property
    def facts(self) -> dict[str, str]:
        """The `meta` table as a dictionary."""
        return dict(self.table("meta").iter_rows())

    @property
    def health_entries(self) -> list[HealthEntry]:
        """What is wrong or odd about the profile, worst first."""
        entries = [HealthEntry(code, severity, message) for code, severity, message in self.table("health").iter_rows()]
        return sorted(entries, key=lambda entry: SEVERITIES.index(entry.severity))

    @property
    def frames(self) -> Nest:
        """The Python frames as a tree, to ask which one is open at a moment."""
        python = self.table("python")
        lanes, starts, ends, parents = (integers(python[name]) for name in ("thread", "start_ns", "end_ns", "parent"))
        return Nest(lanes, starts, ends, parents, integers(python["depth"], 0))

    @property
    def window(self) -> Window:
        """The chosen steps, else from the first to the last thing a device did; empty without GPU work."""
        if self.chosen_steps is not None:
            return Window(*self.chosen_steps.window(self.table("steps")))
        gpu = self.table("gpu")
        if not len(gpu):
            return Window(0, 0)
        return Window(gpu["start_ns"].min(), gpu["end_ns"].max())  # type: ignore[arg-type]

    @property
    def steps_in_view(self) -> pl.DataFrame:
        """The chosen steps, or all."""
        steps = self.table("steps")
        return steps if self.chosen_steps is None else steps[slice(self.chosen_steps.first, self.chosen_steps.beyond)]

    @property
    def step_ns(self) -> int | None:
        """Median length of the steps in view, None without steps."""
        spans = self.step_spans
        return int(np.median(spans[1] - spans[0])) if len(spans[0]) else None

    @property
    def step_spans(self) -> tuple[Int64s, Int64s]:
        """Begin and end of each step in view: see `warpline.trace.steps.find.completed`."""
        starts, ends = completed(self.table("steps"), self.table("gpu"), self.table("api"))
        if self.chosen_steps is None:
            return starts, ends
        chosen = slice(self.chosen_steps.first, self.chosen_steps.beyond)
        return starts[chosen], ends[chosen]

    def with_companions(self, companions: Companions) -> Trace:
        """The same trace with a second pass."""
        flow: dict[str, pl.DataFrame | Callable[[], pl.DataFrame]] = {"dataflow": lambda: _dataflow_of(companions)}
        return replace(self, _tables={**self._tables, **flow}, companions=companions)

    def whole(self) -> Trace:
        """The same trace, looked at from its first to its last operation."""
        return Trace(self.path, self.source, self._tables, companions=self.companions)

    def replaced(self, tables: dict[str, pl.DataFrame], choice: StepChoice | None) -> Trace:
        """The same trace with some other tables, looked at during these steps."""
        return replace(self, _tables={**self._tables, **tables}, chosen_steps=choice)

    def without(self, cold: ColdSteps) -> Trace:
        """The same trace, whose steps in view are warm."""
        return replace(self, cold=cold)

    def with_step_range(self, name: str) -> Trace:
        """The same trace with steps taken from the ranges of that name."""
        return self.replaced({"steps": steps_named(self.table("ranges"), name)}, self.chosen_steps)

    def with_steps(self, choice: StepChoice) -> Trace:
        """The same trace, looked at only during these steps."""
        if not len(self.table("steps")):
            raise UsageError(
                "no-steps",
                "the trace has no steps to choose from: no ProfilerStep, no loop, and no work that repeats",
                "name a range with --step-range NAME",
            )
        choice.window(self.table("steps"))
        return self.replaced({}, choice)


def _dataflow_of(companions: Companions) -> pl.DataFrame:
    rows = companions.look.dataflow
    return guaranteed("dataflow", rows) if len(rows) else empty("dataflow")
