"""Clocks, temperature and power during a measurement, and notes about them."""

from __future__ import annotations

import math
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from warpline.bench.nvml import DeviceReading, open_nvml

MIN_STEADY_CLOCK_SHARE = 0.97
"""If the clock drops by more than three percent, the result changes by about as much."""
SMI_PAUSE_S = 0.25
"""nvidia-smi starts a process and queries every device: tens to hundreds of milliseconds."""
_FIELDS = "clocks.sm,clocks.mem,clocks.max.sm,temperature.gpu,power.draw"


@dataclass(frozen=True, slots=True)
class Clocks:
    """The device's state during a measurement."""

    readings: int
    first_sm_mhz: int | None
    min_sm_mhz: int | None
    max_sm_mhz: int | None
    last_sm_mhz: int | None
    limit_sm_mhz: int | None
    """The device's maximum clock."""
    memory_mhz: int | None
    temperature_c: int | None
    """Maximum of the readings."""
    power_w: float | None
    """Maximum of the readings."""
    reasons: tuple[str, ...]

    @property
    def fell(self) -> bool:
        """Whether the clock changed enough to affect the result."""
        return bool(self.min_sm_mhz and self.max_sm_mhz and self.min_sm_mhz < MIN_STEADY_CLOCK_SHARE * self.max_sm_mhz)

    @property
    def sentence(self) -> str:
        """A note for the reader of the result; empty if the clock was steady."""
        why = f" ({', '.join(self.reasons)})" if self.reasons else ""
        if self.fell:
            low, high = f"{self.min_sm_mhz:,}", f"{self.max_sm_mhz:,}"
            path = f"fell from {high} to {low}" if self._falling else f"varied between {low} and {high}"
            return f"the clock {path} MHz during the measurement{why}"
        if (
            self.reasons
            and self.max_sm_mhz
            and self.limit_sm_mhz
            and self.max_sm_mhz < MIN_STEADY_CLOCK_SHARE * self.limit_sm_mhz
        ):
            return f"the clock was at {self.max_sm_mhz:,} of {self.limit_sm_mhz:,} MHz{why}"
        return ""

    @property
    def _falling(self) -> bool:
        return (self.first_sm_mhz or 0) >= (self.last_sm_mhz or 0)


@dataclass(slots=True)
class DeviceWatch:
    """Collects readings; without a source it collects none."""

    source: Callable[[], DeviceReading | None] | None
    pause_s: float = 0.0
    """Minimum time between readings: a slow source must not slow down the measurement."""
    readings: list[DeviceReading] = field(default_factory=list)
    _last_s: float = field(default=-math.inf, repr=False)

    def read(self) -> None:
        """Take a reading, unless it is too early."""
        if self.source is None or time.monotonic() - self._last_s < self.pause_s:
            return
        reading = self.source()
        self._last_s = time.monotonic()
        if reading is not None:
            self.readings.append(reading)

    def restart(self) -> None:
        """Discard all readings: during the warm-up the clock rises from idle."""
        self.readings.clear()
        self._last_s = -math.inf

    def clocks(self) -> Clocks | None:
        """A summary of all readings; None without any."""
        if not self.readings:
            return None
        sm = [reading.sm_mhz for reading in self.readings if reading.sm_mhz is not None]
        last = self.readings[-1]
        reasons = dict.fromkeys(reason for reading in self.readings for reason in reading.reasons)
        return Clocks(
            readings=len(self.readings),
            first_sm_mhz=sm[0] if sm else None,
            min_sm_mhz=min(sm, default=None),
            max_sm_mhz=max(sm, default=None),
            last_sm_mhz=sm[-1] if sm else None,
            limit_sm_mhz=last.max_sm_mhz,
            memory_mhz=last.memory_mhz,
            temperature_c=max((r.temperature_c for r in self.readings if r.temperature_c is not None), default=None),
            power_w=max((r.power_w for r in self.readings if r.power_w is not None), default=None),
            reasons=tuple(reasons),
        )


def watch_device(torch: Any) -> DeviceWatch:
    """Watch the current device with NVML, otherwise nvidia-smi, otherwise nothing."""
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    uuid = str(getattr(properties, "uuid", "") or "")
    sensors = open_nvml(uuid)
    if sensors is not None:
        return DeviceWatch(sensors.read)
    once = smi_reading(uuid)
    return DeviceWatch(None if once is None else lambda: smi_reading(uuid), SMI_PAUSE_S)


def smi_reading(uuid: str) -> DeviceReading | None:
    """A reading from nvidia-smi, which reports less and takes longer; None if it is missing."""
    rows = query_smi(_FIELDS, uuid)
    if len(rows) != 1:
        return None
    sm, memory, limit, temperature, power = (*map(_number, rows[0]), *[None] * 5)[:5]
    return DeviceReading(_whole(sm), _whole(memory), _whole(limit), _whole(temperature), power, ())


def query_smi(fields: str, uuid: str) -> list[list[str]]:
    """Query nvidia-smi: one row per device, or for one if its UUID is given; empty if it is missing."""
    device = ["-i", f"GPU-{uuid}"] if uuid else []
    command = ["nvidia-smi", *device, f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return [[part.strip() for part in line.split(",")] for line in answer.splitlines()]


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
