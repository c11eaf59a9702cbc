"""Which device a trace ran on."""

from __future__ import annotations

from pathlib import Path

import pytest
from kineto_files import kernel, write

from warpline.analyses.device import UNKNOWN_DEVICE, rows_by_device, trace_device, trace_host_link
from warpline.findings.diagnosis import diagnose
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


def test_a_list_with_one_name_names_every_device(tmp_path: Path) -> None:
    """ROCm lists device 0, and its kernels run on device 9."""
    path = write(tmp_path, [kernel("first", 0, 10, 1, device=9)], deviceProperties=DEVICES[:1])
    assert trace_device(open_trace(path, cache=False))[0] == "Tesla T4"
    assert diagnose(open_trace(path, cache=False)).device_name == "Tesla T4"


def test_of_several_names_none_is_that_of_a_device_without_an_entry(tmp_path: Path) -> None:
    path = write(tmp_path, [kernel("first", 0, 10, 1, device=9)], deviceProperties=DEVICES)
    assert trace_device(open_trace(path, cache=False)) == (UNKNOWN_DEVICE, None)


@pytest.mark.parametrize(
    ("name", "compute", "gbs"),
    [
        ("NVIDIA GeForce GTX 1050 Ti", (6, 1), 15.75),
        ("Quadro RTX 8000", (7, 5), 15.75),
        ("NVIDIA RTX A4000", (8, 6), 31.5),
        ("NVIDIA H800", (9, 0), 63.0),
        ("AMD Radeon RX 7900 XTX", (11, 0), 31.5),
        ("Orin", (8, 7), None),
    ],
)
def test_the_link_to_the_host_is_that_of_the_architecture(
    name: str, compute: tuple[int, int], gbs: float | None, tmp_path: Path
) -> None:
    device = {"id": 0, "name": name, "computeMajor": compute[0], "computeMinor": compute[1]}
    link = trace_host_link(open_trace(write(tmp_path, EVENTS[:1], deviceProperties=[device]), cache=False))
    assert (link.value / 1e9 if link else None) == gbs


def test_a_trace_without_a_list_of_devices_has_an_unknown_one(tmp_path: Path) -> None:
    assert trace_device(open_trace(write(tmp_path, EVENTS, deviceProperties=[]), cache=False)) == (UNKNOWN_DEVICE, None)
