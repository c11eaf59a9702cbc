"""The launches of a timeline by kernel, geometry and shapes: what Nsight Compute calls the same kernel."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from warpline.sources.ncu.model import Dimensions
from warpline.trace.arrays import NONE, Int64s, combinations, grouped
from warpline.trace.schema import Gpu
from warpline.trace.trace import Trace


class LaunchGroup(Struct, frozen=True):
    """Launches of one kernel with one geometry and one set of shapes."""

    name: str
    shapes: str
    """Shapes of the op that launched them; empty where the timeline records none."""
    grid: Dimensions | None
    block: Dimensions | None
    rows: tuple[int, ...]
    """Rows of `gpu`, in the order given."""
    time_ns: int
    """Of all these rows together."""


def launch_groups(trace: Trace, rows: Int64s, least_ns: float = 0.0) -> list[LaunchGroup]:
    """These rows of `gpu` in groups that take at least so long, each where its first launch stands."""
    gpu, shapes = trace.gpu[rows], trace.ops.shapes.at(trace.gpu.op_id[rows])
    geometry = (gpu.grid_x, gpu.grid_y, gpu.grid_z, gpu.block_x, gpu.block_y, gpu.block_z)
    _, which = combinations(gpu.name.codes, shapes.codes, *geometry)
    time_ns = np.bincount(which, gpu.end_ns - gpu.start_ns)
    large = np.flatnonzero(time_ns[which] >= least_ns)
    found = []
    for group, places in sorted(grouped(large, which[large]), key=lambda one: int(one[1][0])):
        first = int(places[0])
        found.append(
            LaunchGroup(
                name=gpu.name.text(first) or "",
                shapes=shapes.text(first) or "",
                grid=_dimensions(gpu, "grid", first),
                block=_dimensions(gpu, "block", first),
                rows=tuple(rows[places].tolist()),
                time_ns=int(time_ns[group]),
            )
        )
    return found


def _dimensions(gpu: Gpu, what: str, row: int) -> Dimensions | None:
    x, y, z = (int(gpu.column(f"{what}_{axis}")[row]) for axis in "xyz")
    return None if NONE in {x, y, z} else (x, y, z)
