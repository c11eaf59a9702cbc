"""The timeline of a job: the ranks that matter on the common clock, each collective split into waiting and transfer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warpline.ranks.job import Job
from warpline.ranks.timeline import RankTimeline
from warpline.reports.page.bars import cause_words
from warpline.reports.page.contract import Particulars, Step, Timeline
from warpline.reports.page.names import NameTable
from warpline.reports.page.rows import Pack
from warpline.reports.page.timeline import DrawnTimeline
from warpline.reports.sections import sanitised
from warpline.timeline.tracks import BarTrack
from warpline.trace.arrays import NONE, Floats, Int64s

MOST_RANKS, MOST_ROWS = 8, 200_000
WAITING = "waits for other ranks"


def drawn_ranks(job: Job) -> list[int]:
    """The ranks that matter, in order: stragglers, those that hold others up most, and who waits most."""
    by_blame = [one.rank for one in job.by_blame]
    waits_most = max(job.per_rank, key=lambda one: one.comm_wait_ns).rank
    recorded = [rank for rank in job.straggler.ranks if rank in job.ranks]
    chosen = list(dict.fromkeys([*recorded[: MOST_RANKS - 1], waits_most, *by_blame]))
    return sorted(chosen[:MOST_RANKS])


def job_timeline(job: Job) -> tuple[DrawnTimeline, tuple[int, ...]]:
    """The timeline of these ranks, and the numbers of the steps that it shows."""
    lines = [job.timelines.of(rank) for rank in drawn_ranks(job)]
    steps = _shown_steps(job, lines)
    names, pack = NameTable(), Pack()
    waiting = names.number(WAITING, "sync")
    for place, line in enumerate(lines):
        shown = np.isin(line.step, steps)
        numbers = _names(line, names)
        work, comm = shown & ~line.is_comm, shown & line.is_comm
        _add(pack, "GPU", place, line.start_ns[work], line.end_ns[work], numbers[work])
        arrived_ns = line.start_ns + job.waits.of_operations(line)
        starts = np.concatenate([line.start_ns[comm], arrived_ns[comm]])
        ends = np.concatenate([arrived_ns[comm], line.end_ns[comm]])
        kinds = np.concatenate([np.full(int(comm.sum()), waiting), numbers[comm]])
        lasting = ends > starts
        _add(pack, "collectives", place, starts[lasting], ends[lasting], kinds[lasting])
    zero, end = pack.extent() or (0, 1)
    head = Timeline(
        zero_ns=zero,
        length_ns=end - zero,
        window=(0, end - zero),
        events=pack.count,
        least_ns=0,
        detailed=None,
        early_parts=pack.parts,
        names=names.all,
        tracks=pack.tracks,
        threads=[f"rank {line.rank}" for line in lines],
        steps=_steps(job, lines[0], steps, zero),
        causes=list(cause_words()),
    )
    particulars = Particulars(launches=[], inputs=[], identities=names.identities, spots=[], inside=[])
    numbers_shown = tuple(job.step_numbers[step] for step in steps)
    return DrawnTimeline(sanitised(head), sanitised(particulars), pack), numbers_shown


def _shown_steps(job: Job, lines: Sequence[RankTimeline]) -> list[int]:
    """As many steps as can be drawn: from the first, or from the first one in which the stragglers are late."""
    count = len(job.step_numbers)
    rows = np.sum([np.bincount(line.step, minlength=count) for line in lines], axis=0)
    late = [job.step_numbers.index(number) for number in job.straggler.late_steps if number in job.step_numbers]
    first = 0 if rows.sum() <= MOST_ROWS or not late else late[0]
    fitting = int(np.searchsorted(np.cumsum(rows[first:]), MOST_ROWS, "right"))
    return list(range(first, first + max(fitting, 1)))


def _names(line: RankTimeline, names: NameTable) -> Int64s:
    """The number of each operation's name on the page."""
    numbers = np.array([names.gpu(_kind(word), word, None) for word in [*line.name.words, "(no name)"]], np.int64)
    return numbers[line.name.codes]


def _kind(name: str) -> str:
    return "memcpy" if name.startswith("Memcpy") else "memset" if name.startswith("Memset") else "kernel"


def _add(pack: Pack, label: str, place: int, starts: Floats, ends: Floats, names: Int64s) -> None:
    begins, stops = (np.rint(times).astype(np.int64) for times in (starts, ends))
    order = np.lexsort((-stops, begins))
    track = BarTrack("ranges", label, order, begins[order], stops[order], thread=place)
    nothing = np.zeros(len(order), np.int64)
    pack.add([track], names[order], nothing, np.full(len(order), NONE), is_rounded=True)


def _steps(job: Job, line: RankTimeline, steps: Sequence[int], zero: int) -> list[Step]:
    """The steps as the first of the ranks has them."""
    spans = np.rint(line.steps).astype(np.int64) - zero
    lengths = spans[:, 1] - spans[:, 0]
    return [
        Step(f"step {job.step_numbers[step]}", int(spans[step, 0]), int(spans[step, 1]), int(lengths[step]))
        for step in steps
    ]
