"""Lists the metrics of a chip with libnvperf_host, which nvidia-cuda-cupti and ncu-report ship; no GPU is needed.

``python nvperf.py LIBRARY [CHIP…]`` prints one line of JSON per chip. It runs in a process of its own, because the
library is NVIDIA's C code. The calls are those of nvperf_host.h and nvperf_cuda_host.h.
"""

from __future__ import annotations

import ctypes
import json
import sys
from typing import Any, Final

TYPES: Final = ("counter", "ratio", "throughput")
"""NVPW_MetricType, by its number."""
FAILED = 1


def _struct(name: str, *fields: tuple[str, Any]) -> type[ctypes.Structure]:
    """A parameter struct of the library: each begins with its own size and a pointer that is always null."""
    head: list[tuple[str, Any]] = [("structSize", ctypes.c_size_t), ("pPriv", ctypes.c_void_p)]
    return type(name, (ctypes.Structure,), {"_fields_": head + list(fields)})


_Initialize = _struct("InitializeHost")
_Chips = _struct("GetSupportedChipNames", ("names", ctypes.POINTER(ctypes.c_char_p)), ("count", ctypes.c_size_t))
_Scratch = _struct(
    "CalculateScratchBufferSize",
    ("chip", ctypes.c_char_p),
    ("availability", ctypes.c_void_p),
    ("size", ctypes.c_size_t),
)
_Evaluator = _struct(
    "MetricsEvaluatorInitialize",
    ("scratch", ctypes.c_void_p),
    ("scratch_size", ctypes.c_size_t),
    ("chip", ctypes.c_char_p),
    ("availability", ctypes.c_void_p),
    ("data", ctypes.c_void_p),
    ("data_size", ctypes.c_size_t),
    ("evaluator", ctypes.c_void_p),
)
_Names = _struct(
    "GetMetricNames",
    ("evaluator", ctypes.c_void_p),
    ("metric_type", ctypes.c_uint8),
    ("names", ctypes.c_void_p),
    ("begins", ctypes.POINTER(ctypes.c_size_t)),
    ("count", ctypes.c_size_t),
)
_Destroy = _struct("MetricsEvaluatorDestroy", ("evaluator", ctypes.c_void_p))


class _Failed(Exception):
    """The library refused a call."""


class Library:
    """libnvperf_host, loaded."""

    def __init__(self, path: str) -> None:
        self._library = ctypes.CDLL(path)
        self._call("NVPW_InitializeHost", _Initialize)

    def _call(self, function: str, kind: type[ctypes.Structure], **values: Any) -> Any:
        params: Any = kind()
        params.structSize = ctypes.sizeof(kind)
        for name, value in values.items():
            setattr(params, name, value)
        status = getattr(self._library, function)(ctypes.byref(params))
        if status:
            raise _Failed(f"{function} returned {status}")
        return params

    def chips(self) -> list[str]:
        """The chips that the library knows, for example GH100."""
        found = self._call("NVPW_GetSupportedChipNames", _Chips)
        return [found.names[at].decode() for at in range(found.count)]

    def metrics(self, chip: str) -> dict[str, list[str]]:
        """The names of a chip's metrics, without suffixes, by their type."""
        name = chip.encode()
        size = self._call("NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize", _Scratch, chip=name).size
        buffer = ctypes.create_string_buffer(size)
        evaluator = self._call(
            "NVPW_CUDA_MetricsEvaluator_Initialize",
            _Evaluator,
            scratch=ctypes.cast(buffer, ctypes.c_void_p),
            scratch_size=size,
            chip=name,
        ).evaluator
        try:
            return {word: self._names(evaluator, number) for number, word in enumerate(TYPES)}
        finally:
            self._call("NVPW_MetricsEvaluator_Destroy", _Destroy, evaluator=evaluator)

    def _names(self, evaluator: int, kind: int) -> list[str]:
        found = self._call("NVPW_MetricsEvaluator_GetMetricNames", _Names, evaluator=evaluator, metric_type=kind)
        return [ctypes.string_at(found.names + found.begins[at]).decode() for at in range(found.count)]


def main(path: str, chips: list[str]) -> int:
    """Print the metrics of the chips, or of all."""
    try:
        library = Library(path)
        for chip in chips or library.chips():
            json.dump({"chip": chip, **library.metrics(chip)}, sys.stdout, separators=(",", ":"))
            sys.stdout.write("\n")
    except (OSError, AttributeError, _Failed) as error:
        sys.stderr.write(f"{error}\n")
        return FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
