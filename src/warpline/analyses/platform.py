"""Whether a trace is of a program on NVIDIA's platform or on AMD's."""

from __future__ import annotations

import re

from warpline.hardware.vocabulary import Platform
from warpline.kernels.decode import identify
from warpline.trace.trace import Trace

AMD = re.compile(r"\bAMD\b|\bMI\d{2,3}|Radeon|gfx\d", re.IGNORECASE)
"""Names of AMD's devices."""


def platform_of(trace: Trace) -> Platform:
    """AMD's by the name of a device or an API call, or without calls by that of a kernel; else NVIDIA's."""
    return trace.once(_platform_of)


def _platform_of(trace: Trace) -> Platform:
    named = any(AMD.search(name) for name in trace.devices.name if name)
    if named or trace.api.name.like(r"^hip").any():
        return "hip"
    if trace.api.name.like(r"^(?:cuda|cu)[A-Z]").any():
        return "cuda"  # and no name of a kernel says otherwise
    return "hip" if any(identify(name).is_amd for name in trace.gpu.name.present()) else "cuda"
