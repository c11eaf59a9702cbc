"""A job of many ranks as sections: the verdict, the ranks by who is waited for, the process groups."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from warpline.ranks.groups import GroupTime
from warpline.ranks.job import Job
from warpline.ranks.words import shown_ranks
from warpline.replay.replay import most_take
from warpline.reports.sections import Column, Command, Report, Section, Table, Text, health_notes, next_section
from warpline.sources.health import HealthEntry
from warpline.sources.stdin import as_shell_word, as_typed
from warpline.trace.arrays import NONE
from warpline.units import duration, several
from warpline.work.collective import bus_factor

BRIEF_RANKS, BRIEF_GROUPS = 12, 6
LEFT_OUT = " is left out: "
MAX_ALIKE = 3
"""From more files on that are left out for one reason, the first stands for all."""
LISTED_COLLECTIVES = 20
_RANKS = (
    Column("rank", "rank", "number", key=True),
    Column("blame_ns", "held others up", "ns"),
    Column("times_last", "last at", "count", priority=2),
    Column("step_ns", "step", "ns", priority=3),
    Column("compute_ns", "compute", "ns"),
    Column("exposed_transfer_ns", "transfer", "ns"),
    Column("exposed_wait_ns", "waits for others", "ns"),
    Column("idle_ns", "idle", "ns"),
    Column("cause", "most is", priority=2),
    Column("offset_ns", "clock", "change_ns", priority=4),
)
_OWN = (
    Column("rank", "rank", "number", key=True),
    Column("alone_ns", "step alone", "ns"),
    Column("diagnosis", "its own time"),
)
_SEEN_TOGETHER = ("pause", "link", "unknown")
"""Reasons of which the file of one rank alone says nothing more."""
_MOST = {
    "kernel": "compute",
    "comm": "transfer",
    "wait": "waiting",
    "input": "input",
    "dispatch": "launching",
    "unknown": "unknown",
}
_GROUPS = (
    Column("group", "group", key=True),
    Column("size", "ranks", "count"),
    Column("collectives", "collectives", "count"),
    Column("transfer_ns", "transfer", "ns"),
    Column("wait_ns", "waiting", "ns"),
    Column("bus_bandwidth", "bus bandwidth", "bytes_per_second"),
    Column("link_share", "of peak", "share", priority=2),
    Column("link", "link", priority=2),
)

_COLLECTIVES = (
    Column("kind", "collective", key=True),
    Column("step", "step", "number", priority=2),
    Column("at_ns", "last arrival at", "ns", priority=3),
    Column("group", "group"),
    Column("message_bytes", "message", "bytes"),
    Column("last", "last rank", "number"),
    Column("wait_ns", "longest wait", "ns", has_bars=True),
    Column("transfer_ns", "transfer", "ns"),
    Column("bus_bandwidth", "bus bandwidth", "bytes_per_second", priority=2),
    Column("link_share", "of peak", "share", priority=3),
)


def _of_several(job: Job) -> str:
    """What the length of a step is of where most steps take another time, as prefill and decoding do."""
    lengths = np.array([step.length_ns for step in job.per_step[0]], np.float64)
    return "" if len(lengths) < 2 or most_take(lengths, job.step_ns) else " on average"


def report(job: Job, full: bool = False, folder: Path | None = None) -> Report:
    """The first screen of a job, or all its ranks and groups; `folder` is where it lies."""
    ranks = f"{len(job.ranks)} of {job.world_size} ranks" if job.missing_ranks else several(len(job.ranks), "rank")
    length = f"{several(len(job.step_numbers), 'step')} of {duration(job.step_ns)}{_of_several(job)}"
    title = f"{job.name} · {ranks} · {length}"
    sections = [
        Section("verdict", "Verdict", tuple(_lead(job)), is_lead=True),
        Section("ranks", "Ranks, per step, by who holds others up", (_ranks(job, full),)),
        Section("groups", "Process groups, per step", (_groups(job, full),)),
        Section("own", "Each rank by itself, without waiting for others", (_own(job, full),)),
        next_section(_next(job, full, folder)),
    ]
    if full and job.collectives:
        longest = Section("collectives", "Collectives with the longest waits", (_collectives(job),))
        sections.insert(-1, longest)
    if job.health:
        entries = job.health if full else _folded(job.health)
        sections.insert(0, Section("health", "Recordings", (health_notes(entries),)))
    return Report(title, tuple(sections))


def _folded(health: Sequence[HealthEntry]) -> Iterator[HealthEntry]:
    """Many files that are left out for one reason as one entry, with the first of them."""
    by_reason: dict[tuple[str, str], list[HealthEntry]] = defaultdict(list)
    for number, entry in enumerate(health):
        file, _, reason = entry.message.partition(LEFT_OUT)
        # Names of files and numbers differ, words do not.
        kind = " ".join(filter(str.isalpha, reason.split())) or f"{file} {number}"
        by_reason[entry.code, kind].append(entry)
    for same in by_reason.values():
        if len(same) <= MAX_ALIKE:
            yield from same
        else:
            message = f"{len(same)} files are left out; {same[0].message}, and likewise {len(same) - 1} more (-v)"
            yield replace(same[0], message=message)


def _lead(job: Job) -> Iterator[Text]:
    yield Text(job.verdict.sentence, "strong")
    if job.verdict.how:
        yield Text(job.verdict.how)
    yield from map(Text, job.balance.sentences)
    yield Text(_sure(job), "quiet")


def _own(job: Job, full: bool) -> Table:
    shown = job.by_blame if full else job.by_blame[:BRIEF_RANKS]
    rows = tuple((str(one.rank), one.alone_ns, one.diagnosis) for one in shown)
    hidden = len(job.per_rank) - len(shown)
    return Table(_OWN, rows, hidden, f"{several(hidden, 'more rank')}: -v" if hidden else "")


def _sure(job: Job) -> str:
    """How far the numbers can be trusted."""
    doubt_ns = max(clock.uncertainty_ns for clock in job.clocks)
    off = abs(job.replayed_step_ns / job.step_ns - 1) if job.step_ns else 0.0
    return (
        f"{several(len(job.collectives), 'collective')} matched, clocks aligned to ±{duration(doubt_ns)}, "
        f"joint replay {100 * off:.1f} % off the recording."
        if job.collectives
        else "No collective was matched."
    )


def _ranks(job: Job, full: bool) -> Table:
    offsets = {clock.rank: clock.offset_ns for clock in job.clocks}
    shown = job.by_blame if full else job.by_blame[:BRIEF_RANKS]
    rows = tuple(
        (
            str(one.rank),
            one.blame_ns,
            one.times_last,
            one.step_ns,
            one.compute_ns,
            one.exposed_transfer_ns,
            one.exposed_wait_ns,
            one.idle_ns,
            _MOST[one.cause],
            offsets[one.rank],
        )
        for one in shown
    )
    hidden = len(job.per_rank) - len(shown)
    return Table(_RANKS, rows, hidden, f"{several(hidden, 'more rank')}: -v" if hidden else "")


def _groups(job: Job, full: bool) -> Table:
    shown = job.groups if full else job.groups[:BRIEF_GROUPS]
    rows = tuple(
        (
            shown_ranks(group.ranks),
            len(group.ranks),
            group.collectives,
            group.transfer_ns,
            group.wait_ns,
            group.bus_bandwidth,
            group.bus_bandwidth / group.link_peak if group.bus_bandwidth and group.link_peak else None,
            _link(group),
        )
        for group in shown
    )
    hidden = len(job.groups) - len(shown)
    return Table(_GROUPS, rows, hidden, f"{several(hidden, 'more group')}: -v" if hidden else "")


def _collectives(job: Job) -> Table:
    outlines = {one.rank: one for one in job.outlines}
    zero_ns = min(float(one.begin_ns[1]) for one in job.outlines)
    waits = job.waits
    peaks = {group.ranks: group.link_peak for group in job.groups}
    rows = []
    for number in np.argsort(-waits.longest_ns, kind="stable")[:LISTED_COLLECTIVES].tolist():
        one = job.collectives[number]
        speed = one.message_bytes * bus_factor(one.kind, len(one.members)) / float(waits.transfer_ns[number]) * 1e9
        peak = peaks.get(tuple(sorted(one.members)))
        rows.append(
            (
                one.kind,
                str(job.step_numbers[one.step]),
                max(float(outlines[rank].start_ns[row]) for rank, row in one.rows.items()) - zero_ns,
                shown_ranks(one.members),
                one.message_bytes if one.message_bytes != NONE else None,
                str(waits.last[number]),
                float(waits.longest_ns[number]),
                float(waits.transfer_ns[number]),
                speed if one.message_bytes > 0 else None,
                speed / peak if one.message_bytes > 0 and peak else None,
            )
        )
    hidden = max(len(job.collectives) - LISTED_COLLECTIVES, 0)
    note = f"{hidden:,} more: collective_table of warpline.open_job" if hidden else ""
    return Table(_COLLECTIVES, tuple(rows), hidden, note)


def _link(group: GroupTime) -> str:
    """The link and its peak."""
    if group.link_peak is None:
        return "between nodes, peak unknown" if group.link == "network" else group.link
    peak = f"{group.link_peak / 1e9:.0f} GB/s"
    return f"between nodes, {peak} in a DGX" if group.link == "network" else f"{group.link}, peak {peak}"


def _next(job: Job, full: bool, folder: Path | None) -> Iterator[Command]:
    ranks = job.straggler.ranks or tuple(one.rank for one in job.by_blame[:1])
    for rank in ranks[:2] if job.straggler.reason not in _SEEN_TOGETHER else ():
        if rank in job.files:
            is_alone = list(job.files.values()).count(job.files[rank]) == 1
            chosen = [] if is_alone else ["--rank", str(rank)]
            command = shlex.join(["warpline", as_typed(job.files[rank]), *chosen])
            yield Command(command, f"what rank {rank} does with its own time")
    if folder is None:
        return
    place = as_shell_word(folder)
    yield Command(f"warpline report {place} -o job.html", "these ranks on one clock, and a map of ranks and steps")
    if not full:
        yield Command(f"warpline diagnose {place} -v", "all ranks and groups, and the longest waits")
    for other in job.other_jobs[-2:]:
        yield Command(f"warpline diagnose {place} --job {shlex.quote(other)}", "another recording of this folder")
