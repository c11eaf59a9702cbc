"""Find the chip of a trace from its device facts."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files

from warpline.hardware.chips import PCIE_SOURCE, Chip, CitedFigure, chips

_SLICE = re.compile(r"\bMIG\b", re.IGNORECASE)
"""A slice of a chip (Multi-Instance GPU) has a fraction of its peaks."""
_NAMELESS = {"AMD Radeon Graphics"}
"""What AMD's driver says of every chip whose name it does not know, Instinct or not."""
_AMD = re.compile(r"\b(AMD|Radeon|Instinct|gfx)", re.IGNORECASE)
MAX_RESERVED_SHARE = 0.1
"""Of a device's memory, what error correction and the driver keep: 6 % on cards with GDDR6, nothing on MI300X."""
_SHARED_MEMORY = {(5, 3), (6, 2), (7, 2), (8, 7), (11, 0), (12, 1)}
"""Compute capabilities of Tegra, Thor and GB10, whose memory is the host's."""


def find_device(
    name: str | None,
    sm_count: int | None = None,
    compute: tuple[int, int] | None = None,
    memory_bytes: int | None = None,
) -> Chip | None:
    """The chip with this name, SM count, compute capability and memory; None if unsure.

    A name decides, unless the SM count or compute capability contradict it. Without a name, all must match exactly one
    chip.
    """
    text = (name or "").strip()
    if text in _NAMELESS:
        text = ""
    if _SLICE.search(text):
        return None
    if not text and (sm_count is None or compute is None):
        return None
    fitting = [
        chip
        for chip in chips()
        if (sm_count is None or chip.sm_count == sm_count) and (compute is None or chip.compute == compute)
    ]
    called = [chip for chip in fitting if (chip.is_called(text) if text else _has_memory(chip, memory_bytes))]
    return called[0] if len(called) == 1 else None


def _has_memory(chip: Chip, memory_bytes: int | None) -> bool:
    """Whether a chip has so much memory, less what its driver keeps for itself; true where either is unknown."""
    if memory_bytes is None or not chip.memory_bytes:
        return True
    return (1 - MAX_RESERVED_SHARE) * chip.memory_bytes <= memory_bytes <= chip.memory_bytes


def chips_like(name: str | None, compute: tuple[int, int]) -> tuple[Chip, ...]:
    """The known NVIDIA chips of an unknown one's architecture and kind: GeForce cards have half the tensor rate of the
    professional ones with the same chip."""
    if _AMD.search(name or ""):
        return ()
    alike = [chip for chip in chips() if chip.vendor == "nvidia" and chip.compute == compute]
    kind = [chip for chip in alike if _is_geforce(" ".join(chip.matches)) == _is_geforce(name or "")]
    return tuple(kind or alike)


def _is_geforce(name: str) -> bool:
    return "GeForce" in name


def host_link(name: str | None, compute: tuple[int, int]) -> CitedFigure | None:
    """What the link to the host carries at most in one direction, by the chip's architecture; None if it has none, or
    if that is unknown."""
    vendor = "amd" if _AMD.search(name or "") else "nvidia"
    is_shared = any(chip.shares_memory and chip.is_called(name or "") for chip in chips())
    if is_shared or (vendor == "nvidia" and compute in _SHARED_MEMORY):
        return None
    major, minor = compute
    table = _pcie()[vendor]
    rate = table.get(f"{major}.{minor}", table.get(str(major)))
    return None if rate is None else CitedFigure(rate * 1e9, PCIE_SOURCE)


@cache
def _pcie() -> dict[str, dict[str, float]]:
    text = files("warpline.hardware").joinpath("data", "pcie.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
