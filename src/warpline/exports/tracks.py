"""The tracks of a diagnosis: steps and findings, each GPU with its idle causes and streams, each CPU thread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from warpline.analyses.idle.gaps import CAUSES, Gaps
from warpline.analyses.stacks import thread_title
from warpline.exports.timeline import BAR, Timeline, Track, arrows_of, tracks_of
from warpline.findings.diagnosis import Diagnosis
from warpline.fixes.evidence import Evidence
from warpline.intervals import Spans, union
from warpline.trace.arrays import integers
from warpline.trace.cut import cut_to_steps
from warpline.trace.trace import Trace
from warpline.units import speedup

ANSWER = "Diagnosis by warpline"
"""Group of what was found, at the top."""
DETAILS = {
    "gpu": ("kind", "grid", "block", "registers", "shared_bytes", "bytes", "copy_kind", "graph_id", "op"),
    "api": ("correlation", "return_code", "op"),
    "ops": ("shapes", "dtypes", "module"),
    "ranges": ("domain",),
    "python": ("module",),
    "osrt": ("return_code",),
}
"""What a viewer shows of each bar, by table; all but the name and the times."""
THREAD_TABLES = {"ranges": "ranges", "python": "Python", "ops": "ops", "api": "API", "osrt": "OS runtime"}
"""Tracks of a thread, outermost first."""


def timeline(diagnosis: Diagnosis) -> Timeline:
    """Everything that the trace has, of the chosen steps or of the whole recording, beside what was found."""
    trace = diagnosis.trace
    shown = trace if trace.chosen_steps is None else cut_to_steps(trace)
    tracks = (*_answer(diagnosis), *_devices(shown, diagnosis), *_threads(shown))
    return Timeline(tracks, arrows_of(shown))


def _answer(diagnosis: Diagnosis) -> Iterator[Track]:
    steps = diagnosis.steps
    bars = steps.with_row_index("row").select(
        "start_ns", (pl.col("start_ns") + pl.col("length_ns")).alias("end_ns"), "name", "row", "busy_ns", "operations"
    )
    yield from tracks_of(ANSWER, "steps", "steps", bars)
    judgement = diagnosis.judgement
    if judgement is None:
        return
    for place, finding in enumerate(judgement.findings):
        spans = _touched(judgement.evidence, finding.fix)
        touched = pl.DataFrame({"start_ns": spans.starts, "end_ns": spans.ends}).with_columns(
            name=pl.lit(finding.rule),
            row=pl.lit(place),
            claim=pl.lit(finding.claim),
            gain=pl.lit(f"{speedup(finding.gain.low)} to {speedup(finding.gain.high)}"),
            new_step=pl.lit(finding.new_step_words),
            how=pl.lit(finding.how),
        )
        title = f"finding {finding.rule}: {finding.fix} {finding.gain_words}"
        yield from tracks_of(ANSWER, title, "findings", touched)


def _touched(evidence: Evidence, fix: str) -> Spans:
    """The recorded time of all that the fix changes; the replayed steps if it changes only what waits for what."""
    change, graph = evidence.changed(fix), evidence.labelled.graph
    nodes = change.work | change.host
    if nodes.any():
        return union(graph.measured_start[nodes], graph.measured_end[nodes])
    steps = evidence.trace.steps_in_view
    if len(steps):
        return union(steps.start_ns, steps.end_ns)
    window = evidence.trace.window
    return union(np.array([window.start_ns]), np.array([window.end_ns]))


def _devices(trace: Trace, diagnosis: Diagnosis) -> Iterator[Track]:
    gpu = _detailed(trace, "gpu").with_columns(pl.col("device").fill_null(0))
    names = dict(trace.stored("devices").select("device", "name").iter_rows())
    idle = {gaps.device: gaps for gaps in diagnosis.gaps}
    projected = _closed(trace).filter(pl.col("style") == "gpu")
    for device, rows in _by_number(gpu, "device"):
        group = f"GPU {device}" + (f" · {names[device]}" if names.get(device) else "")
        if device in idle:
            yield from tracks_of(group, "idle, by cause", "idle", _idle_bars(idle[device]))
        for stream, bars in _by_number(rows.select("stream", *BAR, *DETAILS["gpu"]), "stream"):
            title = f"stream {stream}" if stream is not None else "no stream recorded"
            yield from tracks_of(group, title, "gpu", bars)
        ranges = projected.filter(pl.col("device").fill_null(0) == device)
        yield from tracks_of(group, "ranges", "ranges", ranges.select(*BAR, *DETAILS["ranges"]))


def _threads(trace: Trace) -> Iterator[Track]:
    tables = {name: _detailed(trace, name) for name in THREAD_TABLES if name != "ranges"}
    tables = {"ranges": _closed(trace).filter(pl.col("thread").is_not_null()), **tables}
    by_thread = {
        name: {int(thread): rows for thread, rows in _parted(table.select("thread", *BAR, *DETAILS[name]), "thread")}
        for name, table in tables.items()
    }
    busiest = {thread for found in by_thread.values() for thread in found}
    for thread in sorted(busiest, key=lambda one: (-_count(by_thread, one), one)):
        group = thread_title(trace, thread)
        for name, label in THREAD_TABLES.items():
            bars = by_thread[name].get(thread)
            if bars is not None:
                yield from tracks_of(group, label, name, bars)


def _count(by_thread: dict[str, dict[int, pl.DataFrame]], thread: int) -> int:
    return sum(len(found[thread]) for found in by_thread.values() if thread in found)


def _by_number(rows: pl.DataFrame, column: str) -> list[tuple[int | None, pl.DataFrame]]:
    """The rows of each number, in rising order; those without one last."""
    return sorted(_parted(rows, column), key=lambda item: (item[0] is None, item[0] or 0))


def _parted(rows: pl.DataFrame, column: str) -> list[tuple[Any, pl.DataFrame]]:
    """The rows of each value, without that column."""
    parts = rows.partition_by(column, maintain_order=True, include_key=False, as_dict=True)
    return [(value, part) for (value,), part in parts.items()]


def _closed(trace: Trace) -> pl.DataFrame:
    """The ranges; one that was never closed ends with the recording."""
    tables = (trace.stored("gpu"), trace.stored("ranges"), trace.stored("api"), trace.stored("ops"))
    last = max(int(integers(table["end_ns"], 0).max(initial=0)) for table in tables)
    ends = pl.max_horizontal(pl.col("end_ns").fill_null(last), pl.col("start_ns"))
    return _detailed(trace, "ranges").with_columns(end_ns=ends)


def _detailed(trace: Trace, name: str) -> pl.DataFrame:
    """A table with texts, row numbers, and what a viewer shows."""
    table = trace.stored(name).with_row_index("row").with_columns(pl.col(pl.Categorical).cast(pl.String))
    if name == "gpu":
        table = table.with_columns(_product(size).alias(size) for size in ("grid", "block"))
    if "op_id" in table.columns:
        names = trace.stored("ops")["name"].cast(pl.String)
        table = table.with_columns(op=names.gather(table["op_id"]) if len(names) else pl.lit(None, pl.String))
    return table


def _product(size: str) -> pl.Expr:
    """`16 × 1 × 1`."""
    return pl.concat_str([pl.col(f"{size}_{axis}") for axis in "xyz"], separator=" × ")


def _idle_bars(gaps: Gaps) -> pl.DataFrame:
    """Each part of each gap with its cause, and the operation that ended the gap."""
    spans = gaps.spans.merged()
    return pl.DataFrame(
        {
            "start_ns": spans.starts,
            "end_ns": spans.ends,
            "name": np.array(CAUSES)[spans.causes],
            "row": gaps.table["gpu_id"].gather(spans.gaps),
        }
    )
