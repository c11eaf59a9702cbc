"""The events of each rank in the steps that all ranks recorded, as arrays by a clock.

All events of a rank are many, so only one rank at a time is unpacked; what is kept of each is its outline.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import overload

import numpy as np
import polars as pl
from msgspec import Struct

from warpline.errors import CannotAnswer
from warpline.ranks.summary import COMM, COMPUTE, INPUT, STEP, WAIT, RankSummary
from warpline.replay.replay import UNEVEN, are_uneven
from warpline.sources.health import HealthEntry
from warpline.trace.arrays import NONE, Bools, Floats, Int64s
from warpline.trace.table import Names
from warpline.units import duration

MIN_STEPS = 2
"""A step time needs so many steps: it runs from the end of the first to the end of the last."""


class RankTimeline(Struct, frozen=True):
    """GPU operations of one rank in launch order, and what its CPU waited for. Times count from `zero_ns`."""

    rank: int
    zero_ns: int
    """The first event, ns since 1970 by the rank's own clock."""
    launch_ns: Floats
    start_ns: Floats
    end_ns: Floats
    step: Int64s
    """Position among the common steps."""
    is_comm: Bools
    stream: Int64s
    blocks: Int64s
    name: Names
    op: Names
    group: Names
    """Of a collective: its group, kind, size, number and peer; see `RecordedCollective`."""
    collective: Names
    message_bytes: Int64s
    sequence: Int64s
    peer: Int64s
    waits: Floats
    """Calls that wait for the GPU: a row with start and end each."""
    inputs: Floats
    """Waiting for data, likewise."""
    steps: Floats
    """The common steps on the CPU, likewise."""

    def kernel_ns(self, steps: Sequence[int] | None = None) -> dict[str, float]:
        """Time of each kernel in these steps, by default in all; collectives are left out."""
        rows = ~self.is_comm & (self.name.codes >= 0)
        if steps is not None:
            rows &= np.isin(self.step, steps)
        times = np.bincount(self.name.codes[rows], (self.end_ns - self.start_ns)[rows], len(self.name.words))
        return dict(zip(self.name.words, times.tolist(), strict=True))


class RankOutline(Struct, frozen=True):
    """What is kept of each rank: its collectives in launch order, and its steps. Times count from `zero_ns`."""

    rank: int
    zero_ns: int
    start_ns: Floats
    """Of each collective, as everything here without another word."""
    end_ns: Floats
    step: Int64s
    group: Names
    kind: Names
    message_bytes: Int64s
    sequence: Int64s
    peer: Int64s
    begin_ns: Floats
    """When the first step starts on the CPU, and when the first GPU operation does."""
    done_ns: Floats
    """For each step, when its last operation that is no collective ends; minus infinity if there is none."""
    latency_ns: float
    """Time from launch to start of its promptest operations."""


class StepWindow(Struct, frozen=True):
    """The steps of one rank."""

    numbers: Int64s
    """The number of each step; NONE if it was not recorded whole, or has no GPU operations."""
    spans: Int64s
    """Start and end of each step, by the rank's own clock."""

    def lengths(self, numbers: Sequence[int]) -> Floats:
        """How long the steps of these numbers take."""
        chosen = self.spans[np.isin(self.numbers, numbers)]
        return (chosen[:, 1] - chosen[:, 0]).astype(np.float64)

    @property
    def usable(self) -> set[int]:
        """The numbers of the steps that can be used."""
        return set(self.numbers[self.numbers != NONE].tolist())


KEPT_OPERATIONS = 200_000
"""Timelines with so many operations together stay in memory (about 30 MB), which makes small jobs faster."""


class Timelines(Sequence[RankTimeline]):
    """The timeline of each rank, made from its summary when it is asked for."""

    def __init__(
        self,
        summaries: Mapping[int, RankSummary],
        windows: Mapping[int, StepWindow],
        numbers: tuple[int, ...],
        ranks: Sequence[int],
        corrections: Sequence[Callable[[RankTimeline], RankTimeline]] = (),
    ) -> None:
        self._summaries, self._windows, self.numbers = summaries, windows, numbers
        self.ranks = tuple(ranks)
        self._corrections = corrections
        self._cache: dict[int, RankTimeline] = {}
        self._room = KEPT_OPERATIONS

    def __len__(self) -> int:
        return len(self.ranks)

    @overload
    def __getitem__(self, place: int) -> RankTimeline: ...
    @overload
    def __getitem__(self, place: slice) -> list[RankTimeline]: ...
    def __getitem__(self, place: int | slice) -> RankTimeline | list[RankTimeline]:
        if isinstance(place, slice):
            return [self[one] for one in range(len(self))[place]]
        rank = self.ranks[place]
        if rank in self._cache:
            return self._cache[rank]
        found = _timeline(rank, self._summaries[rank], self._windows[rank], self.numbers)
        found = self._corrections[place](found) if self._corrections else found
        if len(found.step) <= self._room:
            self._cache[rank] = found
            self._room -= len(found.step)
        return found

    def of(self, rank: int) -> RankTimeline:
        """The timeline of a rank."""
        return self[self.ranks.index(rank)]

    def corrected(self, corrections: Sequence[Callable[[RankTimeline], RankTimeline]]) -> Timelines:
        """The timelines by other clocks: one correction for each rank."""
        return Timelines(self._summaries, self._windows, self.numbers, self.ranks, corrections)


def common_timelines(summaries: Mapping[int, RankSummary]) -> tuple[Timelines, list[HealthEntry]]:
    """The timelines of the ranks that have steps in common, and what was left out."""
    windows, notes = _windows(summaries)
    numbers, ranks, left_out = _common(windows)
    if left_out:
        notes.append(
            HealthEntry(
                "other-steps",
                "warning",
                f"{_ranks(left_out)} recorded other steps than the rest, and {_is(left_out)} left out",
            )
        )
    if any(windows[rank].usable != set(numbers) for rank in ranks):
        shown = f"{numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else str(numbers[0])
        notes.append(HealthEntry("step-windows", "info", f"ranks recorded different steps; used are steps {shown}"))
    lengths = np.median([windows[rank].lengths(numbers) for rank in ranks], axis=0)
    cold = _cold_steps(lengths)
    if cold:
        which = "first step is" if cold == 1 else f"first {cold} steps are"
        message = (
            f"the {which} left out: {duration(lengths[:cold].sum())}, where later ones take "
            f"{duration(float(np.median(lengths[cold:])))} each; a cold start of the job is lost once"
        )
        notes.append(HealthEntry("cold-steps", "info", message))
    return Timelines(summaries, windows, numbers[cold:], ranks), notes


def _cold_steps(lengths: Floats) -> int:
    """How many steps at the beginning are long once; 0 where long steps come again, or nothing shows what is usual."""
    if not are_uneven(lengths):
        return 0
    long = np.flatnonzero(lengths > UNEVEN * np.median(lengths))
    is_once = bool(len(long)) and long[-1] == len(long) - 1 and len(lengths) - len(long) >= max(MIN_STEPS, len(long))
    return len(long) if is_once else 0


def outline(line: RankTimeline) -> RankOutline:
    """What is kept of a rank."""
    rows = np.flatnonzero(line.is_comm)
    done = np.full(len(line.steps), -np.inf)
    np.maximum.at(done, line.step[~line.is_comm], line.end_ns[~line.is_comm])
    begin = [line.steps[0, 0], line.start_ns.min()]
    return RankOutline(
        line.rank,
        line.zero_ns,
        line.start_ns[rows],
        line.end_ns[rows],
        line.step[rows],
        line.group[rows],
        line.collective[rows],
        line.message_bytes[rows],
        line.sequence[rows],
        line.peer[rows],
        np.array(begin),
        done,
        float(np.percentile(line.start_ns - line.launch_ns, 2)),
    )


def _ranks(ranks: Sequence[int]) -> str:
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {', '.join(map(str, ranks))}"


def _is(ranks: Sequence[int]) -> str:
    return "is" if len(ranks) == 1 else "are"


def _windows(summaries: Mapping[int, RankSummary]) -> tuple[dict[int, StepWindow], list[HealthEntry]]:
    """The whole steps of each rank; the whole recording as one step where most ranks have no steps."""
    found = {rank: _steps(summary) for rank, summary in summaries.items()}
    without = [rank for rank, window in found.items() if not window.usable]
    if not without:
        return found, []
    if 2 * len(without) < len(found):
        message = f"{_ranks(without)} recorded no whole step, and {_is(without)} left out"
        return {rank: found[rank] for rank in found if rank not in without}, [
            HealthEntry("ranks-without-steps", "warning", message)
        ]
    return {rank: _whole(summary) for rank, summary in summaries.items()}, [
        HealthEntry("ranks-without-steps", "info", "the recordings have no steps: each is taken as one")
    ]


def _steps(summary: RankSummary) -> StepWindow:
    events = summary.events()
    rows = events.filter(pl.col("kind") == STEP).sort("start_ns")
    names = rows["name"].cast(pl.String).to_list()
    spans = rows.select("start_ns", "end_ns").to_numpy().astype(np.int64)
    found = [re.search(r"(\d{1,15})\D*$", name or "") for name in names]
    numbers = [int(match[1]) if match else NONE for match in found]
    if NONE in numbers or any(after <= before for before, after in itertools.pairwise(numbers)):
        numbers = list(range(len(names)))
    launches = _launches(events)
    places = np.searchsorted(spans[:, 0], launches, "right") - 1
    usable = np.bincount(places[places >= 0], minlength=len(spans)) > 0
    if summary.about.truncated:
        # The step in which a truncated file ends is not whole, even where its annotation is.
        usable[places.max(initial=0) :] = False
    return StepWindow(np.where(usable, numbers, NONE), spans)


def _launches(events: pl.DataFrame) -> Int64s:
    launches = events.filter(pl.col("kind").is_in([COMPUTE, COMM]))["launch_ns"]
    return np.asarray(launches.to_numpy(), np.int64)


def _whole(summary: RankSummary) -> StepWindow:
    launches = _launches(summary.events())
    return StepWindow(np.zeros(1, np.int64), np.array([[launches.min(), launches.max() + 1]], np.int64))


def _common(windows: Mapping[int, StepWindow]) -> tuple[tuple[int, ...], list[int], list[int]]:
    """Steps that ranks have in common, those ranks, and the ranks that share too few with the others."""
    ranks = sorted(windows)
    counts = Counter(number for window in windows.values() for number in window.usable)
    usual = {number for number, count in counts.items() if 2 * count > len(windows)}
    enough = min(MIN_STEPS, max((len(window.usable) for window in windows.values()), default=0))
    if len(usual) >= enough:
        ranks = [rank for rank in ranks if len(usual & windows[rank].usable) >= enough]
    common = set.intersection(*(windows[rank].usable for rank in ranks)) if ranks else set()
    if len(ranks) < 2 or not common:
        raise CannotAnswer("no-common-step", "the ranks recorded no step in common", "record the same steps everywhere")
    return tuple(sorted(common)), ranks, [rank for rank in sorted(windows) if rank not in ranks]


def _timeline(rank: int, summary: RankSummary, window: StepWindow, numbers: tuple[int, ...]) -> RankTimeline:
    chosen = np.isin(window.numbers, numbers)
    spans = window.spans[chosen]
    events = summary.events()
    gpu = events.filter(pl.col("kind").is_in([COMPUTE, COMM]))
    # An operation belongs to the step in which it was launched; between two steps, to the one before.
    places = np.searchsorted(window.spans[:, 0], gpu["launch_ns"].to_numpy(), "right") - 1
    position = np.append(np.where(chosen, np.cumsum(chosen) - 1, NONE), NONE)
    step = position[places]
    gpu, step = gpu.filter(pl.Series(step != NONE)), step[step != NONE]
    zero_ns = int(spans[0, 0])
    last_ns = int(gpu["launch_ns"].to_numpy().max(initial=int(spans[-1, 1])))

    def relative(values: Int64s) -> Floats:
        return (values - zero_ns).astype(np.float64)

    def host(kind: str) -> Floats:
        inside = pl.col("start_ns").is_between(zero_ns, last_ns)
        rows = events.filter((pl.col("kind") == kind) & inside).sort("start_ns")
        return relative(rows.select("start_ns", "end_ns").to_numpy().astype(np.int64).reshape(-1, 2))

    def integers(column: str) -> Int64s:
        return gpu[column].fill_null(NONE).to_numpy().astype(np.int64)

    return RankTimeline(
        rank,
        zero_ns,
        relative(integers("launch_ns")),
        relative(integers("start_ns")),
        relative(integers("end_ns")),
        step,
        (gpu["kind"] == COMM).to_numpy(),
        integers("stream"),
        integers("blocks"),
        Names.of(gpu["name"]),
        Names.of(gpu["op"]),
        Names.of(gpu["group"]),
        Names.of(gpu["collective"]),
        integers("message_bytes"),
        integers("sequence"),
        integers("peer"),
        host(WAIT),
        host(INPUT),
        relative(spans),
    )
