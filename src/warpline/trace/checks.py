"""Health of a linked trace: what is missing, impossible or doubtful in it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from warpline.api_names import BEGIN_CAPTURE, END_CAPTURE, GRAPH_LAUNCH, LAUNCH
from warpline.intervals import union
from warpline.sources.health import HealthEntry, Severity
from warpline.trace.arrays import NONE, Bools, Int64s, combinations, grouped, integers
from warpline.trace.link import Tables
from warpline.trace.names import MIGRATION, is_migration, named, rows_like
from warpline.units import duration, share

NOTABLE_SHARE = 0.01
"""Below this share of the GPU time or of the calls, an entry is information, not a warning."""
ZERO_FLOOD_SHARE = 0.05
ZERO_FLOOD_COUNT = 10
SKEW_NS = 1_000
"""A kernel that starts this long before its launch shows that the host and device clocks disagree."""
FEWEST_EVENTS = 10
"""Fewer events of the CPU do not show how long a recording took: one launch is over before its kernel begins."""
LONG_GAP_SHARE = 0.5
LONG_GAP_NS = 60_000_000_000
NO_NUMBER = int(np.iinfo(np.int64).min)


def check(tables: Tables) -> list[HealthEntry]:
    """Every health entry of the linked tables, the worst first within each check."""
    checks = (
        _gpu_work,
        _unlinked_work,
        _unanswered_launches,
        _stream_overlap,
        _durations,
        _clocks,
        _shapes,
        _graphs,
    )
    return [entry for part in checks for entry in part(tables)]


def check_steps(tables: Tables) -> list[HealthEntry]:
    """Steps in which the device is idle throughout, and which launch nothing that runs later."""
    steps, gpu = tables["steps"], tables["gpu"]
    if not len(steps) or not len(gpu):
        return []
    spans = union(integers(gpu["start_ns"]), integers(gpu["end_ns"]))
    starts, ends = integers(steps["start_ns"]), integers(steps["end_ns"])
    busy = np.searchsorted(spans.ends, starts, side="right") < np.searchsorted(spans.starts, ends, side="left")
    calls = gpu["api_id"].drop_nulls().unique()
    launches = np.sort(integers(tables["api"]["start_ns"].gather(calls)))
    launching = np.searchsorted(launches, starts) < np.searchsorted(launches, ends)
    empty_steps = steps["index"].to_numpy()[~busy & ~launching]
    if not len(empty_steps):
        return []
    which = ", ".join(str(step) for step in empty_steps[:5]) + (" …" if len(empty_steps) > 5 else "")
    return [
        HealthEntry(
            "empty-steps",
            "warning",
            f"{len(empty_steps)} of {len(steps)} steps have no GPU operations (step {which}): "
            "the profiler had not started on the device, or the step was detected wrongly.",
        )
    ]


def _gpu_work(tables: Tables) -> list[HealthEntry]:
    if len(tables["gpu"]):
        return []
    if not any(len(tables[name]) for name in ("api", "ops", "ranges", "python", "osrt")):
        return [HealthEntry("empty-trace", "error", "The file contains no events.")]
    launches = int(rows_like(tables["api"], LAUNCH).sum())
    if launches:
        message = f"No GPU operations are recorded for {launches:,} launches: the profiler lost or did not flush them."
    elif len(tables["api"]):
        message = f"No GPU operations are recorded: {len(tables['api']):,} CUDA calls were made, but no launches."
    else:
        message = (
            "No GPU operations or CUDA calls are recorded: the program did not use a GPU, or only the CPU was profiled."
        )
    return [HealthEntry("no-gpu-work", "error" if launches else "warning", message)]


def _unlinked_work(tables: Tables) -> list[HealthEntry]:
    gpu, api = tables["gpu"], tables["api"]
    orphans = gpu.filter(pl.col("api_id").is_null(), ~is_migration())
    if not len(orphans) or not len(gpu):
        return []
    busy = union(integers(gpu["start_ns"]), integers(gpu["end_ns"])).total_ns()
    lost = union(integers(orphans["start_ns"]), integers(orphans["end_ns"])).total_ns()
    severity = _severity(lost, busy)
    if not len(api):
        return [
            HealthEntry(
                "no-launches",
                "warning",
                f"The file has no CUDA calls: none of its {len(gpu):,} GPU operations can be linked to a launch.",
            )
        ]
    # Correlation ids count up, so an id below every recorded call's belongs to a call made before recording.
    first_recorded = api["correlation"].filter(api["correlation"] > 0).min()
    early = orphans.filter(pl.col("correlation") < first_recorded) if first_recorded is not None else orphans.head(0)
    rest = len(orphans) - len(early)
    entries = []
    if len(early):
        until = int(early["end_ns"].max()) - int(gpu["start_ns"].min())  # type: ignore[arg-type]
        entries.append(
            HealthEntry(
                "profiler-start-skew",
                "info",
                f"Operations launched before recording began: {len(early):,}, all in the first {duration(until)}.",
            )
        )
    entries.append(
        HealthEntry(
            "work-without-launch",
            severity,
            f"{len(orphans):,} of {len(gpu):,} GPU operations ({share(lost, busy)} of the busy time) have no recorded "
            f"launch{f' ({rest:,} lost within the recording)' if rest else ''}; they count, but have no op.",
        )
    )
    return entries


def _severity(part: float, whole: float) -> Severity:
    return "warning" if part > NOTABLE_SHARE * whole else "info"


def _captured(api: pl.DataFrame) -> Bools:
    """Calls made while their thread captures a CUDA graph; they launch nothing yet."""
    if not rows_like(api, BEGIN_CAPTURE).any():
        return np.zeros(len(api), bool)
    events = api.select(
        "thread",
        "start_ns",
        opening=named(BEGIN_CAPTURE).cast(pl.Int32) - named(END_CAPTURE).cast(pl.Int32),
    ).with_row_index("row")
    open_now = events.sort("thread", "start_ns", maintain_order=True).with_columns(
        open=pl.col("opening").cum_sum().over("thread") > 0
    )
    return open_now.sort("row")["open"].to_numpy()


def _unanswered_launches(tables: Tables) -> list[HealthEntry]:
    api, gpu = tables["api"], tables["gpu"]
    if not len(gpu) or not len(api):
        return []
    answered = np.zeros(len(api) + 1, bool)
    answered[integers(gpu["api_id"])] = True
    launches = rows_like(api, LAUNCH) & ~_captured(api)
    failed = (api["return_code"].fill_null(0) != 0).to_numpy()
    silent = np.flatnonzero(launches & ~answered[:-1] & ~failed)
    if not len(silent):
        return []
    last_answered = int(np.flatnonzero(answered[:-1]).max(initial=0))
    tail = int((silent > last_answered).sum())
    names = api[silent]["name"].cast(pl.String).value_counts(sort=True)["name"].head(3).to_list()
    where = f"; {tail:,} of them come after the last recorded kernel, as if recording stopped early" if tail else ""
    return [
        HealthEntry(
            "launch-without-work",
            _severity(len(silent), int(launches.sum())),
            f"{len(silent):,} of {int(launches.sum()):,} launches ({', '.join(names)}) have no GPU operation{where}.",
        )
    ]


def _stream_overlap(tables: Tables) -> list[HealthEntry]:
    """Operations on one stream run in order; an overlap means wrong times or merged files.

    Branches of a CUDA graph may run concurrently on one stream, and so may unified-memory migrations.
    """
    gpu, api = tables["gpu"], tables["api"]
    if not len(gpu):
        return []
    in_graph = np.append(rows_like(api, GRAPH_LAUNCH), False)[integers(gpu["api_id"])]
    in_graph |= gpu["graph_node_id"].is_not_null().to_numpy()
    in_order = ~in_graph & gpu["stream"].is_not_null().to_numpy() & ~rows_like(gpu, MIGRATION, "copy_kind")
    rows = np.flatnonzero(in_order)
    starts, ends = integers(gpu["start_ns"])[rows], integers(gpu["end_ns"])[rows]
    # In a file with whole microseconds, rounding makes neighbours overlap by up to 1 µs.
    tolerance = 1_000 if len(rows) and (starts % 1000 == starts[0] % 1000).all() else 0
    count, total = 0, 0
    for mine in _streams(gpu, rows):  # in the order of their start and end
        before, start, end = np.maximum.accumulate(ends[mine])[:-1], starts[mine][1:], ends[mine][1:]
        early = before - start > tolerance
        count += int(early.sum())
        total += int((np.minimum(before, end) - start)[early].sum())
    if not count:
        return []
    busy = union(integers(gpu["start_ns"]), integers(gpu["end_ns"])).total_ns()
    return [
        HealthEntry(
            "overlap-on-stream",
            _severity(total, busy),
            f"{_start(count)} before the previous one on the same stream has ended "
            f"({duration(total)} in total): the times are imprecise, or several recordings were merged.",
        )
    ]


def _streams(gpu: pl.DataFrame, rows: Int64s) -> Iterator[Int64s]:
    """The positions of each stream's rows among these."""
    columns = [integers(gpu[name], NO_NUMBER)[rows] for name in ("device", "context", "stream")]
    telling = [column for column in columns if len(rows) and (column != column[0]).any()]
    which = telling[0] if len(telling) == 1 else combinations(*telling)[1] if telling else np.zeros_like(rows)
    return (mine for _, mine in grouped(np.arange(len(rows)), which))


def _start(operations: int) -> str:
    return "1 operation starts" if operations == 1 else f"{operations:,} operations start"


def _durations(tables: Tables) -> list[HealthEntry]:
    gpu = tables["gpu"]
    if not len(gpu):
        return []
    entries = []
    lengths = integers(gpu["end_ns"]) - integers(gpu["start_ns"])
    calls = integers(gpu["api_id"])
    host = [tables[name] for name in ("api", "ops") if len(tables[name])]
    if sum(map(len, host)) >= FEWEST_EVENTS:
        begin = min(int(table["start_ns"].min()) for table in host)  # type: ignore[arg-type]
        end = max(int(table["end_ns"].max()) for table in host)  # type: ignore[arg-type]
        endless = np.flatnonzero((lengths > end - begin) & (calls != NONE))
        if len(endless):
            entries.append(
                HealthEntry(
                    "impossible-duration",
                    "error",
                    f"GPU operations longer than the whole recording of {duration(end - begin)}: {len(endless):,} "
                    f"(the longest {duration(int(lengths.max()))}). Their times are wrong.",
                )
            )
    zero = int((lengths == 0).sum())
    if zero >= ZERO_FLOOD_COUNT and zero > ZERO_FLOOD_SHARE * len(gpu):
        entries.append(
            HealthEntry(
                "zero-durations",
                "warning",
                f"{zero:,} of {len(gpu):,} GPU operations have zero duration: their times were lost or rounded away.",
            )
        )
    negative = int((lengths < 0).sum())
    if negative:
        entries.append(HealthEntry("negative-duration", "error", f"{negative:,} GPU operations end before they start."))
    return entries


def _clocks(tables: Tables) -> list[HealthEntry]:
    gpu, api = tables["gpu"], tables["api"]
    if not len(gpu):
        return []
    entries = []
    calls = integers(gpu["api_id"])
    linked = np.flatnonzero(calls != NONE)
    if len(linked):
        lead = integers(api["start_ns"])[calls[linked]] - integers(gpu["start_ns"])[linked]
        early = int((lead > SKEW_NS).sum())
        if early:
            entries.append(
                HealthEntry(
                    "clock-skew",
                    _severity(early, len(linked)),
                    f"{early:,} GPU operations start up to {duration(int(lead.max()))} before their own launch: "
                    "the host and device clocks disagree.",
                )
            )
    return entries + _clock_jump([tables[name] for name in ("gpu", "api", "ops") if len(tables[name])])


def _clock_jump(tables: list[pl.DataFrame]) -> list[HealthEntry]:
    starts, ends = ([integers(table[name]) for table in tables] for name in ("start_ns", "end_ns"))
    if max(int(one.max()) for one in ends) - min(int(one.min()) for one in starts) <= LONG_GAP_NS:
        return []
    spans = union(np.concatenate(starts), np.concatenate(ends))
    whole = int(spans.ends[-1] - spans.starts[0]) if len(spans) else 0
    longest = int((spans.starts[1:] - spans.ends[:-1]).max(initial=0))
    if longest <= max(LONG_GAP_NS, LONG_GAP_SHARE * whole):
        return []
    return [
        HealthEntry(
            "clock-jump",
            "warning",
            f"Nothing is recorded for {duration(longest)} of {duration(whole)}: the clock jumped, or recording paused.",
        )
    ]


def _shapes(tables: Tables) -> list[HealthEntry]:
    ops = tables["ops"]
    if not len(ops) or ops["shapes"].null_count() < len(ops):
        return []
    return [
        HealthEntry(
            "missing-shapes",
            "info",
            "Ops were recorded without shapes (record_shapes=True adds them): their FLOPs and bytes are unknown.",
        )
    ]


def _graphs(tables: Tables) -> list[HealthEntry]:
    gpu = tables["gpu"]
    bars = gpu.filter(pl.col("kind").cast(pl.String) == "graph")
    if not len(bars):
        return []
    length = union(integers(bars["start_ns"]), integers(bars["end_ns"])).total_ns()
    busy = union(integers(gpu["start_ns"]), integers(gpu["end_ns"])).total_ns()
    return [
        HealthEntry(
            "graph-as-one-bar",
            "warning",
            f"{len(bars):,} CUDA-graph replays ({share(length, busy)} of busy time) are recorded as one event each; "
            "nsys profile --cuda-graph-trace=node shows the kernels inside.",
        )
    ]
