"""Command lines of nsys and ncu, flag by flag, each with its reason."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from warpline.capture.plan import NCU, NSYS, Plan
from warpline.errors import WarplineError

NCU_LAUNCHES = 20
"""Kernels that ncu takes apart: each is run some 20 times over."""
_WHERE = {NSYS: "WARPLINE_NSYS", NCU: "WARPLINE_NCU"}
_NAMES = {NSYS: ("Nsight Systems", "nsight-systems"), NCU: ("Nsight Compute", "nsight-compute")}


@dataclass(frozen=True)
class Flag:
    """A part of a command line and what it is for."""

    words: tuple[str, ...]
    why: str


_RUN_ON = Flag(("--kill=none",), "and let the program run on")


def flag(*words: str, why: str) -> Flag:
    """A flag, shortly."""
    return Flag(words, why)


def words_of(flags: Sequence[Flag]) -> list[str]:
    """The command line."""
    return [word for one in flags for word in one.words]


def find_tool(tool: str) -> str:
    """Where nsys or ncu is, or one line on what to type."""
    named = os.environ.get(_WHERE[tool], "")
    found = shutil.which(named or tool)
    if found is None:
        what = f"{_WHERE[tool]} names {named}, which cannot be run" if named else f"{tool} is not on PATH"
        name, page = _NAMES[tool]
        hint = f"install {name} (https://developer.nvidia.com/{page}), or type: export {_WHERE[tool]}=/path/to/{tool}"
        raise WarplineError(f"{tool}-missing", what, hint)
    return found


def nsys_flags(nsys: str, plan: Plan, by_range: bool, extra: Sequence[str] = (), stop: bool = False) -> list[Flag]:
    """Records what CUDA, NVTX and the operating system do, in the range that the program's steps open and close."""
    flags = [
        flag(nsys, "profile", why="Nsight Systems: a timeline of the whole process"),
        flag("--trace=cuda,nvtx,osrt", why="CUDA calls and kernels, named ranges, and calls that wait in the system"),
        flag("--sample=none", why="no CPU sampling: it needs permissions, and makes reports large"),
        flag("--cpuctxsw=none", why="no thread scheduling: the same"),
        flag("--cuda-graph-trace=node", why="kernels inside CUDA graphs one by one; `graph` shows one bar"),
        flag("--force-overwrite=true", why="the folder is this run's own"),
    ]
    if by_range:
        flags += [
            flag("--capture-range=cudaProfilerApi", why="record only the steps that warpline's step finder opens"),
            flag(f"--capture-range-end=stop{'-shutdown' if stop else ''}", why="stop where it closes them"),
        ]
    else:
        flags.append(flag(f"--duration={max(round(plan.seconds), 1)}", why="at most so many seconds"))
    kill = flag("--kill=sigterm", why="and then end the program") if stop else _RUN_ON
    flags.append(kill)
    flags += [Flag((word,), "yours") for word in extra]
    return [*flags, flag(f"--output={Path(plan.folder) / 'trace'}", why="where the report goes")]


def ncu_flags(
    ncu: str, plan: Plan, by_range: bool, kernel: str = "", launches: int = NCU_LAUNCHES, extra: Sequence[str] = ()
) -> list[Flag]:
    """Takes some kernels apart, counter by counter."""
    flags = [
        flag(ncu, why="Nsight Compute: hardware counters of single kernels, each run many times over"),
        flag("--target-processes=all", why="also what the program starts: torchrun, workers"),
        flag("--clock-control=none", why="leave the clocks as they are: locked ones give other times than yours"),
        flag("--set=detailed", why="throughputs, occupancy, memory, source counters; `full` takes twice as long"),
        flag(f"--launch-count={launches}", why="so many kernels and no more"),
        flag("--force-overwrite", why="the folder is this run's own"),
    ]
    if kernel:
        flags.append(flag("--kernel-name", f"regex:{kernel}", why="only kernels of that name"))
    if by_range:
        flags.append(flag("--profile-from-start=off", why="wait until warpline's step finder says that it is warm"))
    flags += [Flag((word,), "yours") for word in extra]
    return [*flags, flag("--export", str(Path(plan.folder) / "kernels"), why="where the report goes")]


def torch_flags(plan: Plan, injected: str) -> list[Flag]:
    """What stands in the place of a command line for torch.profiler."""
    return [
        flag(f"PYTHONPATH={injected}:…", why="Python imports warpline's sitecustomize, which waits for torch"),
        flag(f"skip={plan.skip}", why="steps that run bare and are timed: the first are cold, the rest are the truth"),
        flag(f"settle_s={plan.settle_s:g}", why="bare steps go on for so long, up to three times as many"),
        flag(f"warmup={plan.warmup}", why="steps under the profiler that are not kept: its own first calls are there"),
        flag(f"steps={plan.steps}", why="recorded steps"),
        flag(f"seconds={plan.seconds:g}", why="the recording never lasts longer"),
        flag(f"megabytes={plan.megabytes}", why="and never makes the process grow by more"),
        flag(f"shapes={plan.shapes}", why="shapes of inputs: work and roofline come from them"),
        flag(f"stacks={plan.stacks}", why="Python frames: findings name lines, and every call costs as much as an op"),
        flag(f"memory={plan.memory}", why="every allocation as an event"),
    ]
