"""Who is late for collectives, from logs of NCCL Inspector alone: no timeline, so no steps, no compute and no fixes.

A collective that synchronises ends on all its ranks at once, so the rank with the shortest time arrived last: its time
is the transfer, and what the others took longer is waiting for it. The two sum to every rank's time.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl
from msgspec import Struct, to_builtins

from warpline.errors import CannotAnswer
from warpline.ranks.match import SYNCHRONISING
from warpline.sources.detect import detect
from warpline.sources.health import HealthEntry
from warpline.sources.kinds import NCCL_INSPECTOR
from warpline.sources.nccl_inspector import InspectorLog, read_inspector_log
from warpline.trace.open import profiles_in
from warpline.units import duration, several, share
from warpline.work.collective import bus_factor, kind_of

SCHEMA = "warpline.collectives/1"
LOG_SUFFIXES = (".log", ".jsonl", ".log.gz", ".log.xz", ".jsonl.gz", ".jsonl.xz")
MIN_WAIT_SHARE = 0.1
"""A rank is named if the others wait for it for so much of the time in collectives."""
ON_GLOO = "gloo_thread"
FROM_ARRIVAL = ("kernel_gpu", "kernel_cpu", ON_GLOO)
"""Sources of a time that begins when the rank's kernel, or gloo's thread, begins; others begin when the CPU enqueues
it."""
PER_RANK_SIZE = ("all_gather", "reduce_scatter")
"""NCCL Inspector gives the size of one rank's part of these."""
KEY = ["group", "kind", "sequence"]


class GroupCollectives(Struct, frozen=True):
    """The collectives of one kind in one communicator."""

    group: str
    """Its name, else its id."""
    collective: str
    ranks: int
    recorded_ranks: int
    nodes: int
    collectives: int
    matched: int
    """Of these, how many were recorded by two ranks or more, and can be split."""
    transfer_ns: int
    """Sum over the matched ones."""
    wait_ns: int
    """Mean over the ranks, summed over the matched ones."""
    bus_bandwidth: float | None
    """Bytes per second of the transfer, as NCCL's tests count them."""


class RankWait(Struct, frozen=True):
    """One rank; `time_ns` is the sum of the three parts."""

    rank: int
    host: str
    process: int
    collectives: int
    time_ns: int
    transfer_ns: int
    wait_ns: int
    unmatched_ns: int
    """In collectives that no other rank recorded, or that do not synchronise."""
    times_last: int
    delay_ns: int
    """How much longer the others took because it came last."""


class InspectedJob(Struct, frozen=True):
    """What the logs of one job say."""

    name: str
    sentence: str
    late_rank: int | None
    world_size: int
    groups: tuple[GroupCollectives, ...]
    per_rank: tuple[RankWait, ...]
    health: tuple[HealthEntry, ...]

    def to_dict(self) -> dict[str, Any]:
        """The answer as JSON."""
        return {"schema": SCHEMA, **to_builtins(self)}


def inspector_logs(path: Path) -> list[Path]:
    """The logs of NCCL Inspector at a path: the file, or those of a folder that has no profile."""
    if path.is_file():
        return [path] if detect(path) is NCCL_INSPECTOR else []
    if not path.is_dir() or profiles_in(path):
        return []
    files = sorted(file for file in path.rglob("*") if file.name.endswith(LOG_SUFFIXES) and file.is_file())
    return [file for file in files if file.stat().st_size and detect(file) is NCCL_INSPECTOR]


def inspect(name: str, files: Iterable[Path]) -> InspectedJob:
    """Read the logs of one job and join their ranks."""
    return join_ranks(name, [read_inspector_log(file) for file in files])


def join_ranks(name: str, logs: list[InspectorLog]) -> InspectedJob:
    """The answer from the logs of all processes."""
    read = pl.concat([log.records for log in logs])
    records = read.unique(["group", "collective", "sequence", "rank"], keep="first", maintain_order=True)
    records = records.with_columns(_kinds(records), _world_ranks(records))
    split = _split(records)
    world = int(records["group_size"].max() or 0)  # type: ignore[arg-type]
    per_rank = tuple(_ranks(split))
    late, sentence = _verdict(split, per_rank)
    health = tuple(_health(logs, len(read) - len(records), split, world))
    return InspectedJob(name, sentence, late, world, tuple(_groups(split)), per_rank, health)


def _kinds(records: pl.DataFrame) -> pl.Expr:
    names = records["collective"].unique().to_list()
    kinds = {name: kind_of(name.replace("2", "To")) or name.lower() for name in names}
    return pl.col("collective").replace_strict(kinds, return_dtype=pl.String).alias("kind")


def _world_ranks(records: pl.DataFrame) -> pl.Expr:
    """The rank of each process in the largest communicator, by which it is named in all of them."""
    largest = records.sort("group_size", descending=True, maintain_order=True)["group"][0]
    members = records.filter(pl.col("group") == largest).unique(["host", "process", "rank"])
    owner = pl.format("{}:{}", "host", "process")
    if members.select(owner.n_unique()).item() < len(members):
        raise CannotAnswer(
            "several-ranks-a-process",
            "a process drives several GPUs: its log does not say which rank is which in two communicators",
            "run one process for each GPU",
        )
    known = dict(zip(members.select(owner).to_series(), members["rank"], strict=True))
    others = records.select(owner.unique(maintain_order=True)).to_series()
    unnamed = [one for one in others if one not in known]
    known |= {one: int(records["group_size"].max() or 0) + place for place, one in enumerate(unnamed)}  # type: ignore[arg-type]
    return owner.replace_strict(known, return_dtype=pl.Int64).alias("world_rank")


def _split(records: pl.DataFrame) -> pl.DataFrame:
    """Each record with `transfer_ns` and `wait_ns`, null where it cannot be split, and `delay_ns` for the last rank."""
    can = pl.col("kind").is_in(SYNCHRONISING) & pl.col("timed_by").is_in(FROM_ARRIVAL)
    times = pl.col("time_ns")
    whole = (
        records.filter(can)
        .group_by(KEY)
        .agg(
            times.min().alias("transfer_ns"),
            times.sort().get(1, null_on_oob=True).alias("next_ns"),
            times.max().alias("longest_ns"),
            pl.len().alias("arrived"),
        )
        .filter(pl.col("arrived") > 1)
    )
    joined = records.join(whole, on=KEY, how="left", maintain_order="left")
    matched = can & pl.col("transfer_ns").is_not_null()
    # Times are whole microseconds: of ranks that arrive together none is the last.
    is_last = matched & (times == pl.col("transfer_ns")) & (pl.col("next_ns") > pl.col("transfer_ns"))
    return joined.with_columns(
        pl.when(matched).then("transfer_ns").alias("transfer_ns"),
        pl.when(matched).then(times - pl.col("transfer_ns")).alias("wait_ns"),
        pl.when(is_last).then(pl.col("next_ns") - pl.col("transfer_ns")).alias("delay_ns"),
    )


def _ranks(split: pl.DataFrame) -> Iterable[RankWait]:
    table = split.group_by("world_rank").agg(
        pl.col("host", "process").first(),
        pl.len().alias("collectives"),
        pl.col("time_ns", "transfer_ns", "wait_ns", "delay_ns").sum(),
        pl.col("delay_ns").count().alias("times_last"),
    )
    for row in table.sort("world_rank").iter_rows(named=True):
        rest = row["time_ns"] - row["transfer_ns"] - row["wait_ns"]
        yield RankWait(
            *(row["world_rank"], row["host"], row["process"], row["collectives"]),
            *(row["time_ns"], row["transfer_ns"], row["wait_ns"], rest, row["times_last"], row["delay_ns"]),
        )


def _groups(split: pl.DataFrame) -> list[GroupCollectives]:
    found = []
    for _, part in split.group_by(["group", "kind"], maintain_order=True):
        first = part.row(0, named=True)
        once = part.unique(KEY, keep="first", maintain_order=True)
        matched = part.drop_nulls("transfer_ns").unique(KEY, keep="first", maintain_order=True)
        transfer_ns, ranks = int(matched["transfer_ns"].sum()), first["group_size"]
        parts = ranks if first["kind"] in PER_RANK_SIZE else 1
        moved = float(matched["message_bytes"].sum()) * parts * bus_factor(first["kind"], ranks)
        found.append(
            GroupCollectives(
                *(first["group_name"] or first["group"], first["kind"], ranks, part["rank"].n_unique()),
                *(first["nodes"], len(once), len(matched), transfer_ns),
                round(float(part["wait_ns"].sum()) / part["rank"].n_unique()),
                moved / transfer_ns * 1e9 if moved and transfer_ns else None,
            )
        )
    return sorted(found, key=lambda one: -(one.transfer_ns + one.wait_ns))


def _verdict(split: pl.DataFrame, ranks: tuple[RankWait, ...]) -> tuple[int | None, str]:
    matched = split.drop_nulls("transfer_ns").unique(KEY)
    if not len(matched):
        why = "only one rank has a log" if len(ranks) < 2 else "no synchronising collective was recorded by two ranks"
        return None, f"Who is late is unknown: {why}."
    longest_ns = int(matched["longest_ns"].sum())
    count = several(len(matched), "collective")
    latest = max(ranks, key=lambda one: one.delay_ns)
    if latest.delay_ns >= MIN_WAIT_SHARE * longest_ns:
        return latest.rank, (
            f"Rank {latest.rank} is waited for: it arrives last at {latest.times_last:,} of {count}, and without that "
            f"these would take {duration(longest_ns - latest.delay_ns)} instead of {duration(longest_ns)}."
        )
    waited_ns = longest_ns - int(matched["transfer_ns"].sum())
    waited = share(waited_ns, longest_ns)
    if waited_ns >= MIN_WAIT_SHARE * longest_ns:
        return None, (
            f"Ranks arrive late by turns: up to {waited} of the {duration(longest_ns)} in {count} is waiting, and no "
            "rank alone costs the others a tenth."
        )
    return None, f"No rank is waited for: of the {duration(longest_ns)} in {count}, at most {waited} is waiting."


def _health(logs: list[InspectorLog], repeated: int, split: pl.DataFrame, world: int) -> Iterable[HealthEntry]:
    if damaged := sum(log.damaged_lines for log in logs):
        yield HealthEntry("damaged-lines", "warning", f"{several(damaged, 'line')} cannot be read.")
    if dropped := sum(log.dropped for log in logs):
        message = f"NCCL Inspector dropped {several(dropped, 'record')}: it was asked to write too rarely."
        yield HealthEntry("dropped-collectives", "warning", message)
    if repeated:
        message = f"{several(repeated, 'record')} of the same rank and number are left out: two runs in one folder?"
        yield HealthEntry("repeated-collectives", "warning", message)
    present = split.filter(pl.col("group_size") == world)["rank"].n_unique()
    if present < world:
        message = f"{world - present} of {several(world, 'rank')} have no log: waiting for them looks like transfer."
        yield HealthEntry("missing-logs", "warning", message)
    by_cpu = int((~split["timed_by"].is_in(FROM_ARRIVAL)).sum())
    if by_cpu:
        message = f"{several(by_cpu, 'record')} with a time from the CPU's call, not of the kernel, cannot be split."
        yield HealthEntry("cpu-timed", "info", message)
