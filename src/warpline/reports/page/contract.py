"""What the page reads: every record that Python packs and the page's TypeScript unpacks.

`page/typescript.py` writes these classes as `page/src/contract.ts`, and a test compares the two. Times are integer
nanoseconds from `Timeline.zero_ns`, so that they stay exact as the page's numbers.
"""

from __future__ import annotations

from typing import Literal

from warpline.records import dataclass

TrackKind = Literal["gpu", "idle", "syncs", "api", "ops", "ranges", "python"]
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


@dataclass(frozen=True, slots=True)
class Track:
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


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the program."""

    name: str
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Name:
    """A name that rows have."""

    text: str
    """In full."""
    short: str
    """As shown on a row; empty if it is the same."""
    kind: EventKind
    cause: str | None = None
    """Of an idle gap."""
    identity: int | None = None
    """Position in `Timeline.identities`, for a kernel."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What a kernel's name shows, and how close its calls come to the roofline."""

    facts: list[tuple[str, str]]
    """Labels and values, in the order in which they are shown."""


@dataclass(frozen=True, slots=True)
class Launch:
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


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of an op, as JSON texts of the profiler."""

    shapes: str
    dtypes: str
    module: str


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a finding is seen: names of rows, and the cause of idle time that it removes."""

    finding: int
    """Its number on the page, from 0."""
    names: list[int]
    cause: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """Everything about the rows but the rows themselves, which follow as columns of bytes."""

    zero_ns: int
    """The first moment on the page, in the trace's own time."""
    length_ns: int
    window: tuple[int, int]
    """The analysed part."""
    events: int
    early_parts: int
    """Parts in the first block of data; the rest comes after the first paint."""
    names: list[Name]
    tracks: list[Track]
    threads: list[str]
    steps: list[Step]
    launches: list[Launch]
    """What `argument` of a GPU row means, from 1 on."""
    inputs: list[Inputs]
    """What `argument` of an op's row means, from 1 on."""
    identities: list[Identity]
    causes: list[str]
    spots: list[Spot]


@dataclass(frozen=True, slots=True)
class StepTimes:
    """The steps as measured: for the panel `steps`."""

    lengths_ns: list[int]
    busy_ns: list[int]
    starts_ns: list[int]


@dataclass(frozen=True, slots=True)
class Panels:
    """One field per panel; null where the trace has nothing to show there."""

    steps: StepTimes | None = None
