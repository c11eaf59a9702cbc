"""Where each device's time goes: every nanosecond of the window is busy with one activity or idle.

Concurrent operations count once, for the first of compute, communication, copy and memset that runs
then; so the parts sum to the busy time, and busy and idle to the window, exactly.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl
from msgspec import Struct

from warpline.intervals import Spans, Times, clip, complement, union
from warpline.kernels import identify
from warpline.kernels.collectives import MARKS, may_communicate
from warpline.trace.arrays import integers, per_device
from warpline.trace.names import names_in, rows_like
from warpline.trace.trace import Trace, Window

Labels = npt.NDArray[np.uint8]

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


def activity(kind: str, name: str | None) -> str:
    """Activity of each row of `gpu`: compute, comm, copy or memset.

    Collectives are detected by name, the only evidence that every source has.
    """
    if kind == "memcpy":
        return "copy"
    if kind == "memset":
        return "memset"
    if name is None or not may_communicate(name):
        return "compute"
    return "comm" if identify(name).kernel_class == "comm" else "compute"


def device_times(trace: Trace) -> list[DeviceTime]:
    """One partition per device with activity in the trace."""
    window = trace.window
    return [_partition(rows, device, window) for device, rows in per_device(_labelled(trace.stored("gpu")))]


def _labelled(gpu: pl.DataFrame) -> pl.DataFrame:
    """Device, times, activity, and whether it is a copy from or to the host; each distinct name is matched once."""
    names = names_in(gpu)
    plain = pl.col("name").str.to_lowercase().str.replace_all("_", "", literal=True)
    doubtful = pl.DataFrame({"name": names.names}).select(plain.str.contains(MARKS))["name"].to_numpy()
    of_name = np.full(len(doubtful) + 1, PRIORITY.index("compute"), np.uint8)
    for number in np.flatnonzero(doubtful).tolist():
        of_name[number] = PRIORITY.index(activity("kernel", names.names[number]))
    labels = of_name[names.which]
    for kind in ("memcpy", "memset"):
        labels[rows_like(gpu, f"^{kind}$", "kind")] = PRIORITY.index(activity(kind, None))
    host = rows_like(gpu, "HtoD|DtoH|HtoH", "copy_kind")
    found = [pl.Series("activity", labels), pl.Series("is_host_copy", host)]
    return gpu[["device", "start_ns", "end_ns"]].hstack(found)


def busy_spans(gpu: pl.DataFrame, window: Window) -> Spans:
    """When the device was busy."""
    return clip(union(integers(gpu["start_ns"]), integers(gpu["end_ns"])), window.start_ns, window.end_ns)


def idle_spans(gpu: pl.DataFrame, window: Window) -> Spans:
    """When the device was idle."""
    return complement(busy_spans(gpu, window), window.start_ns, window.end_ns)


def _partition(rows: pl.DataFrame, device: int, window: Window) -> DeviceTime:
    covered, exposed, alone = 0, {}, {}
    starts, ends, labels = integers(rows["start_ns"]), integers(rows["end_ns"]), rows["activity"].to_numpy()
    so_far = np.zeros(len(rows), bool)
    for number, part in enumerate(PRIORITY):
        mine = labels == number
        exposed[part] = alone[part] = 0
        if mine.any():
            so_far |= mine
            reached = _covered_ns(starts[so_far], ends[so_far], window)
            exposed[part] = reached - covered
            alone[part] = _covered_ns(starts[mine], ends[mine], window)
            covered = reached
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
        host_copy_ns=_host_copies_ns(rows, starts, ends, labels, window),
    )


def _host_copies_ns(rows: pl.DataFrame, starts: Times, ends: Times, labels: Labels, window: Window) -> int:
    """Time in which copies from or to the host run, and no other copy, computation or communication."""
    host = rows["is_host_copy"].to_numpy()
    others = ~host & (labels != PRIORITY.index("memset"))
    return (
        _covered_ns(starts[host | others], ends[host | others], window)
        - _covered_ns(starts[others], ends[others], window)
        if host.any()
        else 0
    )


def _covered_ns(starts: Times, ends: Times, window: Window) -> int:
    return clip(union(starts, ends), window.start_ns, window.end_ns).total_ns()
