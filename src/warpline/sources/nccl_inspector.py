"""A log of NCCL Inspector: one JSON object a line for each collective, send and receive, one file a process.

It has the time that a rank's kernel took, which includes waiting for the other ranks, and not when: it has no timeline.
Since format 4.4 a line without a header belongs to the communicator of the last header.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import polars as pl
from msgspec import Meta, Struct

from warpline.errors import UnreadableFile
from warpline.sources.unpack import Unpacked

COLUMNS: dict[str, pl.DataType] = {
    "group": pl.String(),
    "group_name": pl.String(),
    "group_size": pl.Int64(),
    "nodes": pl.Int64(),
    "rank": pl.Int64(),
    "host": pl.String(),
    "process": pl.Int64(),
    "collective": pl.String(),
    "sequence": pl.Int64(),
    "message_bytes": pl.Int64(),
    "time_ns": pl.Int64(),
    "timed_by": pl.String(),
}
"""`group` is the communicator's id, `rank` the rank within it, `timed_by` is kernel_gpu, kernel_cpu, collective_cpu or
unknown."""
Count = Annotated[int, Meta(ge=0, lt=1 << 50)]


class InspectorHeader(Struct, frozen=True):
    """A communicator."""

    id: str
    rank: Count
    n_ranks: Count
    nnodes: Count = 0
    comm_name: str = ""


class Metadata(Struct, frozen=True):
    """A process."""

    hostname: str = ""
    pid: Count = 0


class Performance(Struct, frozen=True):
    """One collective of one rank."""

    coll: str
    coll_sn: Count
    coll_msg_size_bytes: Count
    coll_exec_time_us: Annotated[float, Meta(ge=0, lt=1e12)]
    coll_timing_source: str = "unknown"


class PairPerformance(Struct, frozen=True):
    """One send or receive of one rank, which each rank numbers for itself."""

    p2p: str
    p2p_sn: Count
    p2p_msg_size_bytes: Count
    p2p_exec_time_us: Annotated[float, Meta(ge=0, lt=1e12)]
    p2p_timing_source: str = "unknown"


class Dropped(Struct, frozen=True):
    """Records that the plug-in could not keep."""

    coll_dropped_total: Count = 0
    p2p_dropped_total: Count = 0


class InspectorLine(Struct, frozen=True):
    """One line; those of proxies have other keys."""

    header: InspectorHeader | None = None
    metadata: Metadata | None = None
    coll_perf: Performance | None = None
    p2p_perf: PairPerformance | None = None
    dump_stats: Dropped | None = None


class InspectorLog(Struct, frozen=True):
    """The collectives of one process, and what is missing."""

    records: pl.DataFrame
    damaged_lines: int
    dropped: int
    """Collectives that the plug-in says it dropped."""


def read_inspector_log(path: Path) -> InspectorLog:
    """Read a log, plain or packed; lines that cannot be read are counted."""
    decoder = msgspec.json.Decoder(InspectorLine)
    header, metadata = None, Metadata()
    rows: list[tuple[Any, ...]] = []
    damaged, dropped = 0, {}
    for raw in _lines(path):
        try:
            line = decoder.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError):
            damaged += 1
            continue
        header, metadata = line.header or header, line.metadata or metadata
        if line.dump_stats is not None and header is not None:
            lost = line.dump_stats
            dropped[header.id, header.rank] = lost.coll_dropped_total + lost.p2p_dropped_total
        if line.coll_perf is not None and header is not None:
            rows.append(_row(header, metadata, line.coll_perf))
        if line.p2p_perf is not None and header is not None:
            rows.append(_row(header, metadata, line.p2p_perf))
    if not rows:
        raise UnreadableFile(
            "empty-trace",
            f"{path} is a log of NCCL Inspector without a collective ({damaged} lines cannot be read)",
            "record it again; NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=500 writes while the program runs",
        )
    return InspectorLog(pl.DataFrame(rows, schema=COLUMNS, orient="row"), damaged, sum(dropped.values()))


def _lines(path: Path) -> Iterator[bytes]:
    rest = b""
    for piece in Unpacked(path):
        *whole, rest = (rest + piece).split(b"\n")
        yield from (line for line in whole if line.strip())
    if rest.strip():
        yield rest


def _row(header: InspectorHeader, metadata: Metadata, timed: Performance | PairPerformance) -> tuple[Any, ...]:
    what, number, size, time_us, timed_by = msgspec.structs.astuple(timed)
    return (
        *(header.id, header.comm_name if header.comm_name != "unknown" else "", header.n_ranks, header.nnodes),
        *(header.rank, metadata.hostname, metadata.pid),
        *(what, number, size, round(time_us * 1000), timed_by),
    )
