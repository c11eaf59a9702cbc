"""Collectives without a timeline as sections: who is late, each communicator, each rank."""

from __future__ import annotations

from warpline.ranks.inspector_logs import InspectedJob
from warpline.reports.sections import Column, Report, Section, Table, Text, health_notes
from warpline.units import several

BRIEF_RANKS, BRIEF_GROUPS = 12, 8
INSPECTOR = "NCCL Inspector"
NO_TIMELINE = (
    "The logs have no timeline. Why a rank is late, a recording of every rank with torch.profiler or nsys says: "
    "warpline FOLDER."
)
_GROUPS = (
    Column("group", "communicator", key=True),
    Column("collective", "collective"),
    Column("ranks", "ranks", "count"),
    Column("collectives", "count", "count"),
    Column("transfer_ns", "transfer", "ns"),
    Column("wait_ns", "waiting", "ns"),
    Column("bus_bandwidth", "bus bandwidth", "bytes_per_second"),
)
_RANKS = (
    Column("rank", "rank", "number", key=True),
    Column("delay_ns", "held others up", "ns"),
    Column("times_last", "last at", "count"),
    Column("time_ns", "in collectives", "ns"),
    Column("transfer_ns", "transfer", "ns"),
    Column("wait_ns", "waits for others", "ns"),
    Column("unmatched_ns", "not split", "ns", priority=2),
    Column("host", "host", priority=3),
)


def inspected_report(job: InspectedJob, full: bool = False, source: str = INSPECTOR, rest: str = NO_TIMELINE) -> Report:
    """The first screen, or all communicators and ranks; `rest` says what shows why a rank is late."""
    title = f"{job.name} · {source} · {len(job.per_rank)} of {several(job.world_size, 'rank')}"
    ranks = sorted(job.per_rank, key=lambda one: (-one.delay_ns, one.rank))
    shown = ranks if full else ranks[:BRIEF_RANKS]
    groups = job.groups if full else job.groups[:BRIEF_GROUPS]
    rank_rows = tuple((str(one.rank), *(getattr(one, column.name) for column in _RANKS[1:])) for one in shown)
    group_rows = tuple(tuple(getattr(one, column.name) for column in _GROUPS) for one in groups)
    return Report(
        title,
        (
            *([Section("health", "Logs", (health_notes(job.health),))] if job.health else []),
            Section("verdict", "Verdict", (Text(job.sentence, "strong"), Text(rest, "quiet")), is_lead=True),
            Section("groups", "Communicators", (_table(_GROUPS, group_rows, len(job.groups)),)),
            Section("ranks", "Ranks, by who holds others up", (_table(_RANKS, rank_rows, len(ranks)),)),
        ),
    )


def _table(columns: tuple[Column, ...], rows: tuple[tuple[str | int | float | None, ...], ...], every: int) -> Table:
    hidden = every - len(rows)
    return Table(columns, rows, hidden, f"{several(hidden, 'more row')}: -v" if hidden else "")
