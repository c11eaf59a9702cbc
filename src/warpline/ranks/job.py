"""Many ranks as one job: opened, aligned, replayed together, and judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from warpline.errors import CannotAnswer
from warpline.ranks.account import RankStepTime, RankTime, rank_time, step_times
from warpline.ranks.balance import Balance, balance_of, slow_node
from warpline.ranks.clocks import Clock, align
from warpline.ranks.dependencies import Places, launch_latency, vote
from warpline.ranks.files import JobFiles, RankFile, job_of_folder
from warpline.ranks.groups import GroupTime, group_times
from warpline.ranks.match import Collectives, awaiting, match, members_of
from warpline.ranks.merged_file import may_be_merged, split_by_rank
from warpline.ranks.processes import ranks_of_trace
from warpline.ranks.program import Recording
from warpline.ranks.read import Engine, ReadRank, read_ranks
from warpline.ranks.replay import step_time
from warpline.ranks.straggler import Search, Straggler, find_straggler
from warpline.ranks.summary import RankSummary, summarise
from warpline.ranks.timeline import RankOutline, Timelines, common_timelines, outline
from warpline.ranks.unnamed_groups import STREAM, named_by_others, separated_groups, unrelated
from warpline.ranks.waits import Waits, gathered, split
from warpline.ranks.words import JobVerdict, shown_ranks, straggler_sentence, verdict_of
from warpline.sources.health import HealthEntry
from warpline.trace.arrays import NONE
from warpline.trace.open import open_trace, profiles_in
from warpline.trace.trace import Trace
from warpline.units import several

SCHEMA = "warpline.job/1"


class Job(Struct, frozen=True):
    """One job: its ranks on a common clock, and who is waited for.

    >>> job = warpline.open_job("profile_traces")
    >>> job.straggler.ranks, job.straggler.gain.expected
    >>> job.rank_table
    """

    name: str
    ranks: tuple[int, ...]
    world_size: int
    missing_ranks: tuple[int, ...]
    step_numbers: tuple[int, ...]
    """The steps that all ranks recorded, by their own numbers."""
    step_ns: float
    replayed_step_ns: float
    clocks: tuple[Clock, ...]
    straggler: Straggler
    verdict: JobVerdict
    groups: tuple[GroupTime, ...]
    per_rank: tuple[RankTime, ...]
    health: tuple[HealthEntry, ...]
    timelines: Timelines
    """The events of each rank on the common clock, made when they are asked for."""
    outlines: tuple[RankOutline, ...]
    """The collectives and steps of each rank on the common clock."""
    collectives: Collectives
    waits: Waits
    files: Mapping[int, Path]
    """The file of each rank."""
    devices: Mapping[int, str]
    """The chip of each rank; empty if its file does not name it."""
    per_step: tuple[tuple[RankStepTime, ...], ...]
    """The account of each rank in each step."""
    balance: Balance
    """How evenly the work is spread."""
    other_jobs: tuple[str, ...] = ()
    """Other jobs or recordings of the folder, for `--job`."""

    @property
    def by_blame(self) -> list[RankTime]:
        """The ranks, those that hold others up most first."""
        return sorted(self.per_rank, key=lambda one: -one.blame_ns)

    def to_dict(self) -> dict[str, Any]:
        """The JSON contract `warpline.job/1`."""
        return {
            "schema": SCHEMA,
            "job": {
                "name": self.name,
                "ranks": list(self.ranks),
                "world_size": self.world_size,
                "missing_ranks": list(self.missing_ranks),
                "steps": len(self.step_numbers),
                "step_numbers": list(self.step_numbers),
                "step_ns": round(self.step_ns),
                "clock": [clock.to_dict() for clock in self.clocks],
                "straggler": self.straggler.to_dict(),
                "exposed_communication_share": {
                    str(one.rank): round(one.exposed_communication_share, 4) for one in self.per_rank
                },
                "groups": [group.to_dict() for group in self.groups],
                "per_rank": [one.to_dict() for one in self.per_rank],
                "balance": self.balance.to_dict(),
                "replay": {
                    "measured_step_ns": round(self.step_ns),
                    "replayed_step_ns": round(self.replayed_step_ns),
                    "error_pct": round(100 * (self.replayed_step_ns / self.step_ns - 1), 2) if self.step_ns else 0.0,
                },
                "health": to_builtins(self.health),
                "other_jobs": list(self.other_jobs),
            },
            "verdict": self.verdict.to_dict(),
        }

    @property
    def rank_table(self) -> pl.DataFrame:
        """One row for each rank."""
        return pl.DataFrame([one.to_dict() for one in self.per_rank])

    @property
    def collective_table(self) -> pl.DataFrame:
        """One row for each collective of each rank: times by the common clock, waiting and transfer."""
        arrivals, table = self.collectives.arrivals, self.collectives.table
        number = arrivals.collective
        rank = np.array(self.ranks)[arrivals.place]
        starts, ends = (gathered(self.outlines, self.collectives, name) for name in ("start_ns", "end_ns"))
        waits = np.empty(len(number))
        for place, one in enumerate(self.ranks):
            own = self.collectives.arrivals_of(place)
            waits[own] = self.waits.wait_ns[one][arrivals.row[own]]
        size = table.message_bytes[number]
        return pl.DataFrame(
            {
                "collective": number,
                "kind": table.kind[number].series(),
                "group": table.group[number].series(),
                "step": np.array(self.step_numbers)[table.step[number]],
                "rank": rank,
                "start_ns": np.rint(starts).astype(np.int64),
                "end_ns": np.rint(ends).astype(np.int64),
                "wait_ns": np.rint(waits).astype(np.int64),
                "message_bytes": pl.Series(size).set(pl.Series(size == NONE), None),
                "is_last": rank == self.waits.last[number],
            }
        )


def open_job(
    folder: str | Path,
    *,
    job: str | None = None,
    workers: int | None = None,
    cache: bool = True,
    engine: Engine = "pool",
) -> Job:
    """Open a folder of several ranks as one job, and find who is waited for.

    `folder` may be a URL that fsspec knows (`s3://…`), or one file: a trace that was merged from several ranks, or an
    nsys recording of several processes. `job` names one of several jobs or recordings of the folder
    (else the newest), `workers` is the number of processes that read, `cache=False` reads every file again, and
    `engine="ray"` reads on the Ray cluster of RAY_ADDRESS.

    >>> warpline.open_job("profile_traces/iteration_20").verdict.sentence
    """
    file = _single_file(folder)
    if file is not None:
        return _job_of_file(file, workers, cache)
    chosen, others = job_of_folder(folder, job)
    notes = []
    if others:
        message = f"the folder holds {several(len(others) + 1, 'recording')}; this is {chosen.name}"
        notes.append(HealthEntry("several-jobs", "info", message))
    for path in chosen.merged:
        message = f"{path.name} is left out: it holds several ranks merged"
        notes.append(HealthEntry("merged-ranks", "info", message))
    found = _job_of_files(chosen, notes, workers, cache, engine)
    return replace(found, other_jobs=tuple(other.name for other in others))


def _single_file(folder: str | Path) -> Path | None:
    """The file, if it is one, or the only profile of a folder."""
    if "://" in str(folder):
        return None
    path = Path(folder)
    files = profiles_in(path) if path.is_dir() else [path]
    return files[0] if len(files) == 1 else None


def _job_of_file(file: Path, workers: int | None, cache: bool) -> Job:
    """The job of one file with several ranks: a merged trace, or an nsys recording of several processes."""
    if may_be_merged(file):
        with split_by_rank(file) as parts:
            files = tuple(RankFile(path, rank) for rank, path in parts.items())
            if files:
                found = _job_of_files(JobFiles(file.name, files), (), workers, cache, "pool")
                return replace(found, files=dict.fromkeys(found.ranks, file))
    found_job = job_of_trace(open_trace(file, cache=cache))
    if found_job is None:
        raise CannotAnswer("one-rank", f"{file.name} holds one rank", "give the folder of all ranks")
    return found_job


def job_of_trace(trace: Trace) -> Job | None:
    """The job of an nsys recording of several processes or devices that communicate; None if it is none."""
    parts = ranks_of_trace(trace)
    if not parts:
        return None
    summaries = {rank: summarise(part) for rank, part in parts.items()}
    return replace(judge(trace.file.name, summaries), files=dict.fromkeys(parts, trace.file))


def _job_of_files(
    chosen: JobFiles, notes: Sequence[HealthEntry], workers: int | None, cache: bool, engine: Engine
) -> Job:
    read = read_ranks([file.place for file in chosen.files], workers, cache, engine)
    summaries, files, problems = _by_rank(chosen, read)
    found = judge(chosen.name, summaries, [*notes, *problems])
    node = slow_node(found.straggler, found.ranks, files)
    return replace(found, files=files, balance=replace(found.balance, node=node))


def _by_rank(
    job: JobFiles, read: Sequence[ReadRank]
) -> tuple[dict[int, RankSummary], dict[int, Path], list[HealthEntry]]:
    """The summaries and files by rank, and what was left out."""
    found: dict[int, RankSummary] = {}
    files: dict[int, Path] = {}
    notes = []
    for file, one in zip(job.files, read, strict=True):
        name = file.path.name
        if one.summary is None:
            notes.append(HealthEntry("unreadable-rank", "warning", f"{name} is left out: {one.problem}"))
            continue
        rank = one.summary.about.rank if one.summary.about.rank is not None else file.rank
        if rank is None:
            notes.append(
                HealthEntry("unknown-rank", "warning", f"{name} is left out: it does not say which rank it is")
            )
        elif rank in found:
            same = found[rank].about.file
            notes.append(HealthEntry("duplicate-rank", "warning", f"{name} is left out: {same} is rank {rank}, too"))
        elif not one.summary.about.gpu_operations:
            notes.append(HealthEntry("empty-rank", "warning", f"{name} is left out: it has no GPU operations"))
        else:
            found[rank], files[rank] = one.summary, file.path
            if one.summary.about.truncated:
                notes.append(
                    HealthEntry("truncated-rank", "warning", f"{name} is truncated: its last step is left out")
                )
    if len(found) < 2:
        why = "; ".join(note.message for note in notes[:3]) or "there is one rank only"
        if not found and {note.code for note in notes} in ({"empty-rank"}, {"empty-rank", "unknown-rank"}):
            raise CannotAnswer("cpu-ranks", "the ranks recorded no GPU operations", "look at one rank: --rank N")
        raise CannotAnswer("too-few-ranks", f"a job needs two ranks with GPU operations: {why}", "name one file")
    return found, files, notes


def judge(name: str, summaries: Mapping[int, RankSummary], notes: Sequence[HealthEntry] = ()) -> Job:
    """The job of these ranks."""
    recorded, more = common_timelines(summaries)
    health = [*notes, *more]
    plain = [outline(line) for line in recorded]
    named = named_by_others(plain)
    by_own_clock = separated_groups(named)
    collectives = match(by_own_clock)
    alone = sorted(set(recorded.ranks).difference(*collectives.connected)) if collectives else []
    alone = alone or unrelated(by_own_clock)
    if alone:
        message = f"{shown_ranks(alone)}: collectives cannot be matched with those of the other ranks, so left out"
        left_out = HealthEntry("unmatched-ranks", "warning", message)
        rest = {rank: one for rank, one in summaries.items() if rank not in alone}
        return judge(name, rest, [*notes, left_out])
    clocks = align(by_own_clock, collectives)
    timelines = recorded.corrected([clock.applied for clock in clocks])
    outlines = [clock.applied(one) for clock, one in zip(clocks, by_own_clock, strict=True)]
    waits = split(outlines, collectives)
    ranks = timelines.ranks
    sizes = [one.about.world_size or 0 for one in summaries.values()]
    known = (rank for group in collectives.table.group.words for rank in members_of(group))
    world = max(*sizes, max(known, default=0) + 1, max(ranks) + 1)
    missing = tuple(rank for rank in range(world) if rank not in ranks)
    borrowing = [one.rank for one, before in zip(named, plain, strict=True) if one is not before]
    begin_ns = min(float(one.begin_ns[0]) for one in outlines)
    step_ns = step_time(begin_ns, np.max([one.done_ns for one in outlines], axis=0))
    search = _search(timelines, outlines, collectives, waits, missing)
    health += _doubts_of_recording(missing, world, borrowing, search.unknown)
    health += _doubts_of_alignment(collectives, clocks)
    straggler = find_straggler(search, timelines, step_ns)
    straggler = replace(straggler, sentence=straggler_sentence(straggler, step_ns))
    # What the GPU had queued when the recording started is unknown, so the first of several steps does not count.
    alone_ns = {rank: float(own[min(1, len(own) - 1) :].mean()) for rank, own in search.alone_ns.items()}
    accounts = [(rank_time(line, waits, alone_ns[line.rank]), step_times(line, waits)) for line in timelines]
    per_rank = tuple(one for one, _ in accounts)
    per_step = tuple(tuple(steps) for _, steps in accounts)
    return Job(
        name=name,
        ranks=ranks,
        world_size=world,
        missing_ranks=missing,
        step_numbers=timelines.numbers,
        step_ns=step_ns,
        replayed_step_ns=search.base_ns,
        clocks=tuple(clocks),
        straggler=straggler,
        verdict=verdict_of(straggler, step_ns, per_rank, len(collectives), not missing),
        groups=group_times(collectives, waits, len(timelines.numbers), summaries),
        per_rank=per_rank,
        health=tuple(health),
        timelines=timelines,
        outlines=tuple(outlines),
        collectives=collectives,
        waits=waits,
        files={},
        devices={rank: summaries[rank].about.device for rank in ranks},
        per_step=per_step,
        balance=balance_of(per_rank, per_step, outlines, collectives, waits),
    )


class _AllPlaces(Struct, frozen=True):
    """Where the operations of each rank stand, one rank at a time."""

    timelines: Timelines
    latency_ns: float

    def __iter__(self) -> Iterator[Places]:
        return (Places(line, self.latency_ns) for line in self.timelines)


def _search(
    timelines: Timelines,
    outlines: Sequence[RankOutline],
    collectives: Collectives,
    waits: Waits,
    missing: Sequence[int],
) -> Search:
    """All ranks as programs that can be replayed together."""
    numbers = {one.rank: collectives.numbers_of(place, len(one.step)) for place, one in enumerate(outlines)}
    all_places = _AllPlaces(timelines, launch_latency(outlines))
    unknown = [one.rank for one in outlines if awaiting(one, numbers[one.rank], missing)]
    return Search(Recording(all_places, vote(all_places), numbers), collectives, waits, missing, unknown)


def _doubts_of_recording(
    missing: Sequence[int], world: int, borrowing: Sequence[int], unknown: Sequence[int]
) -> Iterator[HealthEntry]:
    """Ranks about which little is known: the groups of `borrowing` ranks are those that others recorded, and `unknown`
    ranks wait for ranks without a recording."""
    if borrowing:
        message = (
            f"{shown_ranks(borrowing)}: collectives without recorded arguments; their groups are those of other ranks "
            "that leave them at the same times"
        )
        yield HealthEntry("arguments-of-other-ranks", "info", message)
    if missing:
        message = (
            f"{len(missing)} of {several(world, 'rank')} have no usable recording ({shown_ranks(missing)}): waiting "
            "for one of them looks like slow transfer"
        )
        if unknown:
            message += f"; {shown_ranks(unknown)} cannot be judged: nobody else recorded some of their collectives"
        yield HealthEntry("missing-ranks", "warning", message)


def _doubts_of_alignment(collectives: Collectives, clocks: Sequence[Clock]) -> Iterator[HealthEntry]:
    """Collectives that tie the ranks together loosely or not at all, and clocks that were set."""
    if not collectives:
        message = "no collective was found on two ranks: clocks are not aligned, and waits are unknown"
        yield HealthEntry("no-collectives", "error", message)
    unnamed = int(collectives.table.group.where(lambda group: group.startswith(STREAM)).sum())
    if unnamed:
        message = (
            f"{several(unnamed, 'collective')} without recorded arguments: matched by stream and order; ranks that "
            "leave them together count as one group"
        )
        yield HealthEntry("no-collective-arguments", "warning", message)
    if len(collectives.connected) > 1:
        sets = "; ".join(shown_ranks(sorted(ranks)) for ranks in sorted(collectives.connected, key=min))
        message = f"no collective ties these ranks together, so their clocks are not aligned to each other: {sets}"
        yield HealthEntry("separate-clocks", "warning", message)
    stepped = [clock.rank for clock in clocks if clock.jumps]
    if stepped:
        message = f"the clock was set during the recording on {shown_ranks(stepped)}, which is corrected"
        yield HealthEntry("stepped-clock", "info", message)
