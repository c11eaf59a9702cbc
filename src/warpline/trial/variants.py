"""The program with some changes: each variant is started in a copy of the working folder, within one budget."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from warpline.capture.launch import forwarding_environment
from warpline.capture.run import INJECTED
from warpline.capture.this_process import hold_signals, usable_cores
from warpline.capture.trial.plan import VARIABLE, TrialPlan
from warpline.errors import WarplineError
from warpline.trial.candidates import Candidate
from warpline.trial.look import TimedSteps
from warpline.trial.process import LookReport, VariantProcess
from warpline.trial.rows import BASELINE, RESULTS_ONLY, combination_name
from warpline.trial.working_copy import from_anywhere, make_working_copy

MIN_START_S, START_FACTOR = 30.0, 5.0
"""A process is taken to hang after so many times what the first run took, and longer where several share a core."""
COMPILE_START_S = 180.0
"""Likewise what a compiler may take."""
POLL_S = 0.004
"""How often a process is asked whether it is ready."""
Say = Callable[[str], None]
"""Gets the lines of progress."""


class Variant(Struct, frozen=True):
    """The program with some changes, of which one process is started; without changes, the program as it is."""

    changes: tuple[Candidate, ...] = ()
    only_results: bool = False
    """Whether it runs for its results alone, with random numbers as without a compiler."""

    @property
    def name(self) -> str:
        """As the rows name it."""
        return (combination_name(self.changes) or BASELINE) + RESULTS_ONLY * self.only_results


class SeenProgram(Struct, frozen=True):
    """What the first run showed."""

    look: LookReport
    steps: TimedSteps
    took_s: float
    """How long it ran until it had shown it."""

    @property
    def start_s(self) -> float:
        """So long may a process take until it is ready."""
        return max(MIN_START_S, START_FACTOR * self.took_s)


class VariantProcesses:
    """The processes of one `warpline try`, a temporary folder for what they write, and the time that is left."""

    def __init__(self, command: tuple[str, ...], working_folder: Path, budget_s: float) -> None:
        self._command, self._working_folder, self.budget_s = command, working_folder, budget_s
        self._began = time.monotonic()
        self._folder = Path(tempfile.mkdtemp(prefix="warpline-try-"))
        self._alive: list[VariantProcess] = []
        self._number = 0

    @property
    def taken_s(self) -> float:
        """How long it has run."""
        return time.monotonic() - self._began

    @property
    def left_s(self) -> float:
        """What is left of the budget."""
        return self.budget_s - self.taken_s

    def leave_out(self, seconds: float) -> None:
        """Do not count the time in which a question waited for its answer."""
        self._began += seconds

    def start(
        self, variant: Variant, program: SeenProgram | None = None, together: int = 1, **more: object
    ) -> VariantProcess:
        """Start one of so many processes that start together; `more` are other fields of its `TrialPlan`."""
        self._number += 1
        folder = self._folder / str(self._number)
        folder.mkdir()
        working_copy = folder / "work"
        make_working_copy(self._working_folder, working_copy, self._folder)
        changes = variant.changes
        compiles = any(one.change.compiles for one in changes)
        ranks = program.look.use.world_size if program else 1
        per_core = max(1.0, together * ranks / usable_cores())
        limit_s = per_core * ((program.start_s if program else MIN_START_S) + COMPILE_START_S * compiles)
        settings: dict[str, object] = {"hang_after_s": 0.9 * limit_s, "eager_random": variant.only_results}
        if program is not None:
            settings |= {
                "step": program.steps.step,
                "skip": program.steps.skip,
                "settle": program.steps.settle,
                "steps_per_window": program.steps.per_window,
            }
        plan = TrialPlan(
            str(folder),
            os.getpid(),
            time.time(),
            tuple(one.name for one in changes),
            working_copy=str(working_copy),
            **{**settings, **more},  # type: ignore[arg-type]
        )
        environment = forwarding_environment({**os.environ, VARIABLE: plan.to_text()}, INJECTED)
        environment |= {
            "PYTHONHASHSEED": "0",
            "TORCHINDUCTOR_CACHE_DIR": str(self._folder / "inductor"),
            "TRITON_CACHE_DIR": str(self._folder / "triton"),
        }
        for one in changes:
            environment |= one.change.environment
        try:
            command = from_anywhere(self._command, self._working_folder)
            process = VariantProcess(variant.name, folder, command, environment, working_copy)
        except OSError as error:
            message = f"{self._command[0]} could not be started: {error.strerror}"
            raise WarplineError("cannot-run", message) from error
        process.limit_s = limit_s
        self._alive.append(process)
        return process

    def end(self, processes: Sequence[VariantProcess]) -> None:
        """End these."""
        for process in processes:
            process.end()
            if process in self._alive:
                self._alive.remove(process)

    def end_all(self) -> None:
        """End whatever runs, and remove what it wrote."""
        with hold_signals():  # a process that is stopped would stay for ever
            for process in self._alive:
                process.end()
            shutil.rmtree(self._folder, ignore_errors=True)
