"""What the page reads: every record that Python packs and the page's TypeScript unpacks.

`page/typescript.py` writes these classes as `page/src/contract.ts`, and a test compares the two. Times are integer
nanoseconds from `Timeline.zero_ns`, so that they stay exact as the page's numbers.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from warpline.estimate import Estimate
from warpline.timeline.tracks import TrackKind

EventKind = Literal[
    "matmul",
    "attention",
    "norm",
    "kernel",
    "copy",
    "memset",
    "comm",
    "graph",
    "launch",
    "wait",
    "api_copy",
    "allocate",
    "api",
    "op",
    "range",
    "python",
    "module",
    "sync",
    "idle",
]


class Track(Struct, frozen=True):
    """Rows of one kind of one thread or device, in lanes below each other."""

    kind: TrackKind
    label: str
    part: int
    """The part of the packed rows that it belongs to."""
    lanes: list[int]
    """Number of rows in each lane; rows lie in the order of tracks and lanes."""
    device: int | None = None
    thread: int | None = None
    """Position in `Timeline.threads`."""


class Step(Struct, frozen=True):
    """One step of the program."""

    name: str
    """As shown: `step 3`."""
    start_ns: int
    end_ns: int
    length_ns: int
    """With its work on the device, as other reports give it; the marks of a step that only launches are closer."""


class Name(Struct, frozen=True):
    """A name that rows have."""

    text: str
    """In full."""
    short: str
    """As shown on a row; empty if it is the same."""
    kind: EventKind
    cause: str | None = None
    """Of an idle gap."""
    identity: int | None = None
    """Position in `Particulars.identities`, for a kernel."""


class Identity(Struct, frozen=True):
    """What a kernel's name shows, and how close its calls come to the roofline."""

    facts: list[tuple[str, str]]
    """Labels and values, in the order in which they are shown."""


class Launch(Struct, frozen=True):
    """How a kernel was launched, or what a copy moved; null where it is not recorded."""

    grid: tuple[int, int, int] | None
    block: tuple[int, int, int] | None
    registers: int | None
    shared_bytes: int | None
    moved_bytes: int | None
    source: str | None
    target: str | None
    floor_ns: int | None
    """Time below which the roofline does not let it go; null where the work is unknown."""
    bound: str | None
    """What bounds it: compute, memory or latency."""
    inside: int | None
    """Position in `Particulars.inside`, if Nsight Compute profiled it."""


class Inputs(Struct, frozen=True):
    """The inputs of an op, as JSON texts of the profiler."""

    shapes: str
    dtypes: str
    module: str


class Inside(Struct, frozen=True):
    """What Nsight Compute measured inside a kernel, in short; the page has all of it as text."""

    reason: str
    facts: list[tuple[str, str]]
    """Labels and values, in the order in which they are shown."""
    name: int | None
    """Position in `Timeline.names` of its launch on the timeline, and …"""
    start_ns: int | None
    """… the start of it; null where the trace has none."""


class Spot(Struct, frozen=True):
    """Where a finding is seen: names of rows, and the cause of idle time that it removes."""

    finding: int
    """Its number on the page, from 0."""
    names: list[int]
    cause: str


class Timeline(Struct, frozen=True):
    """What the first picture needs beside the rows themselves, which follow as columns of bytes."""

    zero_ns: int
    """The first moment on the page, in the trace's own time."""
    length_ns: int
    window: tuple[int, int]
    """What the first picture shows: the analysed steps."""
    events: int
    least_ns: int
    """Shorter rows are left out, but for those in `detailed`; 0 if all rows are here."""
    detailed: tuple[int, int] | None
    """The part that has all its rows, if the others have long ones alone."""
    early_parts: int
    """Parts in the first picture; the rest comes after it."""
    names: list[Name]
    tracks: list[Track]
    threads: list[str]
    steps: list[Step]
    causes: list[str]


class Particulars(Struct, frozen=True):
    """What explains the rows: read after the first picture, with their arguments and links."""

    launches: list[Launch]
    """What `argument` of a GPU row means, from 1 on."""
    inputs: list[Inputs]
    """What `argument` of an op's row means, from 1 on."""
    identities: list[Identity]
    spots: list[Spot]
    inside: list[Inside]


class StepTimes(Struct, frozen=True):
    """The steps as measured: for the panel `steps`."""

    lengths_ns: list[int]
    busy_ns: list[int]
    starts_ns: list[int]


class FixChoice(Struct, frozen=True):
    """A fix that can be ticked."""

    name: str
    """As `warpline whatif --fix` takes it."""
    words: str
    effort: str
    confidence: str
    """Empty for a fix of the plan that has no finding: alone it gains too little."""
    claim: str


class Replayed(Struct, frozen=True):
    """The step after some fixes together."""

    fixes: list[int]
    """Positions in `FixChoices.fixes`, in rising order."""
    step_ns: Estimate
    gain: Estimate
    """Its range is wider than the step's: the step before the fixes is not known exactly either."""
    is_wide: bool
    """Whether the range says only: measure it."""


class FixChoices(Struct, frozen=True):
    """Steps replayed beforehand, for the panel `whatif`."""

    step_ns: float
    """Without a profiler, before any fix."""
    fixes: list[FixChoice]
    replayed: list[Replayed]
    planned: list[int]
    """The fixes of the plan, in its order."""
    file: str
    """The trace, for the command that replays another combination."""


class Dot(Struct, frozen=True):
    """An op or kernel below the roofline."""

    name: str
    shapes: str
    calls: int
    time_ns: float
    intensity: float
    """FLOPs per byte."""
    flops_per_second: float
    roof_pct: float | None
    bound: str


class Ceiling(Struct, frozen=True):
    """A limit of the device."""

    name: str
    value: float
    """FLOP/s, or bytes/s for the memory."""
    source: str
    """Measured, or from the data sheet."""


class Roofline(Struct, frozen=True):
    """For the panel `roofline`."""

    device: str
    total_ns: float
    """GPU time of everything, drawn or not."""
    drawn_ns: float
    memory: Ceiling
    compute: list[Ceiling]
    dots: list[Dot]


class TableColumn(Struct, frozen=True):
    """A column that can be sorted and filtered."""

    title: str
    unit: Literal["text", "count", "ns", "bytes", "bytes_per_second", "share", "gain", "number"]
    group: bool = False
    """Whether rows can be grouped by it."""
    sums: bool = False
    """Whether a group shows the sum of its rows."""


class DataTable(Struct, frozen=True):
    """One table of the panel `tables`."""

    title: str
    columns: list[TableColumn]
    """The first names the row."""
    rows: list[list[str | float | None]]
    left_out: int
    """Rows that are not here."""


class DataTables(Struct, frozen=True):
    """For the panel `tables`."""

    tables: list[DataTable]


class Flame(Struct, frozen=True):
    """A tree of calls; a node comes after its caller."""

    name: str
    frames: list[str]
    frame: list[int]
    """Of each node, its position in `frames`."""
    parent: list[int]
    """Of each node, its caller; -1 for none."""
    total_ns: list[int]
    """Of each node, with what it calls."""


class Flames(Struct, frozen=True):
    """For the panel `flame`."""

    flames: list[Flame]


class BudgetInputs(Struct, frozen=True):
    """Where the calculator of the panel `budget` starts."""

    launches: float
    cpu_ns: float
    """Per launch."""
    gpu_ns: float
    """Per launch."""
    graph_launch_ns: float
    """To launch a CUDA graph."""
    graph_gap_ns: float
    """Between two kernels of a graph."""
    step_ns: float | None
    """The replayed step, with which `diagnose` answers."""
    graph_ns: float | None
    """The same as a CUDA graph."""
    loading_ns: float
    """Time per step in which the launching threads load data."""


class Curve(Struct, frozen=True):
    """Memory of one device over time."""

    title: str
    times_ns: list[int]
    allocated_bytes: list[int]
    reserved_bytes: list[int]
    """Empty where the profile has none."""


class MemoryCurves(Struct, frozen=True):
    """For the panel `memory`."""

    curves: list[Curve]


class Provenance(Struct, frozen=True):
    """How a number of the page was made."""

    number: str
    value: str
    how: str


class Numbers(Struct, frozen=True):
    """For the panel `numbers`."""

    entries: list[Provenance]


class Panels(Struct, frozen=True):
    """One field per panel; null where the trace has nothing to show there."""

    whatif: FixChoices | None = None
    steps: StepTimes | None = None
    tables: DataTables | None = None
    roofline: Roofline | None = None
    flame: Flames | None = None
    budget: BudgetInputs | None = None
    memory: MemoryCurves | None = None
    numbers: Numbers | None = None
