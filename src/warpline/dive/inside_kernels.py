"""Which kernels to look into with Nsight Compute: those with the most recoverable time, one per kernel and shape.

For each: what the timeline already says about it, the form of its name that ncu matches, and how many launches of that
name come before it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from msgspec import Struct, to_builtins

from warpline.analyses.roofline.entry import LATENCY_NS, NEAR_ROOF
from warpline.analyses.roofline.table import kernel_floors
from warpline.dive.launch_groups import LaunchGroup, launch_groups
from warpline.kernels import identify
from warpline.kernels.normalise import normalise
from warpline.library_names import PROFILER_STEP
from warpline.replay.patterns.precision import on_cuda_cores
from warpline.sources.ncu.names import function_of
from warpline.trace.arrays import NONE, Int64s, grouped
from warpline.trace.launches import launched_ns
from warpline.trace.steps.choice import on_device
from warpline.trace.trace import Trace
from warpline.units import duration, share

Answer = Literal["timeline", "profile"]
SHORT = 2
"""Kernels of up to this many times an empty kernel's time have nothing inside that could be faster."""
MIN_SHARE = 0.01
"""Kernels with less of the GPU time are not worth a look."""
ONLY_LESS_WORK = "only less work makes it faster"
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
    def with_op(self) -> str:
        """The function, with the op that launched it."""
        return f"{self.function} ({self.op})" if self.op else self.function

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
    launches = _Launches(trace)
    steps = len(trace.steps_in_view)
    if not len(launches.rows):
        return InsideKernels((), steps, {})
    floors = kernel_floors(trace) if floors is None else floors
    total_ns = int((trace.gpu.end_ns - trace.gpu.start_ns)[launches.rows].sum())
    large = launch_groups(trace, launches.rows, MIN_SHARE * total_ns)
    found = [_described(launches, group, floors, total_ns) for group in large]
    ranked = sorted(found, key=lambda one: (-one.recoverable_ns, one.position))
    functions = sorted({kernel.function for kernel in found})
    return InsideKernels(tuple(ranked), steps, {name: launches.of_function(name) for name in functions})


class _Launches:
    """The kernels of the selected steps in the order of their launches."""

    def __init__(self, trace: Trace) -> None:
        self.trace, steps = trace, trace.steps_in_view
        launched, starts = launched_ns(trace.gpu, trace.api), trace.gpu.start_ns
        chosen = trace.gpu.kind.equal("kernel")
        if len(steps):
            # Steps on the device's time line begin with its work, other steps with the launches.
            begun = starts if on_device(steps) else launched
            chosen = chosen & (begun >= steps.start_ns[0]) & (begun < steps.end_ns[-1])
        rows = np.flatnonzero(chosen)
        self.rows = rows[np.lexsort((starts[rows], launched[rows]))]
        """Rows of `gpu`."""
        self.moments = launched[self.rows]
        self._functions = trace.gpu.name[self.rows].renamed(_function)

    def of_function(self, name: str) -> Int64s:
        """The places of a function's launches among all."""
        return np.flatnonzero(self._functions.equal(name))


def _function(name: str) -> str:
    """The bare function as ncu writes it."""
    return normalise(name).base if name.startswith("_Z") else function_of(name)


def _described(launches: _Launches, group: LaunchGroup, floors: Floors, total_ns: int) -> InsideKernel:
    trace, rows, first = launches.trace, group.rows, group.rows[0]
    known = [floors[row] for row in rows if row in floors]
    floor_ns = sum(floor for floor, _ in known) if len(known) == len(rows) else None
    bound = known[0][1] if floor_ns is not None else ""
    position = int(np.flatnonzero(launches.rows == first)[0])
    # With an NVTX range, only the launches within such ranges count.
    alike = launches.of_function(_function(group.name))
    nvtx = _range_around(trace, int(trace.gpu.api_id[first])) if trace.source == "nsys" else ""
    if nvtx:
        spans = _spans(trace, nvtx)
        alike = alike[[any(begin <= at <= end for begin, end in spans) for at in launches.moments[alike].tolist()]]
    answer, why = _answer(group.name, group.time_ns, len(rows), floor_ns, bound)
    return InsideKernel(
        name=group.name,
        function=_function(group.name),
        op=trace.ops.name.at(trace.gpu.op_id[[first]]).text(0) or "",
        shapes=group.shapes,
        grid=group.grid,
        block=group.block,
        launches=len(rows),
        time_ns=float(group.time_ns),
        share=group.time_ns / max(total_ns, 1),  # all may be of zero length
        floor_ns=floor_ns,
        bound=bound,
        position=position,
        launch_skip=int((alike < position).sum()),
        same_function_per_step=len(alike) / max(len(trace.steps_in_view), 1),
        nvtx=nvtx,
        rows=rows,
        answer=answer,
        why=why,
    )


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
    roofline = "its roofline without tensor cores" if on_cuda_cores(identify(name)) else "its roofline"
    if floor_ns >= time_ns:
        return "timeline", f"at {roofline}: {ONLY_LESS_WORK}"
    reached = f"at {share(floor_ns, time_ns)} of {roofline}{f' ({bound})' if bound else ''}"
    if floor_ns >= NEAR_ROOF * time_ns:
        return "timeline", f"{reached}: {ONLY_LESS_WORK}"
    return "profile", f"{reached}; {duration((time_ns - floor_ns) / launches)} of each launch recoverable"


def _range_around(trace: Trace, call: int) -> str:
    """The innermost NVTX range of the default domain around a call; steps are no help, since profilers make them."""
    if call == NONE:
        return ""
    ranges, moment = trace.ranges, trace.api.start_ns[call]
    around = (ranges.thread == trace.api.thread[call]) & (ranges.start_ns <= moment) & (ranges.end_ns >= moment)
    rows = np.flatnonzero(around & (ranges.domain.codes == NONE) & ~ranges.name.like(PROFILER_STEP))
    names = ranges.name[rows[np.argsort(-ranges.start_ns[rows], kind="stable")]].texts
    return next((name for name in names if _PLAIN_RANGE.fullmatch(name)), "")


def _spans(trace: Trace, name: str) -> list[tuple[int, int]]:
    """The ranges of that name on the thread that has most of them."""
    ranges = trace.ranges[trace.ranges.name.equal(name) & (trace.ranges.end_ns != NONE)]
    rows = max((rows for _, rows in grouped(np.arange(len(ranges)), ranges.thread)), key=len)
    return list(zip(ranges.start_ns[rows].tolist(), ranges.end_ns[rows].tolist(), strict=True))
