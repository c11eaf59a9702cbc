"""What viewers such as Perfetto draw: the tracks of a trace beside what was found, and arrows between bars.

All times are those of the trace, to the nanosecond. On one track bars nest or follow each other; bars that overlap
otherwise (kernels that run at the same time, clocks that differ) lie on further tracks of the same name, because
viewers drop or cut them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from msgspec import Struct

from warpline.analyses.device import device_name
from warpline.analyses.idle.gaps import CAUSES, Gaps
from warpline.analyses.stacks import thread_title
from warpline.findings.diagnosis import Diagnosis
from warpline.fixes.evidence import Evidence
from warpline.intervals import Spans, union
from warpline.timeline.lanes import pack
from warpline.timeline.tracks import THREAD_LABELS, BarTrack, device_tracks, thread_tracks
from warpline.trace.arrays import NONE, Int64s
from warpline.trace.cut import cut_to_steps
from warpline.trace.nesting import order_for_nesting
from warpline.trace.trace import Trace
from warpline.units import speedup

BAR = ("start_ns", "end_ns", "name", "row")
"""Columns of every bar; further ones are its details."""
ANSWER = "Diagnosis by warpline"
"""Group of what was found, at the top."""
LAUNCH, AUTOGRAD = "launch", "autograd"
DETAILS = {
    "gpu": ("kind", "grid", "block", "registers", "shared_bytes", "bytes", "copy_kind", "graph_id", "op"),
    "api": ("correlation", "return_code", "op"),
    "ops": ("shapes", "dtypes", "module"),
    "ranges": ("domain",),
    "python": ("module",),
    "osrt": ("return_code",),
}
"""What a viewer shows of each bar, by table; all but the name and the times."""


class ViewerTrack(Struct, frozen=True):
    """A named row of bars within a group."""

    group: str
    name: str
    table: str
    """Table whose rows the bars are; `idle`, `steps` or `findings` for what was found."""
    bars: pl.DataFrame
    """Sorted so that a bar stands before those within it: the columns of `BAR`, then details that a viewer shows when
    the bar is clicked."""


class Arrows(Struct, frozen=True):
    """Arrows from one bar to another, by kind; an arrow's number is unique in the timeline."""

    kind: str
    source: str
    target: str
    """Tables."""
    from_rows: Int64s
    to_rows: Int64s
    first_number: int

    def __len__(self) -> int:
        return len(self.from_rows)

    def leaving(self) -> dict[int, list[int]]:
        """Numbers of the arrows that leave each row of the source."""
        found: dict[int, list[int]] = {}
        for number, row in enumerate(self.from_rows.tolist(), self.first_number):
            found.setdefault(row, []).append(number)
        return found

    def arriving(self) -> dict[int, list[int]]:
        """The same for those that arrive."""
        return {row: [number] for number, row in enumerate(self.to_rows.tolist(), self.first_number)}


class ViewerTimeline(Struct, frozen=True):
    """Tracks in the order in which they are shown, and arrows."""

    tracks: tuple[ViewerTrack, ...]
    arrows: tuple[Arrows, ...]

    @property
    def bar_count(self) -> int:
        """Bars of all tracks."""
        return sum(len(track.bars) for track in self.tracks)

    @property
    def arrow_count(self) -> int:
        """Arrows of all kinds."""
        return sum(map(len, self.arrows))

    @property
    def zero_ns(self) -> int:
        """What viewers call zero: the trace's zero, or its first moment if that lies before."""
        return min([0, *(int(track.bars["start_ns"].min()) for track in self.tracks if len(track.bars))])  # type: ignore[arg-type]


def viewer_timeline(diagnosis: Diagnosis) -> ViewerTimeline:
    """Everything that the trace has, of the chosen steps or of the whole recording, beside what was found."""
    trace = diagnosis.trace
    shown = trace if trace.chosen_steps is None else cut_to_steps(trace)
    tracks = (*_steps(diagnosis), *_findings(diagnosis), *_devices(shown, diagnosis), *_threads(shown))
    return ViewerTimeline(tracks, arrows_of(shown))


def arrows_of(trace: Trace) -> tuple[Arrows, ...]:
    """From each launch to what it launched, and from each forward op to its backward op."""
    calls, forwards = trace.gpu.api_id, trace.ops.forward_op
    work, ops = np.flatnonzero(calls != NONE), np.flatnonzero(forwards != NONE)
    return (
        Arrows(LAUNCH, "api", "gpu", calls[work], work, 1),
        Arrows(AUTOGRAD, "ops", "ops", forwards[ops], ops, 1 + len(work)),
    )


def device_title(trace: Trace, device: int | None) -> str:
    """`GPU 0 · NVIDIA H200`."""
    name = None if device is None else device_name(trace, device)
    return f"GPU {device}" + (f" · {name}" if name else "")


def tracks_of(group: str, name: str, table: str, bars: pl.DataFrame) -> Iterator[ViewerTrack]:
    """The bars, sorted for nesting, as one track, or as several if they do not nest; nothing for no bars."""
    if not len(bars):
        return
    lanes, _ = pack(bars["start_ns"].to_numpy(), bars["end_ns"].to_numpy())
    for lane in range(int(lanes.max()) + 1):
        mine = bars if not lanes.any() else bars.filter(pl.Series(lanes == lane))
        yield ViewerTrack(group, name if lane == 0 else f"{name} ({lane + 1})", table, mine)


def _steps(diagnosis: Diagnosis) -> Iterator[ViewerTrack]:
    bars = diagnosis.steps.with_row_index("row").select(
        "start_ns", (pl.col("start_ns") + pl.col("length_ns")).alias("end_ns"), "name", "row", "busy_ns", "operations"
    )
    starts, ends = bars["start_ns"].to_numpy(), bars["end_ns"].to_numpy()
    order = order_for_nesting(np.zeros(len(bars), np.int64), starts, ends)
    yield from tracks_of(ANSWER, "steps", "steps", bars[order])


def _findings(diagnosis: Diagnosis) -> Iterator[ViewerTrack]:
    judgement = diagnosis.judgement
    for place, finding in enumerate(judgement.findings if judgement else ()):
        assert judgement is not None
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


def _devices(trace: Trace, diagnosis: Diagnosis) -> Iterator[ViewerTrack]:
    tables = {"gpu": _detailed(trace, "gpu"), "ranges": _detailed(trace, "ranges")}
    idle = {gaps.device: _idle(gaps) for gaps in diagnosis.gaps}
    for track in device_tracks(trace, diagnosis.gaps):
        table = idle[track.device] if track.kind == "idle" and track.device is not None else tables[track.kind]
        yield from _viewer_tracks(device_title(trace, track.device), track, table)


def _threads(trace: Trace) -> Iterator[ViewerTrack]:
    tables = {kind: _detailed(trace, kind) for kind in THREAD_LABELS}
    for track in thread_tracks(trace):
        assert track.thread is not None
        yield from _viewer_tracks(thread_title(trace, track.thread), track, tables[track.kind])


def _viewer_tracks(group: str, track: BarTrack, table: pl.DataFrame) -> Iterator[ViewerTrack]:
    """The bars of a track with their names and details, which are those of the rows of a table."""
    bars = table[track.rows].with_columns(start_ns=pl.Series(track.starts), end_ns=pl.Series(track.ends))
    yield from tracks_of(group, track.label, track.kind, bars.select(*BAR, *DETAILS.get(track.kind, ())))


def _detailed(trace: Trace, name: str) -> pl.DataFrame:
    """A table with texts, row numbers, and what a viewer shows."""
    table = trace.tables[name].stored.with_row_index("row").with_columns(pl.col(pl.Categorical).cast(pl.String))
    if name == "gpu":
        table = table.with_columns(_product(size).alias(size) for size in ("grid", "block"))
    if "op_id" in table.columns:
        names = trace.ops.stored["name"].cast(pl.String)
        table = table.with_columns(op=names.gather(table["op_id"]) if len(names) else pl.lit(None, pl.String))
    return table


def _product(size: str) -> pl.Expr:
    """`16 × 1 × 1`."""
    return pl.concat_str([pl.col(f"{size}_{axis}") for axis in "xyz"], separator=" × ")


def _idle(gaps: Gaps) -> pl.DataFrame:
    """The cause of each part of a gap, and the operation that ended the gap."""
    spans = gaps.spans
    return pl.DataFrame(
        {"name": np.array(CAUSES)[spans.causes], "row": pl.Series(gaps.ended_by[spans.gaps]).replace(NONE, None)}
    )
