"""Sensors, read through an NVML and an nvidia-smi of the test's own."""

from __future__ import annotations

import ctypes
import subprocess
from types import SimpleNamespace
from typing import Any

import pytest

from warpline.bench import watch
from warpline.bench.nvml import DeviceReading, open_nvml
from warpline.bench.watch import DeviceWatch, smi_reading


class Library:
    """One H200 under the power cap, on a driver that does not tell its power."""

    def nvmlInit_v2(self) -> int:  # noqa: N802
        return 0

    def nvmlDeviceGetHandleByUUID(self, name: bytes, handle: Any) -> int:  # noqa: N802
        return 0 if name == b"GPU-12" else 6

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:  # noqa: N802
        count._obj.value = 2
        return 0

    def nvmlDeviceGetClockInfo(self, handle: Any, kind: int, answer: Any) -> int:  # noqa: N802
        answer._obj.value = {1: 1755, 2: 3201}[kind]
        return 0

    def nvmlDeviceGetMaxClockInfo(self, handle: Any, kind: int, answer: Any) -> int:  # noqa: N802
        answer._obj.value = 1980
        return 0

    def nvmlDeviceGetTemperature(self, handle: Any, sensor: int, answer: Any) -> int:  # noqa: N802
        answer._obj.value = 61
        return 0

    def nvmlDeviceGetPowerUsage(self, handle: Any, answer: Any) -> int:  # noqa: N802
        return 3

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: Any, answer: Any) -> int:  # noqa: N802
        assert isinstance(answer._obj, ctypes.c_ulonglong)
        answer._obj.value = 0x1 | 0x4 | 0x40
        return 0


def test_what_nvml_says_and_does_not_say() -> None:
    sensors = open_nvml("12", Library())
    assert sensors is not None
    assert sensors.read() == DeviceReading(1755, 3201, 1980, 61, None, ("power cap", "thermal slowdown by hardware"))


def test_a_device_that_cannot_be_told_from_others_is_not_watched() -> None:
    assert open_nvml("34", Library()) is None


def test_nvidia_smi_is_the_second_source(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"one": "1980, 3201, 1980, 44, 127.31\n", "unknown": "1980, 3201, 1980, 44, [N/A]\n", "two": "1\n2\n"}
    said = {"answer": ""}
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: SimpleNamespace(stdout=said["answer"]))
    said["answer"] = answers["one"]
    assert smi_reading("12") == DeviceReading(1980, 3201, 1980, 44, 127.31, ())
    said["answer"] = answers["unknown"]
    assert smi_reading("12") == DeviceReading(1980, 3201, 1980, 44, None, ())
    said["answer"] = answers["two"]
    assert smi_reading("") is None


def test_without_either_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "open_nvml", lambda uuid: None)
    monkeypatch.setattr(watch, "smi_reading", lambda uuid: None)
    properties = SimpleNamespace(uuid="12")
    cuda = SimpleNamespace(get_device_properties=lambda index: properties, current_device=lambda: 0)
    found = watch.watch_device(SimpleNamespace(cuda=cuda))
    found.read()
    assert found.clocks() is None


def test_a_clock_held_low_for_a_reason_is_said() -> None:
    steady = DeviceWatch(lambda: DeviceReading(1410, 3201, 1980, 85, 700.0, ("power cap",)))
    steady.read()
    steady.read()
    clocks = steady.clocks()
    assert clocks is not None
    assert not clocks.fell
    assert clocks.sentence == "the clock was at 1,410 of 1,980 MHz (power cap)"
    steady.restart()
    assert steady.clocks() is None


def test_a_slow_source_is_asked_seldom() -> None:
    asked = []
    slow = DeviceWatch(lambda: asked.append(1), pause_s=3600.0)  # type: ignore[func-returns-value]
    for _ in range(5):
        slow.read()
    assert len(asked) == 1
    slow.restart()
    slow.read()
    assert len(asked) == 2
