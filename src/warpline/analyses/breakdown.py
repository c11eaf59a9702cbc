"""Where each device's time goes: every nanosecond of the window is busy with one activity or idle.

Concurrent operations count once, for the first of compute, communication, copy and memset that runs
then; so the parts sum to the busy time, and busy and idle to the window, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from warpline.intervals import Spans, Times, clip, complement, union
from warpline.kernels import identify
from warpline.trace.columns import integers
from warpline.trace.trace import Trace, Window

PRIORITY = ("compute", "comm", "copy", "memset")
"""Order in which concurrent activities claim the time."""


@dataclass(frozen=True, slots=True)
class DeviceTime:
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


def activity(kind: str, name: str | None) -> str:
    """Activity of each row of `gpu`: compute, comm, copy or memset.

    Collectives are detected by name, the only evidence that every source has.
    """
    if kind == "memcpy":
        return "copy"
    if kind == "memset":
        return "memset"
    return "comm" if name is not None and identify(name).kernel_class == "comm" else "compute"


def device_times(trace: Trace) -> list[DeviceTime]:
    """One partition per device with activity in the trace."""
    window = trace.window
    labelled = _labelled(trace.gpu)
    return [_partition(rows, int(device), window) for (device,), rows in sorted(labelled.group_by("device"))]


def _labelled(gpu: pl.DataFrame) -> pl.DataFrame:
    """Device, times and activity; each distinct name is matched once."""
    names = gpu.select("kind", "name").unique()
    labels = names.with_columns(
        activity=pl.Series([activity(kind, name) for kind, name in names.iter_rows()], dtype=pl.String)
    )
    return gpu.select(pl.col("device").fill_null(0), "kind", "name", "start_ns", "end_ns").join(
        labels, on=["kind", "name"], how="left", nulls_equal=True, maintain_order="left"
    )


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
    for part in PRIORITY:
        mine = labels == part
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
    )


def _covered_ns(starts: Times, ends: Times, window: Window) -> int:
    return clip(union(starts, ends), window.start_ns, window.end_ns).total_ns()
