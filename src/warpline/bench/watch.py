"""Clocks, temperature and power during a measurement, and what to say of them."""

from __future__ import annotations

import math
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from warpline.bench.nvml import Reading, open_nvml

FELL = 0.97
"""A clock that loses more than three percent changed the result by about as much."""
SMI_PAUSE_S = 0.25
"""nvidia-smi starts a process and asks every device of the machine: tens to hundreds of milliseconds."""
_FIELDS = "clocks.sm,clocks.mem,clocks.max.sm,temperature.gpu,power.draw"


@dataclass(frozen=True, slots=True)
class Clocks:
    """How the device stood over a measurement."""

    readings: int
    first_sm_mhz: int | None
    min_sm_mhz: int | None
    max_sm_mhz: int | None
    last_sm_mhz: int | None
    limit_sm_mhz: int | None
    """The highest clock that the device has."""
    memory_mhz: int | None
    temperature_c: int | None
    """The highest seen."""
    power_w: float | None
    """The highest seen."""
    reasons: tuple[str, ...]

    @property
    def fell(self) -> bool:
        """Whether the clock moved enough to change the result."""
        return bool(self.min_sm_mhz and self.max_sm_mhz and self.min_sm_mhz < FELL * self.max_sm_mhz)

    @property
    def sentence(self) -> str:
        """What a reader of the result must know; empty when all is well."""
        why = f" ({', '.join(self.reasons)})" if self.reasons else ""
        if self.fell:
            low, high = f"{self.min_sm_mhz:,}", f"{self.max_sm_mhz:,}"
            path = f"fell from {high} to {low}" if self._falling else f"moved between {low} and {high}"
            return f"the clock {path} MHz while it was timed{why}"
        if self.reasons and self.max_sm_mhz and self.limit_sm_mhz and self.max_sm_mhz < FELL * self.limit_sm_mhz:
            return f"the clock stood at {self.max_sm_mhz:,} of {self.limit_sm_mhz:,} MHz{why}"
        return ""

    @property
    def _falling(self) -> bool:
        return (self.first_sm_mhz or 0) >= (self.last_sm_mhz or 0)


@dataclass(slots=True)
class Watch:
    """Collects readings; without a source it collects none."""

    source: Callable[[], Reading | None] | None
    pause_s: float = 0.0
    """Between readings: a source that takes long must not slow down what it watches."""
    readings: list[Reading] = field(default_factory=list)
    _last_s: float = field(default=-math.inf, repr=False)

    def read(self) -> None:
        """One more reading, unless it is too early."""
        if self.source is None or time.monotonic() - self._last_s < self.pause_s:
            return
        reading = self.source()
        self._last_s = time.monotonic()
        if reading is not None:
            self.readings.append(reading)

    def restart(self) -> None:
        """Forgets what was read: the warm-up's clock rises from idle and says nothing."""
        self.readings.clear()
        self._last_s = -math.inf

    def clocks(self) -> Clocks | None:
        """All readings together; None without any."""
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


def watch_device(torch: Any) -> Watch:
    """A watch over the current device: by NVML, else by nvidia-smi, else none."""
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    uuid = str(getattr(properties, "uuid", "") or "")
    sensors = open_nvml(uuid)
    if sensors is not None:
        return Watch(sensors.read)
    once = smi_reading(uuid)
    return Watch(None if once is None else lambda: smi_reading(uuid), SMI_PAUSE_S)


def smi_reading(uuid: str) -> Reading | None:
    """The same from nvidia-smi, which says less and takes longer; None where it is absent."""
    rows = query_smi(_FIELDS, uuid)
    if len(rows) != 1:
        return None
    sm, memory, limit, temperature, power = (*map(_number, rows[0]), *[None] * 5)[:5]
    return Reading(_whole(sm), _whole(memory), _whole(limit), _whole(temperature), power, ())


def query_smi(fields: str, uuid: str) -> list[list[str]]:
    """What nvidia-smi answers, a row for each device, or for one where its UUID is given; none where it is absent."""
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
