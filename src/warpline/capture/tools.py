"""The command lines of nsys and ncu, each flag with its reason."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from warpline.capture.flags import Flag, flag, words_of
from warpline.capture.ncu_line import LOG, SECTIONS, Focus, focus_flags, section_flags
from warpline.capture.plan import NCU, NSYS, Plan
from warpline.errors import WarplineError

__all__ = ["NCU_LAUNCHES", "Flag", "find_tool", "ncu_flags", "nsys_flags", "torch_flags", "words_of"]

NCU_LAUNCHES = 20
"""Kernels that ncu profiles: each is replayed about 34 times."""
_WHERE = {NSYS: "WARPLINE_NSYS", NCU: "WARPLINE_NCU"}
_NAMES = {NSYS: ("Nsight Systems", "nsight-systems"), NCU: ("Nsight Compute", "nsight-compute")}


_KEEP_RUNNING = Flag(("--kill=none",), "let the program continue")


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
    kill = flag("--kill=sigterm", why="then end the program") if stop else _KEEP_RUNNING
    flags.append(kill)
    flags += [Flag((word,), "yours") for word in extra]
    return [*flags, flag(f"--output={Path(plan.folder) / 'trace'}", why="where the report goes")]


def ncu_flags(
    ncu: str,
    plan: Plan,
    by_range: bool,
    kernel: str = "",
    launches: int = NCU_LAUNCHES,
    extra: Sequence[str] = (),
    focus: Focus | None = None,
    stop: bool = False,
) -> list[Flag]:
    """Profile some kernels with hardware counters: those of a focus, or the first ones."""
    flags = [
        flag(ncu, why="Nsight Compute: hardware counters of single kernels, each replayed many times"),
        flag("--target-processes=all", why="include child processes: torchrun, workers"),
        flag("--clock-control=none", why="do not lock the clocks, which would change the times"),
        flag("--force-overwrite", why="the folder belongs to this run"),
    ]
    if focus is not None:
        flags += focus_flags(focus)
    else:
        flags += section_flags(SECTIONS)
        flags.append(flag(f"--launch-count={launches}", why="maximum number of kernels"))
        if kernel:
            flags.append(flag("--kernel-name", f"regex:{kernel}", why="only kernels of that name"))
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
