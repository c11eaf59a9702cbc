"""The step in parts: by nn.Module, range, role or class of kernels, and the gaps; the sum is the time window, exactly.

Operations that run at the same time count once, for the first of compute, communication, copy and memset, and among
equals for the one that began first; see `breakdown`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from msgspec import Struct

from warpline.analyses.breakdown import activities_of, busy_spans
from warpline.analyses.device import trace_device
from warpline.analyses.framework import framework_of
from warpline.analyses.parts.labels import NO_PART, PartLabels, PartNames
from warpline.analyses.parts.roles import OTHER
from warpline.analyses.roofline.entry import LATENCY_NS, NEAR_ROOF
from warpline.analyses.roofline.ops_from_elsewhere import foreign_ops
from warpline.analyses.roofline.pieces import GpuWork
from warpline.analyses.roofline.row_work import ROOF_PCT, RowWork, row_work
from warpline.analyses.steps import in_steps
from warpline.errors import NoGpuWork, UsageError
from warpline.hardware import roof_of
from warpline.intervals import covered_before, union
from warpline.trace.arrays import NONE, Int64s
from warpline.trace.table import filled
from warpline.trace.trace import Trace, Window
from warpline.units import speedup

SCHEMA = "warpline.parts/1"
WAYS = ("module", "range", "role", "class")
GAPS = "(gaps)"
"""The row of the time in which the device is idle."""
CARRIED = "(begun before)"
"""The row of operations that began before the window and run into it."""
COLUMNS = (
    *("part", "gpu_ns", "share", "kernel_ns", "kernel_share", "per_step_ns", "calls", "mean_ns", "idle_inside_ns"),
    *("launches", "flops", "bytes", "roof_pct", "headroom_ns", "inferred_ns", "verdict"),
)
KNOWN_SHARE = 0.5
"""With less of its time known, a part has no verdict by its work."""


class PartsTable(Struct, frozen=True):
    """The time window of one device in parts.

    >>> warpline.open("trace.json.gz").parts(by="role").frame.select("part", "gpu_ns", "share", "verdict")
    """

    by: str
    """module, range, role or class."""
    device: str
    device_index: int
    window_ns: int
    """The sum of `gpu_ns` over all rows, with that of the gaps."""
    steps: int | None
    known_ns: int
    """GPU time with known FLOPs and bytes."""
    operations_ns: int
    """GPU time of all operations, of which `known_ns` is a part: unlike in the rows, those that overlap count each."""
    is_pytorch: bool
    """Whether torch.profiler could record the shapes."""
    frame: pl.DataFrame
    """One row per part, longest first, and one for the gaps; docs/commands/parts.md has the columns."""
    classes: pl.DataFrame
    """The same by class of kernels, with the share of the time of all kernels."""
    shapes: pl.DataFrame
    """One row per op, shapes and kernel."""

    def to_dict(self) -> dict[str, Any]:
        """The JSON contract `warpline.parts/1`."""
        return {
            "schema": SCHEMA,
            "trace": {"device": self.device, "device_index": self.device_index, "steps": self.steps},
            "by": self.by,
            "window_ns": self.window_ns,
            "known_ns": self.known_ns,
            "parts": self.frame.to_dicts(),
            "classes": self.classes.to_dicts(),
            "shapes": self.shapes.to_dicts(),
        }


def parts_table(
    trace: Trace,
    *,
    by: str | None = None,
    device: str | None = None,
    shapes_from: Trace | None = None,
    known_work: GpuWork | None = None,
) -> PartsTable:
    """The parts of the busiest device: by module or range where these cover most of the GPU time, else by role."""
    if by is not None and by not in WAYS:
        raise UsageError("bad-parts", f"no parts by {by!r}", f"the ways are {', '.join(WAYS)}")
    gpu_work = known_work or GpuWork(trace, foreign=foreign_ops(trace, shapes_from))
    if not len(gpu_work.gpu):
        raise NoGpuWork("the trace has no GPU operations in the selected steps")
    name, chip = trace_device(trace, device)
    devices = filled(gpu_work.gpu.device, 0)
    index = int(np.argmax(np.bincount(devices, weights=gpu_work.time_ns)))
    here = np.flatnonzero(devices == index)
    labels = PartLabels(gpu_work)
    way = by or labels.default()
    work = row_work(gpu_work, roof_of(chip) if chip else None)
    table = _operations(trace, gpu_work, here, work)
    busy_ns = busy_spans(trace.gpu[filled(trace.gpu.device, 0) == index], trace.window).total_ns()
    return PartsTable(
        by=way,
        device=chip.name if chip else name,
        device_index=index,
        window_ns=trace.window.length_ns,
        steps=len(trace.steps_in_view) or None,
        known_ns=int(gpu_work.time_ns[here][work.known[here]].sum()),
        operations_ns=int(gpu_work.time_ns[here].sum()),
        is_pytorch=framework_of(trace) == "pytorch",
        frame=_parts(trace, table, labels.by(way), here, busy_ns),
        classes=_parts(trace, table, labels.by("class"), here, busy_ns),
        shapes=shapes_by_kernel(gpu_work, here, labels, work),
    )


def _operations(trace: Trace, gpu_work: GpuWork, here: Int64s, work: RowWork) -> pl.DataFrame:
    """The operations of the device, by begin, with the time that counts for each and the gap before it."""
    gpu, window = gpu_work.gpu[here], trace.window
    before = np.concatenate(([window.start_ns], np.maximum.accumulate(gpu.end_ns)[:-1]))
    gap = np.minimum(gpu.start_ns, window.end_ns) - np.maximum(before, window.start_ns)
    return pl.DataFrame(
        {
            **work.columns(here),
            "counted": counted_times(gpu.start_ns, gpu.end_ns, activities_of(gpu), window),
            "gap": np.maximum(gap, 0),
            "is_kernel": gpu_work.is_kernel[here],
            "in_step": in_steps(trace, gpu.start_ns),
        }
    )


def counted_times(starts: Int64s, ends: Int64s, rank: Int64s, window: Window) -> Int64s:
    """The part of each operation that counts.

    Each moment counts for one of the operations that run then: that of the lowest rank, and of these the first begun.
    """
    starts, ends = np.clip(starts, window.start_ns, window.end_ns), np.clip(ends, window.start_ns, window.end_ns)
    result = np.zeros(len(starts), np.int64)
    above = np.zeros(len(starts), bool)
    for one in np.unique(rank).tolist():
        mine = np.flatnonzero(rank == one)
        order = mine[np.argsort(starts[mine], kind="stable")]
        reached = np.maximum.accumulate(ends[order])
        begin = np.maximum(starts[order], np.concatenate((starts[order][:1], reached[:-1])))
        begin = np.minimum(begin, ends[order])
        taken = union(starts[above], ends[above])
        covered = covered_before(taken, ends[order]) - covered_before(taken, begin)
        result[order] = ends[order] - begin - covered
        above[mine] = True
    return result


def _parts(trace: Trace, table: pl.DataFrame, labels: PartNames, here: Int64s, busy_ns: int) -> pl.DataFrame:
    window_ns, steps = max(trace.window.length_ns, 1), len(trace.steps_in_view)
    calls = labels.calls[here]
    named = table.with_columns(
        part=pl.Series([labels.names[at] for at in here.tolist()], dtype=pl.String),
        call=pl.Series(calls),
        inferred=pl.Series(labels.inferred[here]),
    )
    follows = (
        (pl.col("part") != NO_PART)
        & (pl.col("part") == pl.col("part").shift())
        & (pl.col("call") == pl.col("call").shift())
    )
    has_peaks = bool(table["priced"].sum())
    named = named.with_columns(inside=pl.when(follows).then("gap").otherwise(0))
    kernels_ns = max(int(table.filter("is_kernel")["time"].sum()), 1)
    measured = pl.col("priced").sum()
    is_known = (measured > 0) & (measured >= KNOWN_SHARE * pl.col("time").sum())
    parts = named.group_by("part").agg(
        gpu_ns=pl.col("counted").sum(),
        share=pl.col("counted").sum() / window_ns,
        kernel_ns=pl.col("time").filter("is_kernel").sum(),
        kernel_share=pl.col("time").filter("is_kernel").sum() / kernels_ns,
        per_step_ns=pl.col("counted").filter("in_step").sum() / steps if steps else pl.lit(None, pl.Float64),
        calls=pl.col("call").filter(pl.col("call") != NONE).n_unique(),
        idle_inside_ns=pl.col("inside").sum(),
        launches=pl.len(),
        flops=pl.when(is_known).then(pl.col("flops").sum().round().cast(pl.Int64)),
        bytes=pl.when(is_known).then(pl.col("bytes").sum().round().cast(pl.Int64)),
        roof_pct=pl.when(is_known).then(100 * pl.col("floor").sum() / measured),
        headroom_ns=pl.when(is_known).then((measured - pl.col("floor").sum()).round().cast(pl.Int64)),
        inferred_ns=pl.col("counted").filter("inferred").sum(),
        priced_ns=measured,
        known_ns=(pl.col("known") * pl.col("time")).sum(),
        compute_ns=pl.col("compute").sum(),
        floor_ns=pl.col("floor").sum(),
        time_ns=pl.col("time").sum(),
    )
    judged = parts.with_columns(
        calls=pl.when(pl.col("calls") > 0).then("calls"),
        mean_ns=pl.when(pl.col("calls") > 0).then(pl.col("gpu_ns") / pl.col("calls")),
        verdict=pl.Series([_verdict(row, has_peaks) for row in parts.to_dicts()], dtype=pl.String),
    ).sort("gpu_ns", "part", descending=[True, False])
    return pl.concat(
        [judged.select(COLUMNS), _rest(trace, int(table["counted"].sum()), busy_ns)], how="diagonal_relaxed"
    )


def _rest(trace: Trace, counted_ns: int, busy_ns: int) -> pl.DataFrame:
    """The rows beside the parts: what began before the window, if anything did, and the gaps."""
    window_ns = trace.window.length_ns
    rows = [(GAPS, window_ns - busy_ns)]
    if busy_ns > counted_ns:
        rows.insert(0, (CARRIED, busy_ns - counted_ns))
    return pl.DataFrame(rows, schema=["part", "gpu_ns"], orient="row").with_columns(
        share=pl.col("gpu_ns") / max(window_ns, 1)
    )


def _verdict(row: dict[str, Any], has_peaks: bool) -> str:
    """What limits a part, in a few words."""
    if row["idle_inside_ns"] > row["time_ns"]:
        return "idle inside: longer than its GPU time"
    if row["roof_pct"] is None:
        return "unknown work" if has_peaks or row["known_ns"] < KNOWN_SHARE * row["time_ns"] else "unknown peaks"
    moved = "memory" if row["kernel_ns"] else "bandwidth"  # a copy may cross a link
    bound = "compute" if 2 * row["compute_ns"] > row["floor_ns"] else moved
    if row["floor_ns"] >= NEAR_ROOF * row["priced_ns"]:
        return f"near its {bound} limit"
    if row["time_ns"] < 2 * LATENCY_NS * row["launches"]:
        return "short kernels"
    if not row["floor_ns"]:
        return "unknown work"
    if row["floor_ns"] < LATENCY_NS * row["launches"]:
        return "latency: little work in each"
    return f"{speedup(row['priced_ns'] / row['floor_ns'])} its {bound} limit"


def shapes_by_kernel(gpu_work: GpuWork, here: Int64s, labels: PartLabels, work: RowWork) -> pl.DataFrame:
    """Which kernel ran for which shapes: one row per role, op, shapes and kernel, longest first."""
    classes, roles = labels.by("class").names, labels.by("role").names
    chosen = here[gpu_work.is_kernel[here]]
    known = {at: piece for piece in gpu_work.pieces if piece.work or piece.shapes for at in piece.rows}
    pieces = [known.get(at) for at in chosen.tolist()]
    gpu = gpu_work.gpu[chosen]
    grids = zip(gpu.grid_x.tolist(), gpu.grid_y.tolist(), gpu.grid_z.tolist(), strict=True)
    table = pl.DataFrame(
        {
            "op": [(piece.op or None) if piece else None for piece in pieces],
            "shapes": [(piece.shapes or None) if piece else None for piece in pieces],
            "kernel": gpu.name.series(),
            "class": [classes[at] for at in chosen.tolist()],
            "grid": [_grid_text(grid) for grid in grids],
            "role": [roles[at] if roles[at] != OTHER else None for at in chosen.tolist()],
            **work.columns(chosen),
        },
        schema_overrides=dict.fromkeys(("op", "shapes", "class", "grid", "role"), pl.String),
    )
    return (
        table.group_by("op", "shapes", "kernel", "class", "grid", "role")
        .agg(
            count=pl.len(),
            time_ns=pl.col("time").sum(),
            mean_ns=pl.col("time").mean(),
            flops=pl.col("flops").sum(),
            roof_pct=ROOF_PCT,
        )
        .sort("time_ns", "kernel", "shapes", "op", "grid", "role", descending=[True, *[False] * 5])
    )


def _grid_text(grid: tuple[int, int, int]) -> str | None:
    return None if grid[0] == NONE else "×".join("?" if size == NONE else str(size) for size in grid)
