"""Which device a trace ran on."""

from __future__ import annotations

from pathlib import Path

from kineto_files import kernel, write

from warpline.analyses.device import UNKNOWN_DEVICE, rows_by_device, trace_device
from warpline.trace.open import open_trace

DEVICES = [
    {"id": 0, "name": "Tesla T4", "computeMajor": 7, "computeMinor": 5, "numSms": 40},
    {"id": 1, "name": "NVIDIA H200", "computeMajor": 9, "computeMinor": 0, "numSms": 132},
]
EVENTS = [kernel("first", 0, 10, 1, device=0), kernel("second", 5, 30, 2, device=1)]


def test_the_device_with_most_of_the_time_counts(tmp_path: Path) -> None:
    trace = open_trace(write(tmp_path, EVENTS, deviceProperties=DEVICES), cache=False)
    name, chip = trace_device(trace)
    assert (name, chip.name if chip else None) == ("NVIDIA H200", "H200-SXM")
    assert trace_device(trace, "H100-SXM")[0] == "H100-SXM"
    assert {device: rows.tolist() for device, rows in rows_by_device(trace.gpu)} == {0: [0], 1: [1]}


def test_a_trace_without_a_list_of_devices_has_an_unknown_one(tmp_path: Path) -> None:
    assert trace_device(open_trace(write(tmp_path, EVENTS, deviceProperties=[]), cache=False)) == (UNKNOWN_DEVICE, None)
