"""What a report of Nsight Compute holds: kernels with metrics in base units, and counters per instruction."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from warpline.errors import UsageError
from warpline.sources.health import HealthEntry

Source = Literal["ncu-rep", "csv-raw", "csv-details"]
Dimensions = tuple[int, int, int]
MAX_NAMED = 20
"""Kernels that an error names."""


class Reading(Struct, frozen=True):
    """One measured value in a base unit: ns, byte, byte/s, hz, %, inst, cycle, warp, sector/s and so on."""

    value: float | str
    unit: str


class InstructionCounters(Struct, frozen=True):
    """The counters of one machine instruction."""

    address: int
    sass: str
    file: str
    """The source file, empty if the program was built without line information."""
    line: int
    """The line in that file, 0 where it is unknown."""
    counters: Mapping[str, float]
    """By metric: ``inst_executed``, ``smsp__pcsamp_sample_buffer_full`` and so on; zeros are left out."""


class SourceCounters(Struct, frozen=True):
    """Counters per instruction, in the order of addresses, and the source texts that the report carries."""

    instructions: tuple[InstructionCounters, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    """The text of each source file that was imported into the report (``--import-source``)."""


class KernelReport(Struct, frozen=True):
    """One profiled launch."""

    name: str
    """The demangled name, as the report or the CSV writes it."""
    function: str
    """The bare function name, which ``ncu --kernel-name`` matches by default."""
    launch: int
    """The number that ncu gave the launch (its ID)."""
    device: str
    """The device's name, for example ``NVIDIA H200``; empty where the source does not tell."""
    chip: str
    """The compute capability as a target: ``sm_90``; empty where the source does not tell."""
    grid: Dimensions | None
    block: Dimensions | None
    duration_ns: float | None
    """gpu__time_duration.sum, under the clocks that ncu set."""
    metrics: Mapping[str, Reading]
    """By metric name. What was not measured (n/a, nan, an empty cell) is absent."""
    kind: str = "kernel"
    """``kernel``, ``graph``, ``range`` or ``cmdlist``."""
    breakdowns: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Metrics that the report splits by a word, such as executed instructions by opcode."""
    nvtx: tuple[str, ...] = ()
    """The NVTX push/pop ranges around the launch, outermost first."""
    source: SourceCounters | None = None

    def number(self, metric: str) -> float | None:
        """The value of a metric; None where it was not measured or is a word."""
        reading = self.metrics.get(metric)
        return reading.value if reading is not None and isinstance(reading.value, float) else None


class NcuReport(Struct, frozen=True):
    """One file."""

    path: Path
    source: Source
    tool_version: str
    """The version of ncu that wrote it; empty where the source does not tell."""
    kernels: tuple[KernelReport, ...]
    health: tuple[HealthEntry, ...] = ()

    def only(self, wanted: str) -> NcuReport:
        """The report with these launches alone: the one of this number, or those whose function has this text in it."""
        number = int(wanted) if wanted.isdecimal() else None
        chosen = tuple(
            one for one in self.kernels if (wanted in one.function if number is None else one.launch == number)
        )
        if not chosen:
            known = ", ".join(dict.fromkeys(f"{one.launch} {one.function}" for one in self.kernels[:MAX_NAMED]))
            raise UsageError("no-such-kernel", f"{self.path} has no kernel {wanted!r}", f"it has {known}")
        return replace(self, kernels=chosen)
