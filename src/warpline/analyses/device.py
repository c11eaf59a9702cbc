"""Which device a trace ran on, and its chip."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from warpline.hardware import Chip, CitedFigure, chip_named, find_device
from warpline.hardware.find import chips_like, host_link
from warpline.trace.arrays import NONE, Int64s, grouped
from warpline.trace.schema import Gpu
from warpline.trace.table import filled
from warpline.trace.trace import Trace

UNKNOWN_DEVICE = "unknown device"


def trace_device(trace: Trace, wanted: str | None = None) -> tuple[str, Chip | None]:
    """The device's name and its chip: the requested one, else the one that most of the trace ran on."""
    if wanted is not None:
        return wanted, chip_named(wanted)
    row = _listed(trace, _busiest_device(trace.gpu))
    name, chip = (None, None) if row is None else _named(trace, row)
    return name or UNKNOWN_DEVICE, chip


def _named(trace: Trace, row: int) -> tuple[str | None, Chip | None]:
    """Name and chip of a listed device; without a name, the chip's, if its size tells which it is."""
    devices = trace.devices
    sm_count, memory_bytes = (
        None if (value := int(column[row])) == NONE else value for column in (devices.sm_count, devices.memory_bytes)
    )
    chip = find_device(devices.name[row], sm_count, _compute(trace, row), memory_bytes)
    return devices.name[row] or (chip.name if chip is not None else None), chip


def trace_host_link(trace: Trace) -> CitedFigure | None:
    """What the link between host and device carries at most, by the device's architecture; None if that is unknown."""
    known = _busiest_known(trace)
    return None if known is None else host_link(*known)


def trace_peers(trace: Trace) -> tuple[Chip, ...]:
    """The known chips like the device, by its architecture; none if that is unknown."""
    known = _busiest_known(trace)
    return () if known is None else chips_like(*known)


def _busiest_known(trace: Trace) -> tuple[str | None, tuple[int, int]] | None:
    """The name and the compute capability of the busiest device; None if the capability is unknown."""
    row = _listed(trace, _busiest_device(trace.gpu))
    compute = None if row is None else _compute(trace, row)
    return None if row is None or compute is None else (trace.devices.name[row], compute)


def _compute(trace: Trace, row: int) -> tuple[int, int] | None:
    """The compute capability of a listed device, if recorded."""
    major, minor = int(trace.devices.compute_major[row]), int(trace.devices.compute_minor[row])
    return None if NONE in (major, minor) else (major, minor)


def device_name(trace: Trace, device: int) -> str | None:
    """The name of a device, if the trace tells it."""
    row = _listed(trace, device)
    return None if row is None else _named(trace, row)[0]


def _listed(trace: Trace, device: int) -> int | None:
    """The row of a device in the trace's list. ROCm numbers devices otherwise in its list than in its events: a list
    with one name only, be it of one device or of eight, names every device."""
    devices = trace.devices
    matching = np.flatnonzero(devices.device == device)
    if len(matching):
        return int(matching[0])
    return 0 if len(set(devices.name.tolist())) == 1 else None


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
