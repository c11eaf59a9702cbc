"""The command lines of nsys and ncu, each flag with its reason."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from warpline.capture.plan import NCU, NSYS, Plan
from warpline.errors import WarplineError

_WHERE = {NSYS: "WARPLINE_NSYS", NCU: "WARPLINE_NCU"}
_NAMES = {NSYS: ("Nsight Systems", "nsight-systems"), NCU: ("Nsight Compute", "nsight-compute")}
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
NCU_LAUNCHES = 20
"""Kernels that ncu profiles: each is replayed about 34 times."""


@dataclass(frozen=True)
class Flag:
    """A part of a command line and its reason."""

    words: tuple[str, ...]
    why: str


def flag(*words: str, why: str) -> Flag:
    """A flag, shortly."""
    return Flag(words, why)


def words_of(flags: Sequence[Flag]) -> list[str]:
    """The command line."""
    return [word for one in flags for word in one.words]


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


@dataclass(frozen=True)
class FirstKernels:
    """The first launches, where nobody knows which ones matter."""

    kernel: str = ""
    """Only kernels whose name matches this pattern; all if empty."""
    count: int = NCU_LAUNCHES


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


def find_tool(tool: str) -> str:
    """The path of nsys or ncu; raise an error with a hint if it is missing."""
    named = os.environ.get(_WHERE[tool], "")
    found = shutil.which(named or tool)
    if found is None:
        what = f"{_WHERE[tool]} names {named}, which cannot be run" if named else f"{tool} is not on PATH"
        name, page = _NAMES[tool]
        hint = f"install {name} (https://developer.nvidia.com/{page}), or type: export {_WHERE[tool]}=/path/to/{tool}"
        raise WarplineError(f"{tool}-missing", what, hint)
    return found


def tool_or_name(tool: str) -> str:
    """The path of nsys or ncu, or its name where it is not installed."""
    try:
        return find_tool(tool)
    except WarplineError:
        return tool


def nsys_flags(nsys: str, plan: Plan, by_range: bool, extra: Sequence[str] = (), stop: bool = False) -> list[Flag]:
    """Record CUDA, NVTX and operating-system events in the range that the program's steps open and close."""
    flags = [
        flag(nsys, "profile", why="Nsight Systems: a timeline of the whole process"),
        flag("--trace=cuda,nvtx,osrt", why="CUDA calls and kernels, NVTX ranges, and blocking OS calls"),
        flag("--sample=none", why="no CPU sampling: it needs permissions and makes reports large"),
        flag("--cpuctxsw=none", why="no thread scheduling, for the same reasons"),
        flag("--cuda-graph-trace=node", why="kernels inside CUDA graphs one by one; `graph` shows one bar"),
        flag("--force-overwrite=true", why="the folder belongs to this run"),
    ]
    if by_range:
        flags += [
            flag("--capture-range=cudaProfilerApi", why="record only the steps that warpline's step finder opens"),
            flag(f"--capture-range-end=stop{'-shutdown' if stop else ''}", why="stop recording when it closes them"),
        ]
    else:
        flags.append(flag(f"--duration={max(round(plan.seconds), 1)}", why="maximum length in seconds"))
    flags.append(
        flag("--kill=sigterm", why="then end the program")
        if stop
        else flag("--kill=none", why="let the program continue")
    )
    flags += [Flag((word,), "yours") for word in extra]
    return [*flags, flag(f"--output={Path(plan.folder) / 'trace'}", why="where the report goes")]


def ncu_flags(
    ncu: str,
    plan: Plan,
    by_range: bool,
    chosen: Focus | FirstKernels,
    extra: Sequence[str] = (),
    stop: bool = False,
) -> list[Flag]:
    """Profile some kernels with hardware counters: those of a focus, or the first ones."""
    flags = [
        flag(ncu, why="Nsight Compute: hardware counters of single kernels, each replayed many times"),
        flag("--target-processes=all", why="include child processes: torchrun, workers"),
        flag("--clock-control=none", why="do not lock the clocks, which would change the times"),
        flag("--force-overwrite", why="the folder belongs to this run"),
    ]
    if isinstance(chosen, Focus):
        flags += focus_flags(chosen)
    else:
        flags += section_flags(SECTIONS)
        flags.append(flag(f"--launch-count={chosen.count}", why="maximum number of kernels"))
        if chosen.kernel:
            flags.append(flag("--kernel-name", f"regex:{chosen.kernel}", why="only kernels of that name"))
    if by_range:
        flags.append(
            flag("--profile-from-start=off", why="start when warpline's step finder has seen the warm-up steps")
        )
    if stop:
        flags.append(flag("--kill=yes", why="end the program when all of them are profiled"))
    flags += [Flag((word,), "yours") for word in extra]
    folder = Path(plan.folder)
    return [
        *flags,
        flag("--log-file", str(folder / LOG), why="ncu's own messages"),
        flag("--export", str(folder / "kernels"), why="where the report goes"),
    ]


def torch_flags(plan: Plan, injected: str) -> list[Flag]:
    """The settings that replace a command line for torch.profiler."""
    return [
        flag(f"PYTHONPATH={injected}:…", why="Python imports warpline's sitecustomize, which waits for torch"),
        flag(f"skip={plan.skip}", why="bare steps, timed without a profiler; the first ones are cold and left out"),
        flag(f"settle_s={plan.settle_s:g}", why="minimum time for bare steps, up to three times as many"),
        flag(f"warmup={plan.warmup}", why="steps under the profiler that are discarded, with its own first calls"),
        flag(f"steps={plan.steps}", why="recorded steps"),
        flag(f"seconds={plan.seconds:g}", why="maximum length of the recording"),
        flag(f"megabytes={plan.megabytes}", why="maximum growth of the process"),
        flag(f"shapes={plan.shapes}", why="input shapes, for work models and roofline"),
        flag(
            f"stacks={plan.stacks}",
            why="Python frames: findings name source lines, but every call costs as much as an op",
        ),
        flag(f"memory={plan.memory}", why="every allocation as an event"),
        flag(f"lines={plan.lines}", why=f"{plan.look_steps} more steps with Python frames, for source lines only"),
        flag(f"dataflow={plan.dataflow}", why="in the same steps, which tensors each op takes and makes"),
    ]
