"""From the chosen kernels to ncu's command lines: one run for all if few launches lie between them, else one each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from msgspec import Struct

from warpline.capture.tool_commands import Focus, focus_flags, sections_for, words_of
from warpline.dive.inside_kernels import InsideKernel, InsideKernels

EXAMPLE = "PROGRAM"
"""Stands for the program where none is named."""
MAX_LAUNCHES = 24
"""Launches that one run may profile to reach all chosen kernels; beyond it, starting the program again is quicker."""
STEPS_BEFORE = 3
"""Steps that a command typed by hand skips: the first ones load, tune and allocate."""
PASSES = (20, 38)
"""Passes per kernel on an H200 with ncu 2025.3: `--set detailed` 20, `--set full` 38, all of these sections 34."""
SECONDS_PER_PASS = 0.046
"""Measured on an H200 on 2026-11-16: reports of 10 to 16 kernels with 38 passes each, beside the program's start."""


class NcuRun(Struct, frozen=True):
    """One run of the program under ncu."""

    kernels: tuple[InsideKernel, ...]
    """The kernels that it is for."""
    focus: Focus

    @property
    def passes(self) -> tuple[int, int]:
        """Expected passes over all profiled launches."""
        low, high = PASSES
        return low * self.focus.count, high * self.focus.count

    @property
    def seconds(self) -> float:
        """Expected time in addition to the program's own, at most."""
        return self.passes[1] * SECONDS_PER_PASS


def runs_for(found: InsideKernels, count: int, source: bool = False) -> tuple[NcuRun, ...]:
    """The runs that profile the first kernels, counted from the start of the first step."""
    chosen = found.chosen(count)
    if not chosen:
        return ()
    functions = tuple(sorted({kernel.function for kernel in chosen}))
    places = np.concatenate([found.positions[function] for function in functions])
    wanted = sorted(kernel.position for kernel in chosen)
    first, last = (int((places < position).sum()) for position in (wanted[0], wanted[-1]))
    if last - first < MAX_LAUNCHES:
        sections = sections_for(kernel.bound for kernel in chosen)
        return (NcuRun(chosen, Focus(functions, first, last - first + 1, sections, source=source)),)
    return tuple(_alone(found, kernel, source) for kernel in chosen)


def _alone(found: InsideKernels, kernel: InsideKernel, source: bool) -> NcuRun:
    skip = int((found.positions[kernel.function] < kernel.position).sum())
    return NcuRun((kernel,), Focus((kernel.function,), skip, 1, sections_for([kernel.bound]), source=source))


def by_hand(found: InsideKernels, kernel: InsideKernel, program: str = EXAMPLE) -> str:
    """The command for one kernel, without warpline: it runs the program from its start, and so skips steps too."""
    skip = kernel.launch_skip + (round(STEPS_BEFORE * kernel.same_function_per_step) if found.steps > 1 else 0)
    focus = replace(_alone(found, kernel, False).focus, skip=skip, nvtx=kernel.nvtx)
    words = ["ncu", "--target-processes", "all", "--clock-control", "none", *words_of(focus_flags(focus))]
    return " ".join([*(_quoted(word) for word in words), "-o", "kernel", program])


def _quoted(word: str) -> str:
    return word if word.replace("-", "").replace("_", "").isalnum() else f"'{word}'"
