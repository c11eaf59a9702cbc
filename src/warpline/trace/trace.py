"""The trace: one profile, linked and checked. Each table is an attribute whose columns are numpy arrays."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self, TypeVar, cast

import numpy as np
import polars as pl
from msgspec import Struct

from warpline.errors import UnreadableFile, UsageError
from warpline.sources.health import SEVERITIES, HealthEntry
from warpline.sources.second_pass import SecondPassRows, nothing_seen, read_second_pass
from warpline.trace.arrays import Int64s
from warpline.trace.execution_trace import read_execution_trace
from warpline.trace.nesting import Nest
from warpline.trace.repair import guaranteed
from warpline.trace.schema import (
    TABLES,
    Api,
    Counters,
    Dataflow,
    Devices,
    Events,
    Faults,
    Gpu,
    LongNames,
    Memory,
    Ops,
    OsRuntime,
    Overhead,
    Python,
    Ranges,
    Steps,
    Syncs,
    Threads,
    empty,
)
from warpline.trace.steps.choice import ColdSteps, StepChoice, completed, steps_named
from warpline.trace.table import Stored, TraceTable

T = TypeVar("T", bound=TraceTable)
Found = TypeVar("Found")
LOOK, STACKS = ".look.json.gz", (".stacks.json.gz", ".stacks.json")
COMPANIONS = (LOOK, *STACKS)
"""Endings of the files beside a trace, which are not traces to open by themselves."""


class Window(Struct, frozen=True):
    """The time that an analysis looks at."""

    start_ns: int
    end_ns: int

    @property
    def length_ns(self) -> int:
        """How long it is."""
        return self.end_ns - self.start_ns


class Trace:
    """One profile: `trace.gpu.start_ns` is a numpy array, and so is every column of `warpline.trace.schema`.

    A row's id is its position. Tables are read when they are first asked for.
    """

    def __init__(self, file: Path, source: str, stored: Mapping[str, Stored | TraceTable]) -> None:
        self.file = file
        self.source = source
        """`kineto`, `nsys` or another source."""
        self.chosen_steps: StepChoice | None = None
        self.cold: ColdSteps | None = None
        """The cold steps, where the steps in view were chosen without them."""
        self.companions: Companions | None = None
        """A second pass at the same program, where `warpline run` left one."""
        self.tables = {name: _table(name, stored[name]) for name in TABLES}
        """Every table by name; not to be changed."""
        self._found: dict[Callable[[Trace], Any], Any] = {}

    def stored(self, name: str) -> pl.DataFrame:
        """A table by name as it is stored: names are categorical, what was not recorded is null."""
        return self.tables[name].stored

    def _table(self, name: str, kind: type[T]) -> T:
        table = self.tables[name]
        assert isinstance(table, kind)
        return table

    @property
    def gpu(self) -> Gpu:
        """Kernels, copies, memsets and graphs that a device ran, by start time."""
        return self._table("gpu", Gpu)

    @property
    def api(self) -> Api:
        """CUDA runtime and driver calls (HIP likewise), by start time."""
        return self._table("api", Api)

    @property
    def ops(self) -> Ops:
        """Framework ops on the CPU, by thread and start time."""
        return self._table("ops", Ops)

    @property
    def ranges(self) -> Ranges:
        """NVTX ranges, record_function annotations and profiler steps, by thread and start time."""
        return self._table("ranges", Ranges)

    @property
    def python(self) -> Python:
        """Python frames (recorded with with_stack=True), by thread and start time."""
        return self._table("python", Python)

    @property
    def syncs(self) -> Syncs:
        """Synchronization records of the GPU."""
        return self._table("syncs", Syncs)

    @property
    def events(self) -> Events:
        """CUDA events recorded into a stream."""
        return self._table("events", Events)

    @property
    def osrt(self) -> OsRuntime:
        """OS runtime calls (nsys)."""
        return self._table("osrt", OsRuntime)

    @property
    def memory(self) -> Memory:
        """Allocations and frees."""
        return self._table("memory", Memory)

    @property
    def overhead(self) -> Overhead:
        """What recording itself cost, and lazy loading."""
        return self._table("overhead", Overhead)

    @property
    def faults(self) -> Faults:
        """Page faults of unified memory (nsys)."""
        return self._table("faults", Faults)

    @property
    def dataflow(self) -> Dataflow:
        """Tensors that ops took and made in a few more steps, without times (`warpline run`)."""
        return self._table("dataflow", Dataflow)

    @property
    def counters(self) -> Counters:
        """Sampled counters (nsys GPU metrics)."""
        return self._table("counters", Counters)

    @property
    def threads(self) -> Threads:
        """Threads of all processes."""
        return self._table("threads", Threads)

    @property
    def devices(self) -> Devices:
        """Devices as the capture describes them."""
        return self._table("devices", Devices)

    @property
    def long_names(self) -> LongNames:
        """Names too long for a column."""
        return self._table("long_names", LongNames)

    @property
    def all_steps(self) -> Steps:
        """Training or inference steps, in order; `steps_in_view` are the chosen ones."""
        return self._table("steps", Steps)

    @property
    def facts(self) -> dict[str, str]:
        """The `meta` table as a dictionary: version of the profiler, zero of the clock, and so on."""
        return dict(self.stored("meta").iter_rows())

    @property
    def health_entries(self) -> list[HealthEntry]:
        """What is wrong or odd about the profile, worst first."""
        entries = [HealthEntry(*row) for row in self.stored("health").iter_rows()]
        return sorted(entries, key=lambda entry: SEVERITIES.index(entry.severity))

    @property
    def frames(self) -> Nest:
        """The Python frames as a tree, to ask which one is open at a moment."""
        python = self.python
        return Nest(python.thread, python.start_ns, python.end_ns, python.parent, python.depth)

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
        choice = self.chosen_steps
        return self.all_steps if choice is None else self.all_steps[slice(choice.first, choice.beyond)]

    @property
    def has_some_steps_chosen(self) -> bool:
        """Whether some of the steps were chosen: all of them are the same as no choice."""
        return self.chosen_steps is not None and len(self.steps_in_view) < len(self.all_steps)

    @property
    def step_ns(self) -> int | None:
        """Median length of the steps in view, None without steps."""
        starts, ends = self.step_spans
        return int(np.median(ends - starts)) if len(starts) else None

    @cached_property
    def step_spans(self) -> tuple[Int64s, Int64s]:
        """Start and end of each step in view: see `warpline.trace.steps.choice.completed`."""
        starts, ends = completed(self.all_steps, self.gpu, self.api)
        choice = self.chosen_steps
        chosen = slice(None) if choice is None else slice(choice.first, choice.beyond)
        return starts[chosen], ends[chosen]

    def once(self, find: Callable[[Trace], Found]) -> Found:
        """What a function makes of this trace and its chosen steps; made once."""
        if find not in self._found:
            self._found[find] = find(self)
        return cast("Found", self._found[find])

    def with_companions(self, companions: Companions) -> Self:
        """The same trace with a second pass."""
        step_names = partial(_step_names, self)
        other = self._with_tables({"dataflow": lambda: _dataflow_of(companions, step_names)})
        other.companions = companions
        return other

    def whole(self) -> Self:
        """The same trace, looked at from its first to its last operation."""
        other = self._with_tables({})
        other.chosen_steps = other.cold = None
        return other

    def replaced(self, tables: Mapping[str, Stored | TraceTable], choice: StepChoice | None) -> Self:
        """The same trace with some other tables, looked at during these steps."""
        other = self._with_tables(tables)
        other.chosen_steps = choice
        return other

    def without(self, cold: ColdSteps) -> Self:
        """The same trace, whose steps in view are warm."""
        other = self._with_tables({})
        other.cold = cold
        return other

    def with_step_range(self, name: str) -> Self:
        """The same trace with steps taken from the ranges of that name."""
        return self.replaced({"steps": steps_named(self.ranges, name).table()}, self.chosen_steps)

    def with_steps(self, choice: StepChoice) -> Self:
        """The same trace, looked at only during these steps."""
        if not len(self.all_steps):
            raise UsageError(
                "no-steps",
                "the trace has no steps to choose from: no ProfilerStep, no loop, and no work that repeats",
                "name a range with --step-range NAME",
            )
        choice.check(self.all_steps)
        return self.replaced({}, choice)

    @classmethod
    def of(cls, trace: Trace) -> Self:
        """That trace as one of this class."""
        same = cls(trace.file, trace.source, trace.tables)
        same.chosen_steps, same.cold, same.companions = trace.chosen_steps, trace.cold, trace.companions
        return same

    def _with_tables(self, tables: Mapping[str, Stored | TraceTable]) -> Self:
        """The same trace with other tables in place of its own."""
        other = self.of(self)
        other.tables |= {name: _table(name, table) for name, table in tables.items()}
        return other


def _table(name: str, stored: Stored | TraceTable) -> TraceTable:
    return stored if isinstance(stored, TraceTable) else TABLES[name](stored)


class Companions(Struct, dict=True):
    """What `warpline run` left beside a trace: a second pass at a few more steps, with Python frames and tensors.

    The files are read on first use.
    """

    path: Path
    """The trace."""
    opened: Callable[[Path], Trace]
    execution_trace: Path | None = None
    """The execution trace of the same run, where there is no second pass."""
    problem: str = ""
    """Why a file could not be read; known once it is asked for."""

    def _file(self, suffix: str) -> Path | None:
        stem = self.path.name.removesuffix(".gz").removesuffix(".json")
        file = self.path.with_name(stem + suffix)
        return file if file != self.path and file.is_file() else None

    @property
    def exists(self) -> bool:
        """Whether there was a second pass, or an execution trace. A trace of that name alone may be somebody's own
        recording."""
        return self._file(LOOK) is not None or self.execution_trace is not None

    @cached_property
    def look(self) -> SecondPassRows:
        """Data flow and lines; empty where there are none, or where their file is damaged."""
        file = self._file(LOOK)
        try:
            return read_second_pass(file) if file is not None else nothing_seen()
        except UnreadableFile as error:
            self.problem = error.message
            return nothing_seen()

    def dataflow(self, step_names: Callable[[], Collection[str]]) -> pl.DataFrame:
        """Rows of the `dataflow` table; ranges of these names are the steps of an execution trace."""
        if self.execution_trace is None:
            return self.look.dataflow
        try:
            return read_execution_trace(self.execution_trace, step_names())
        except UnreadableFile as error:
            self.problem = error.message
            return pl.DataFrame()

    @cached_property
    def stacks(self) -> Trace | None:
        """The trace of the same steps with Python frames."""
        file = next((found for suffix in STACKS if (found := self._file(suffix)) is not None), None)
        try:
            return self.opened(file) if file is not None else None
        except UnreadableFile as error:
            self.problem = error.message
            return None


def _step_names(trace: Trace) -> set[str]:
    return {name for name in trace.all_steps.name if name}


def _dataflow_of(companions: Companions, step_names: Callable[[], Collection[str]]) -> pl.DataFrame:
    rows = companions.dataflow(step_names)
    return guaranteed("dataflow", rows) if len(rows) else empty("dataflow")
