"""Where each device's time goes: every nanosecond of the window is busy with one activity or idle.

Concurrent operations count once, for the first of compute, communication, copy and memset that runs
then; so the parts sum to the busy time, and busy and idle to the window, exactly.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from warpline.analyses.device import rows_by_device
from warpline.intervals import Spans, clip, complement, union
from warpline.kernels import identify
from warpline.kernels.collectives import MAY_COMMUNICATE
from warpline.trace.arrays import Bools, Int64s
from warpline.trace.schema import Gpu
from warpline.trace.table import Names
from warpline.trace.trace import Trace, Window

PRIORITY = ("compute", "comm", "copy", "memset")
"""Order in which concurrent activities claim the time."""


class DeviceTime(Struct, frozen=True):
    """The window of one device, partitioned."""

    device: int
    window_ns: int
    busy_ns: int
    idle_ns: int
    compute_ns: int
    comm_ns: int
    """Communication that does not overlap with computation; likewise below."""
    copy_ns: int
    memset_ns: int
    overlapped_comm_ns: int
    """Communication overlapped with computation: not part of the sum."""
    overlapped_copy_ns: int
    """Copies overlapped with computation or communication: not part of the sum."""
    host_copy_ns: int
    """The part of `copy_ns` in which nothing but copies from or to the host runs."""


def device_times(trace: Trace) -> list[DeviceTime]:
    """One partition per device with activity in the trace."""
    gpu, window = trace.gpu, trace.window
    found = activities_of(gpu)
    return [_partition(device, gpu[rows], found[rows], window) for device, rows in rows_by_device(gpu)]


def activities_of(gpu: Gpu) -> Int64s:
    """Activity of each row, as a position in PRIORITY."""
    found = np.where(communicates(gpu.name), PRIORITY.index("comm"), PRIORITY.index("compute"))
    found[gpu.kind.equal("memcpy")] = PRIORITY.index("copy")
    found[gpu.kind.equal("memset")] = PRIORITY.index("memset")
    return found


def communicates(kernels: Names) -> Bools:
    """Which kernels are collectives. Their names are the only evidence that every source has."""
    found = kernels.like(MAY_COMMUNICATE)
    found[found] = kernels[found].where(lambda name: identify(name).kernel_class == "comm")
    return found


def busy_spans(gpu: Gpu, window: Window) -> Spans:
    """When the device was busy."""
    return clip(union(gpu.start_ns, gpu.end_ns), window.start_ns, window.end_ns)


def idle_spans(gpu: Gpu, window: Window) -> Spans:
    """When the device was idle."""
    return complement(busy_spans(gpu, window), window.start_ns, window.end_ns)


def _partition(device: int, gpu: Gpu, activities: Int64s, window: Window) -> DeviceTime:
    def covered_ns(rows: Bools) -> int:
        return busy_spans(gpu[rows], window).total_ns()

    covered, exposed, alone = 0, {}, {}
    for number, part in enumerate(PRIORITY):
        reached = covered_ns(activities <= number)
        exposed[part], alone[part] = reached - covered, covered_ns(activities == number)
        covered = reached
    # Copies from or to the host, beside which no other copy, computation or communication runs.
    host = gpu.copy_kind.like("HtoD|DtoH|HtoH")
    others = ~host & (activities != PRIORITY.index("memset"))
    return DeviceTime(
        device=device,
        window_ns=window.length_ns,
        busy_ns=covered,
        idle_ns=window.length_ns - covered,
        compute_ns=exposed["compute"],
        comm_ns=exposed["comm"],
        copy_ns=exposed["copy"],
        memset_ns=exposed["memset"],
        overlapped_comm_ns=alone["comm"] - exposed["comm"],
        overlapped_copy_ns=alone["copy"] - exposed["copy"],
        host_copy_ns=covered_ns(host | others) - covered_ns(others),
    )
