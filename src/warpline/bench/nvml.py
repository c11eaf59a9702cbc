"""The state of a device while it runs, through NVML; read-only."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

LIBRARY = "libnvidia-ml.so.1"
SM, MEMORY = 1, 2
REASONS = {
    0x2: "application clock setting",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "thermal slowdown by software",
    0x40: "thermal slowdown by hardware",
    0x80: "power brake",
    0x100: "display clock setting",
}
"""nvmlClocksEventReasons in nvml.h; 0x1 is an idle device and is not a slowdown."""


@dataclass(frozen=True, slots=True)
class DeviceReading:
    """A device at one moment."""

    sm_mhz: int | None
    memory_mhz: int | None
    max_sm_mhz: int | None
    temperature_c: int | None
    power_w: float | None
    reasons: tuple[str, ...]
    """Why the clock is below its maximum."""


class Nvml:
    """The sensors of one device."""

    def __init__(self, library: Any, handle: Any) -> None:
        self._library = library
        self._handle = handle

    def read(self) -> DeviceReading:
        """The current state; values that the driver does not report are None."""
        power = self._number(ctypes.c_uint, "nvmlDeviceGetPowerUsage")
        mask = self._number(ctypes.c_ulonglong, "nvmlDeviceGetCurrentClocksThrottleReasons") or 0
        return DeviceReading(
            sm_mhz=self._number(ctypes.c_uint, "nvmlDeviceGetClockInfo", SM),
            memory_mhz=self._number(ctypes.c_uint, "nvmlDeviceGetClockInfo", MEMORY),
            max_sm_mhz=self._number(ctypes.c_uint, "nvmlDeviceGetMaxClockInfo", SM),
            temperature_c=self._number(ctypes.c_uint, "nvmlDeviceGetTemperature", 0),
            power_w=power / 1000 if power is not None else None,
            reasons=tuple(reason for bit, reason in REASONS.items() if mask & bit),
        )

    def _number(self, kind: Callable[[], Any], function: str, *arguments: int) -> int | None:
        answer = kind()
        try:
            code = getattr(self._library, function)(self._handle, *arguments, ctypes.byref(answer))
        except AttributeError:
            return None
        return int(answer.value) if code == 0 else None


def open_nvml(uuid: str, library: Any = None) -> Nvml | None:
    """The sensors of the device with this UUID, or of the only device; None without NVML."""
    try:
        nvml = ctypes.CDLL(LIBRARY) if library is None else library
    except OSError:
        return None
    if nvml.nvmlInit_v2() != 0:
        return None
    handle = ctypes.c_void_p()
    name = uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
    if uuid and nvml.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(handle)) == 0:
        return Nvml(nvml, handle)
    count = ctypes.c_uint()
    alone = nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0 and count.value == 1
    if alone and nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle)) == 0:
        return Nvml(nvml, handle)
    return None
