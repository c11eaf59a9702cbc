"""Which device a trace ran on, and its chip."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from warpline.hardware import Chip, chip_named, find_device
from warpline.trace.arrays import NONE, Int64s, grouped
from warpline.trace.schema import Gpu
from warpline.trace.table import filled
from warpline.trace.trace import Trace

UNKNOWN_DEVICE = "unknown device"


def trace_device(trace: Trace, wanted: str | None = None) -> tuple[str, Chip | None]:
    """The device's name and its chip: the requested one, else the one that most of the trace ran on."""
    if wanted is not None:
        return wanted, chip_named(wanted)
    devices = trace.devices
    if not len(devices):
        return UNKNOWN_DEVICE, None
    # Some profiles number devices otherwise in their list than in their events.
    matching = np.flatnonzero(devices.device == _busiest_device(trace.gpu))
    row = int(matching[0]) if len(matching) else 0
    name, sm_count = devices.name[row], int(devices.sm_count[row])
    major, minor = int(devices.compute_major[row]), int(devices.compute_minor[row])
    compute = None if NONE in (major, minor) else (major, minor)
    return name or UNKNOWN_DEVICE, find_device(name, None if sm_count == NONE else sm_count, compute)


def rows_by_device(gpu: Gpu) -> Iterator[tuple[int, Int64s]]:
    """Each device, in ascending order, with its rows; rows without a device are the first one's."""
    return grouped(np.arange(len(gpu)), filled(gpu.device, 0))


def _busiest_device(gpu: Gpu) -> int:
    """The device that has most of the time, NONE for the unnumbered one; of several, the last."""
    if not len(gpu):
        return NONE
    numbers, which = np.unique(gpu.device, return_inverse=True)
    time_ns = np.bincount(which, gpu.end_ns - gpu.start_ns)
    return int(numbers[np.lexsort((numbers, time_ns))[-1]])
