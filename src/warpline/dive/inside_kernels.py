"""Which kernels to look into with Nsight Compute: those with the most recoverable time, one per kernel and shape.

For each: what the timeline already says about it, the form of its name that ncu matches, and how many launches of that
name come before it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import polars as pl
from msgspec import Struct, to_builtins

from warpline.analyses.roofline.entry import LATENCY_NS, NEAR_ROOF
from warpline.analyses.roofline.table import kernel_floors
from warpline.kernels import identify
from warpline.kernels.normalise import normalise
from warpline.library_names import PROFILER_STEP
from warpline.sources.ncu.names import function_of
from warpline.trace.arrays import Int64s, integers
from warpline.trace.launches import launched_ns
from warpline.trace.names import by_name, texts
from warpline.trace.steps.choice import on_device
from warpline.trace.trace import Trace
from warpline.units import duration, share

Answer = Literal["timeline", "profile"]
SHORT = 2
"""Kernels of up to this many times an empty kernel's time have nothing inside that could be faster."""
MIN_SHARE = 0.01
"""Kernels with less of the GPU time are not worth a look."""
_GEOMETRY = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
_PLAIN_RANGE = re.compile(r"[\w .:-]+")
"""Names of NVTX ranges that ncu's filter takes without escapes."""


class InsideKernel(Struct, frozen=True):
    """One kernel with one geometry and one set of shapes."""

    name: str
    """As the timeline spells it."""
    function: str
    """The bare function, which ncu's --kernel-name matches."""
    op: str
    """The op that launched it; empty where none was recorded."""
    shapes: str
    grid: tuple[int, int, int] | None
    block: tuple[int, int, int] | None
    launches: int
    """In the selected steps."""
    time_ns: float
    """Of all these launches."""
    share: float
    """Of the time of all kernels."""
    floor_ns: float | None
    """Their minimum time by the roofline; None where it is unknown."""
    bound: str
    """compute, memory or latency by the roofline; empty where it is unknown."""
    position: int
    """Place of the first of these among all launches of the selected steps."""
    launch_skip: int
    """Launches of the same function before it; with an NVTX range, within such ranges."""
    same_function_per_step: float
    """Likewise, in a whole step."""
    nvtx: str
    """The NVTX range around it, where the timeline is nsys's and has one."""
    rows: tuple[int, ...]
    """Rows of `gpu`."""
    answer: Answer
    """Whether the timeline explains its time already, or Nsight Compute is needed."""
    why: str

    @property
    def recoverable_ns(self) -> float:
        """Time above the floor; all of it where the floor is unknown."""
        return max(0.0, self.time_ns - self.floor_ns) if self.floor_ns is not None else self.time_ns

    @property
    def roof_share(self) -> float | None:
        """Floor over time."""
        return self.floor_ns / self.time_ns if self.floor_ns is not None and self.time_ns else None

    @property
    def mean_ns(self) -> float:
        """Time of one launch."""
        return self.time_ns / self.launches

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        known = {name: value for name, value in to_builtins(self).items() if name not in {"rows", "position"}}
        return {**known, "recoverable_ns": self.recoverable_ns}


class InsideKernels(Struct, frozen=True):
    """All kernels worth a look, the largest recoverable time first; those that the timeline explains included."""

    kernels: tuple[InsideKernel, ...]
    steps: int
    """Steps that they are counted over; 0 where the timeline has none."""
    positions: Mapping[str, Int64s]
    """By function of these kernels: the places of its launches among all."""

    def chosen(self, count: int) -> tuple[InsideKernel, ...]:
        """The kernels to profile: the first that the timeline does not explain."""
        return tuple(kernel for kernel in self.kernels if kernel.answer == "profile")[:count]


Floors = Mapping[int, tuple[float, str]]
"""By row of `gpu`: the minimum time, and what bounds it (empty if that is not known)."""


def inside_kernels(trace: Trace, floors: Floors | None = None) -> InsideKernels:
    """The kernels of the selected steps, one per function, geometry and shapes; `floors` if known already."""
    table = _launches(trace)
    steps = len(trace.steps_in_view)
    if not len(table):
        return InsideKernels((), steps, {})
    floors = kernel_floors(trace) if floors is None else floors
    total_ns = int(table["time_ns"].sum())
    first = pl.col("function", "op", "api_id", "position").first()
    groups = table.group_by("name", "shapes", *_GEOMETRY, maintain_order=True).agg(
        first, pl.col("time_ns").sum(), pl.col("row")
    )
    large = groups.filter(pl.col("time_ns") >= MIN_SHARE * total_ns)
    found = [_described(trace, table, group, floors, total_ns) for group in large.iter_rows(named=True)]
    ranked = sorted(found, key=lambda one: (-one.recoverable_ns, one.position))
    functions = sorted({kernel.function for kernel in found})
    positions = {name: integers(table["position"].filter(table["function"] == name)) for name in functions}
    return InsideKernels(tuple(ranked), steps, positions)


def _launches(trace: Trace) -> pl.DataFrame:
    """The kernels of the selected steps in the order of their launches, with function, op and shapes."""
    columns = ("name", "api_id", "op_id", "start_ns", "end_ns", *_GEOMETRY)
    starts, launched = trace.gpu.start_ns, launched_ns(trace.gpu, trace.api)
    chosen = trace.gpu.kind.like("^kernel$")
    steps = trace.steps_in_view
    if len(steps):
        # Steps on the device's time line begin with its work, other steps with the launches.
        start_ns = starts if on_device(steps) else launched
        chosen = chosen & (start_ns >= steps.start_ns[0]) & (start_ns < steps.end_ns[-1])
    numbers = np.flatnonzero(chosen)
    numbers = numbers[np.lexsort((starts[numbers], launched[numbers]))]
    rows = trace.stored("gpu")[list(columns)].with_row_index("row")[numbers]
    return rows.select(
        pl.int_range(pl.len(), dtype=pl.UInt32).alias("position"),
        "row",
        "name",
        "api_id",
        *_GEOMETRY,
        order=pl.Series(launched[numbers]),
        function=by_name(rows["name"], _functions),
        op=trace.stored("ops")["name"].gather(rows["op_id"]),
        shapes=trace.stored("ops")["shapes"].gather(rows["op_id"]),
        time_ns=pl.col("end_ns") - pl.col("start_ns"),
    )


def _functions(names: pl.Series) -> pl.Series:
    return pl.Series([_function(name) for name in names.to_list()], dtype=pl.String).cast(pl.Categorical)


def _function(name: str) -> str:
    """The bare function as ncu writes it."""
    return normalise(name).base if name.startswith("_Z") else function_of(name)


def _described(
    trace: Trace,
    table: pl.DataFrame,
    group: dict[str, Any],
    floors: Floors,
    total_ns: int,
) -> InsideKernel:
    name, shapes, rows = str(group["name"] or ""), str(group["shapes"] or ""), group["row"]
    geometry = [group[one] for one in _GEOMETRY]
    known = [floors[row] for row in rows if row in floors]
    whole = len(known) == len(rows)
    time_ns = float(group["time_ns"])
    floor_ns = sum(floor for floor, _ in known) if whole else None
    function = str(group["function"])
    nvtx, skip, same = _place(trace, table, group, function)
    bound = known[0][1] if whole else ""
    answer, why = _answer(name, time_ns, len(rows), floor_ns, bound)
    return InsideKernel(
        name=name,
        function=function,
        op=str(group["op"] or ""),
        shapes=shapes,
        grid=_three(geometry[:3]),
        block=_three(geometry[3:]),
        launches=len(rows),
        time_ns=time_ns,
        share=time_ns / max(total_ns, 1),  # all may be of zero length
        floor_ns=floor_ns,
        bound=bound,
        position=group["position"],
        launch_skip=skip,
        same_function_per_step=same / max(len(trace.steps_in_view), 1),
        nvtx=nvtx,
        rows=tuple(rows),
        answer=answer,
        why=why,
    )


def _three(values: list[Any]) -> tuple[int, int, int] | None:
    x, y, z = values
    return None if x is None or y is None or z is None else (x, y, z)


def _answer(name: str, time_ns: float, launches: int, floor_ns: float | None, bound: str) -> tuple[Answer, str]:
    """Whether the timeline explains the kernel's time."""
    if identify(name).kernel_class == "comm":
        return "timeline", "waits for other ranks; Nsight Compute's replay would hang or change it"
    if floor_ns is None:
        return "profile", "FLOPs and bytes unknown"
    mean_ns = time_ns / launches
    if mean_ns < SHORT * LATENCY_NS:
        return "timeline", f"{duration(mean_ns)} a launch, mostly latency: launch fewer or fuse them"
    if bound == "latency":
        return "profile", f"{duration(mean_ns)} a launch for what needs less than {duration(LATENCY_NS)}"
    if floor_ns >= time_ns:
        return "timeline", "at its roofline"
    reached = f"at {share(floor_ns, time_ns)} of its roofline{f' ({bound})' if bound else ''}"
    if floor_ns >= NEAR_ROOF * time_ns:
        return "timeline", reached
    return "profile", f"{reached}; {duration(time_ns - floor_ns)} recoverable"


def _place(trace: Trace, table: pl.DataFrame, first: dict[str, Any], function: str) -> tuple[str, int, int]:
    """The NVTX range around the launch, if any; the launches of the same function before it, and all of them."""
    alike = np.flatnonzero((table["function"] == function).to_numpy())
    nvtx = _range_around(trace, first["api_id"]) if trace.source == "nsys" else ""
    if nvtx:
        spans, moments = _spans(trace, nvtx), integers(table["order"])[alike].tolist()
        alike = alike[[any(begin <= at <= end for begin, end in spans) for at in moments]]
    return nvtx, int((integers(table["position"])[alike] < first["position"]).sum()), len(alike)


def _range_around(trace: Trace, api_id: int | None) -> str:
    """The innermost NVTX range of the default domain around a call; steps are no help, since profilers make them."""
    if api_id is None:
        return ""
    call = trace.stored("api").row(api_id, named=True)
    around = (
        trace.stored("ranges")
        .filter(
            pl.col("thread") == call["thread"],
            pl.col("start_ns") <= call["start_ns"],
            pl.col("end_ns") >= call["start_ns"],
            pl.col("domain").is_null(),
        )
        .sort("start_ns", descending=True)
    )
    names = [name for name in texts(around["name"]).tolist() if not re.match(PROFILER_STEP, name)]
    return next((name for name in names if _PLAIN_RANGE.fullmatch(name)), "")


def _spans(trace: Trace, name: str) -> list[tuple[int, int]]:
    ranges = trace.stored("ranges").filter(pl.col("name").cast(pl.String) == name)
    found = defaultdict(list)
    for thread, begin, end in ranges.select("thread", "start_ns", "end_ns").drop_nulls("end_ns").iter_rows():
        found[thread].append((begin, end))
    return max(found.values(), key=len, default=[])
