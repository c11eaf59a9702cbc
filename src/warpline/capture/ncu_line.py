"""Which launches ncu profiles, and with which sections: the part of its command line that depends on the kernel."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from warpline.capture.flags import Flag, flag

SECTIONS = {
    "SpeedOfLight": "which unit limits",
    "LaunchStats": "whether the grid suffices",
    "Occupancy": "whether enough warps fit",
    "WorkloadDistribution": "whether all SMs work equally long",
    "SchedulerStats": "whether warps are ready",
    "WarpStateStats": "what warps wait for",
    "MemoryWorkloadAnalysis": "hit rates",
    "MemoryWorkloadAnalysis_Tables": "sectors per request, bank conflicts, spills",
    "SourceCounters": "the instructions that cause them",
    "ComputeWorkloadAnalysis": "pipes",
    "InstructionStats": "the mix of instructions",
    "SpeedOfLight_HierarchicalSingleRooflineChart": "FLOPs by type",
}
"""The sections that the tree reads, each with what it tells."""
COMPUTE = ("ComputeWorkloadAnalysis", "InstructionStats", "SpeedOfLight_HierarchicalSingleRooflineChart")
"""Those that a kernel which is bound by memory does not need."""
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
    is_memory = set(bounds) <= {"memory"}
    return tuple(name for name in SECTIONS if not (is_memory and name in COMPUTE))


def section_flags(names: Iterable[str]) -> list[Flag]:
    """The flags that record these sections."""
    return [flag("--section", name, why=SECTIONS.get(name, "")) for name in names]


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
    flags += section_flags(focus.sections)
    flags.append(flag("--replay-mode", "kernel", why="repeat each kernel for each pass, with its memory restored"))
    if focus.source:
        flags.append(flag("--import-source", "yes", why="keep the source lines in the report"))
    return flags
