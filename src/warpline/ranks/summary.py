"""What matching and replay need of one rank: one table of events, small enough to keep all ranks of a job.

It is stored as one Parquet file beside the cache of traces, so that no rank is read twice.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from io import BytesIO

import msgspec
import numpy as np
import polars as pl
from msgspec import Struct

from warpline.analyses.breakdown import PRIORITY, activities_of
from warpline.analyses.device import trace_device
from warpline.analyses.idle.host_activity import LOADING
from warpline.analyses.recorded_collectives import recorded_collectives
from warpline.api_names import COPY, HOST_WAIT
from warpline.sources.cache_folder import opened_traces, writable_traces
from warpline.sources.cache_limit import make_room
from warpline.sources.private_files import (
    create_file,
    open_file,
    publish,
    temporary_folder,
)
from warpline.trace.arrays import NONE, Bools, Int64s
from warpline.trace.table import Names
from warpline.trace.trace import Trace

VERSION = 4
"""Increment this when a summary holds something else."""
UNKNOWN_LAUNCH_NS = 5_000
"""A GPU operation without a recorded launch counts as launched so long before its start."""
LONG_COPY_NS = 200_000
"""A copy call that takes longer blocked the CPU: the data was not in pinned memory."""
COMPUTE, COMM, WAIT, INPUT, STEP = "compute", "comm", "wait", "input", "step"
"""Kinds of events: GPU operations, collectives, calls that wait for the GPU, waiting for data, and steps."""

COLUMNS: dict[str, pl.DataType] = {
    "kind": pl.Categorical(),
    "name": pl.Categorical(),
    "op": pl.Categorical(),
    "stream": pl.Int64(),
    "launch_ns": pl.Int64(),
    "start_ns": pl.Int64(),
    "end_ns": pl.Int64(),
    "blocks": pl.Int64(),
    "group": pl.Categorical(),
    "collective": pl.Categorical(),
    "message_bytes": pl.Int64(),
    "sequence": pl.Int64(),
    "peer": pl.Int64(),
}
"""Columns of the events: times are ns since 1970 by the rank's own clock, `launch_ns` is when the CPU launched the
operation, `blocks` its grid, `group` the ranks of a collective's process group where known, `sequence` its number
within the group, and `peer` the other rank of a send or recv."""


class About(Struct, frozen=True):
    """Who a rank is, and what is wrong with its file."""

    file: str
    rank: int | None
    world_size: int | None
    device: str
    link_bytes_per_second: float | None
    """Peak of the link between the chips of a node, one direction."""
    truncated: bool
    source: str
    gpu_operations: int = 0
    process: int | None = None


class RankSummary(Struct, frozen=True):
    """One rank: who it is, and its events as a Parquet file, which is ten times smaller than the table."""

    about: About
    content: bytes

    def events(self) -> pl.DataFrame:
        """The events, GPU operations in launch order."""
        return pl.read_parquet(self.content).cast(COLUMNS)  # type: ignore[arg-type]

    @classmethod
    def of(cls, about: About, events: pl.DataFrame) -> RankSummary:
        """The summary of a rank with these events."""
        buffer = BytesIO()
        text = msgspec.json.encode(about).decode()
        events.write_parquet(buffer, metadata={"about": text, "version": str(VERSION)})
        return cls(about, buffer.getvalue())

    @classmethod
    def from_bytes(cls, content: bytes) -> RankSummary:
        """From a Parquet file; ValueError if it is not one of ours."""
        metadata = pl.read_parquet_metadata(content)
        if metadata.get("version") != str(VERSION):
            raise ValueError("a summary of another version")
        if pl.read_parquet(content).columns != list(COLUMNS):
            raise ValueError("a summary with other columns")
        return cls(msgspec.json.decode(metadata["about"], type=About), content)


def summarise(trace: Trace) -> RankSummary:
    """The summary of one rank's trace."""
    facts = trace.facts
    name, chip = trace_device(trace)
    link = chip.bandwidth.get("nvlink") if chip is not None else None
    about = About(
        trace.file.name,
        _number(facts.get("rank")),
        _number(facts.get("world_size")),
        name,
        link.value if link is not None else None,
        any(entry.code == "truncated-file" for entry in trace.health_entries),
        trace.source,
        len(trace.gpu),
    )
    epoch_ns = int(facts.get("epoch_ns", "0"))
    events = pl.concat([_gpu(trace), _host_waits(trace), _inputs(trace), _steps(trace)])
    times = ("launch_ns", "start_ns", "end_ns")
    return RankSummary.of(about, events.with_columns(pl.col(times) + epoch_ns))


def _number(text: str | None) -> int | None:
    """A rank or a number of ranks; one with more digits is damage."""
    return int(text) if text is not None and text.isdecimal() and len(text) < 7 else None


def _frame(kind: str, count: int, columns: Mapping[str, pl.Series | Int64s]) -> pl.DataFrame:
    """Events of one kind with these columns; the others are null."""
    given = {name: pl.Series(values).cast(COLUMNS[name]) for name, values in columns.items()}
    given["kind"] = pl.repeat(kind, count, dtype=COLUMNS["kind"], eager=True)
    return pl.DataFrame(
        {
            name: given.get(name, pl.Series([None]).cast(dtype).new_from_index(0, count))
            for name, dtype in COLUMNS.items()
        }
    )


def _gpu(trace: Trace) -> pl.DataFrame:
    gpu = trace.gpu
    launch = _launches(trace)
    order = np.lexsort((gpu.start_ns, launch))
    blocks = np.where(gpu.grid_x == NONE, 0, gpu.grid_x * np.maximum(gpu.grid_y, 1) * np.maximum(gpu.grid_z, 1))
    recorded = recorded_collectives(trace, np.flatnonzero(activities_of(gpu) == PRIORITY.index(COMM)))
    events = _frame(
        COMPUTE,
        len(gpu),
        {
            "name": gpu.name.series(),
            "op": trace.ops.name.at(gpu.op_id).series(),
            "stream": gpu.stream,
            "launch_ns": launch,
            "start_ns": gpu.start_ns,
            "end_ns": gpu.end_ns,
            "blocks": blocks,
        },
    )
    if recorded:
        rows = pl.DataFrame(
            [(COMM, one.group, one.kind, one.message_bytes, one.sequence, one.peer) for one in recorded.values()],
            schema={
                name: COLUMNS[name] for name in ("kind", "group", "collective", "message_bytes", "sequence", "peer")
            },
            orient="row",
        ).with_columns(row=pl.Series(list(recorded), dtype=pl.UInt32))
        events = events.with_row_index("row").update(rows, on="row").drop("row").cast(COLUMNS)  # type: ignore[arg-type]
    return events[order]


def _launches(trace: Trace) -> Int64s:
    """When each GPU operation was launched. In a call that takes longer than usual, that is near its end: the thread
    was interrupted, or waited, before the operation was submitted."""
    gpu, api = trace.gpu, trace.api
    calls = gpu.api_id[gpu.api_id != NONE]
    usual_ns = int(np.median((api.end_ns - api.start_ns)[calls])) if len(calls) else 0
    starts, ends = np.append(api.start_ns, 0)[gpu.api_id], np.append(api.end_ns, 0)[gpu.api_id]
    submitted = np.maximum(starts, np.minimum(ends, gpu.start_ns) - usual_ns)
    return np.where(gpu.api_id == NONE, gpu.start_ns - UNKNOWN_LAUNCH_NS, np.minimum(submitted, gpu.start_ns))


def _host_waits(trace: Trace) -> pl.DataFrame:
    """Calls in which a thread that launches waits for the GPU: synchronisation, and blocking copies to the host."""
    api, gpu = trace.api, trace.gpu
    launching = np.isin(api.thread, np.unique(api.thread[gpu.api_id[gpu.api_id != NONE]]))
    waits = api.name.like(HOST_WAIT)
    waits |= _calls_of_copies(trace, "DtoH")
    return _spans(WAIT, api.name, api.start_ns, api.end_ns, waits & launching)


def _inputs(trace: Trace) -> pl.DataFrame:
    """When the program waits for data: ranges and ops that load it, and copies to the device that block the CPU."""
    api, ranges, ops = trace.api, trace.ranges, trace.ops
    annotated = ranges.name.like(LOADING) & (ranges.end_ns != NONE) & ~ranges.style.equal("gpu")
    return pl.concat(
        [
            _spans(INPUT, ranges.name, ranges.start_ns, ranges.end_ns, annotated),
            _spans(INPUT, ops.name, ops.start_ns, ops.end_ns, ops.name.like(LOADING)),
            _spans(INPUT, api.name, api.start_ns, api.end_ns, _calls_of_copies(trace, "HtoD")),
        ]
    )


def _calls_of_copies(trace: Trace, kind: str) -> Bools:
    """Which API calls are long copies of this kind."""
    api, gpu = trace.api, trace.gpu
    copies = gpu.api_id[gpu.copy_kind.equal(kind) & (gpu.api_id != NONE)]
    chosen = np.zeros(len(api), bool)
    chosen[copies] = True
    return chosen & api.name.like(COPY) & (api.end_ns - api.start_ns > LONG_COPY_NS)


def _spans(kind: str, names: Names, starts: Int64s, ends: Int64s, chosen: Bools) -> pl.DataFrame:
    rows = np.flatnonzero(chosen)
    rows = rows[np.argsort(starts[rows], kind="stable")]
    name = names[rows].series()
    return _frame(
        kind, len(rows), {"name": name, "launch_ns": starts[rows], "start_ns": starts[rows], "end_ns": ends[rows]}
    )


def _steps(trace: Trace) -> pl.DataFrame:
    """The steps by their names; steps that warpline found in the GPU's work differ between ranks and are left out."""
    steps = trace.all_steps
    named = np.flatnonzero(np.isin(steps.found_by.astype(str), ("profiler_step", "range")))
    names = pl.Series(steps.name[named].tolist(), dtype=pl.String)
    starts, ends = steps.start_ns[named], steps.end_ns[named]
    return _frame(STEP, len(named), {"name": names, "launch_ns": starts, "start_ns": starts, "end_ns": ends})


def load_summary(key: str) -> RankSummary | None:
    """The stored summary of the file whose content has this key; None if there is none."""
    try:
        with opened_traces() as traces, open_file(_name(key), traces) as opened:
            return RankSummary.from_bytes(opened.read())
    except (OSError, ValueError, KeyError, msgspec.MsgspecError, pl.exceptions.PolarsError):
        return None


def store_summary(key: str, summary: RankSummary) -> None:
    """Store the summary; a folder that cannot be written is no error."""
    content = summary.content
    with contextlib.suppress(OSError):
        folder = writable_traces()
        make_room(len(content))
        with temporary_folder(folder) as temporary:
            part = temporary / _name(key)
            with create_file(part) as opened:
                opened.write(content)
            publish(part, folder / _name(key))


def _name(key: str) -> str:
    return f"{key}.rank{VERSION}.parquet"
