"""Which launches ncu profiles, and with which sections: the part of its command line that depends on the kernel."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from warpline.capture.flags import Flag, flag

ALWAYS = ("SpeedOfLight", "LaunchStats", "Occupancy", "WorkloadDistribution", "SchedulerStats", "WarpStateStats")
"""Which unit limits, whether the grid and the occupancy suffice, and what warps wait for."""
MEMORY = ("MemoryWorkloadAnalysis", "MemoryWorkloadAnalysis_Tables", "SourceCounters")
"""Hit rates, sectors per request, bank conflicts, spills; the instructions that cause them."""
COMPUTE = ("ComputeWorkloadAnalysis", "InstructionStats", "SpeedOfLight_HierarchicalSingleRooflineChart")
"""Pipes, the mix of instructions, and FLOPs by type."""
LOG = "ncu.log"


@dataclass(frozen=True)
class Focus:
    """The launches to profile: those of some functions, from one on."""

    functions: tuple[str, ...]
    """Bare function names, as --kernel-name-base function has them."""
    skip: int
    """Launches of these functions that come first."""
    count: int
    sections: tuple[str, ...]
    nvtx: str = ""
    """The push/pop range in which launches count; empty for all."""
    source: bool = False
    """Keep the program's source in the report."""


def sections_for(bounds: Iterable[str]) -> tuple[str, ...]:
    """The fewest sections that answer why a kernel is slow, by what the roofline says bounds it."""
    asked = set(bounds)
    extra = MEMORY if asked <= {"memory"} else (*MEMORY, *COMPUTE)
    return (*ALWAYS, *extra)


def name_filter(functions: Sequence[str]) -> str:
    """The value of --kernel-name: the function itself, or a pattern for several."""
    unique = sorted(set(functions))
    if len(unique) == 1 and re.fullmatch(r"\w+", unique[0]):
        return unique[0]
    escaped = "|".join(re.sub(r"(\W)", r"\\\1", name) for name in unique)
    return f"regex:^({escaped})$"


def focus_flags(focus: Focus) -> list[Flag]:
    """The flags that select launches and sections."""
    flags = [
        flag("--kernel-name", name_filter(focus.functions), why="the bare function name, which both tools agree on"),
        flag("--launch-skip", str(focus.skip), why="launches of that name before it, counted in the timeline"),
        flag("--launch-count", str(focus.count), why="and no more"),
    ]
    if focus.nvtx:
        flags += [
            flag("--nvtx", why="follow NVTX ranges"),
            flag("--nvtx-include", f"{focus.nvtx}/", why="count only launches within this range"),
        ]
    flags += [flag("--section", name, why="") for name in focus.sections]
    flags.append(flag("--replay-mode", "kernel", why="repeat each kernel for each pass, with its memory restored"))
    if focus.source:
        flags.append(flag("--import-source", "yes", why="keep the source lines in the report"))
    return flags
