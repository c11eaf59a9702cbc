"""A second pass: a few more steps after the recorded ones, with Python frames and the tensors of every op.

Frames and tensors slow every op, so these steps lend their lines and their data flow to the recorded steps, never their
times. Nothing here may fail the program or the recording: what goes wrong is noted in the manifest.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from warpline.capture.plan import TORCH, Plan
from warpline.capture.process_record import ProcessRecord, file_beside
from warpline.capture.recorders import LINES, TorchRecorder, as_ours, export_whole, ranges_left_open
from warpline.capture.this_process import without_lines

WAITING, RUNNING, DONE, SKIPPED, FAILED = "waiting", "looking", "done", "skipped", "failed"
STEP_MARK = "warpline step "
OBSERVER_MESSAGE = "Execution Trace Observer"
"""Of torch's warnings that its observer begins and ends, which say nothing to a user."""
STILL_OPEN = "a record_function that began in the recorded steps was not over"
TOO_SOON = "the program ended or a limit was reached before a step was over"
STACKS, OBSERVED = ".stacks.json", ".observed.json"
"""Suffixes of the files: the trace with frames, and what torch's observer writes."""


def wants_second_pass(plan: Plan) -> bool:
    """Whether more steps follow the recorded ones."""
    return plan.tool == TORCH and plan.look_steps > 0 and ((plan.lines and not plan.stacks) or plan.dataflow)


def in_second_pass(part: dict[str, Any]) -> bool:
    """Whether the second pass of a process is not over, by its report."""
    return (part.get("look") or {}).get("state") in {WAITING, RUNNING}


class SecondPass:
    """The steps of a second pass. Start it at the end of a step, and call `step` at the end of every later one.

    It may start a step after the recording has stopped, not at once: a step ends inside the optimizer's own range,
    which must close before another profiler runs (`ranges_left_open`).
    """

    def __init__(self, torch: Any, plan: Plan, record: ProcessRecord) -> None:
        self._torch, self._plan = torch, plan
        self._folder, self._trace = Path(plan.folder), record.file or ""
        self._steps = _affordable_steps(plan, record)
        self._with_frames = plan.lines and not plan.stacks
        self._recorder: TorchRecorder | None = None
        self._observer: Any = None
        self._stopped_observer: Any = None
        self._since = time.monotonic()
        self._passed = 0
        self.report: dict[str, Any] = {"state": WAITING, "steps": 0, "stacks_file": None, "file": None, "notes": []}
        """The manifest's `look` entry."""

        if not self._steps:
            self._skip(f"a step takes longer than a second pass may ({plan.look_s:g} s)")

    @property
    def waiting(self) -> bool:
        """Whether it is still to start."""
        return bool(self.report["state"] == WAITING)

    def may_start(self) -> bool:
        """Whether torch survives it."""
        return not (self._with_frames and ranges_left_open())

    def start(self) -> bool:
        """Start; False if that failed."""
        with self._careful():
            if self._plan.dataflow:
                self._observe()
            if self._with_frames:
                settings = {"warmup": 0, "stacks": True, "memory": False, "shapes": True}
                self._recorder = TorchRecorder(self._torch, Plan(**{**self._plan.__dict__, **settings}), on_gpu=False)
                self._recorder.start(by_steps=True)
            self._mark_step()
            self._since = time.monotonic()
            self.report["state"] = RUNNING
        return bool(self.report["state"] == RUNNING)

    def step(self) -> bool:
        """The end of a step; True if the pass is over."""
        self._passed += 1
        if self._passed >= self._steps or self.over_limit():
            return True
        with self._careful():
            if self._recorder is not None:
                self._recorder.step()
            self._mark_step()
        return bool(self.report["state"] != RUNNING)

    def over_limit(self, grace: float = 1.0) -> bool:
        """Whether the pass takes too long or its file is too large."""
        if time.monotonic() - self._since > grace * self._plan.look_s:
            return True
        with contextlib.suppress(OSError):
            return self._path(OBSERVED).stat().st_size > grace * self._plan.look_megabytes * 1_000_000
        return False

    def end(self, whole: bool) -> None:
        """Stop, and write what was seen if at least one step is whole."""
        if self.waiting:
            self._skip(TOO_SOON if self.may_start() else STILL_OPEN)
        if self.report["state"] != RUNNING:
            return
        with self._careful():
            if not self.can_stop_here():
                raise RuntimeError("the thread of these steps has ended, which stopped torch's profiler")
            recorder, self._recorder = self._recorder, None
            try:
                if recorder is not None:
                    recorder.stop(whole)
            finally:
                self._stop_observer()
            self.report["steps"] = self._passed
            if not self._passed:
                self._skip(TOO_SOON)
                return
            if recorder is not None:
                export_whole(recorder, self._path(STACKS))
                self.report["stacks_file"] = self._path(STACKS).name
                self.report["notes"] += recorder.notes
            self.report["state"] = DONE

    def can_stop_here(self) -> bool:
        """Whether this thread can stop the pass."""
        return self._recorder is None or self._recorder.can_stop_here()

    @contextlib.contextmanager
    def _careful(self) -> Iterator[None]:
        """An error ends the pass, not the recording, which is on disk, and not the program."""
        try:
            yield
        except Exception as error:
            self._note(error)
            self.report["state"] = FAILED
            with contextlib.suppress(Exception):
                self._stop_observer()
            recorder, self._recorder = self._recorder, None
            if recorder is not None and recorder.can_stop_here():
                with contextlib.suppress(Exception):
                    recorder.stop(whole=False)
            self._remove_files()

    def _observe(self) -> None:
        try:
            observer = self._torch.profiler.ExecutionTraceObserver()
            observer.register_callback(str(self._path(OBSERVED)))
            with without_lines(OBSERVER_MESSAGE):
                observer.start()
            self._observer = observer
        except Exception as error:  # older torch, or another observer
            self._note(error, "no data flow: ")

    def _mark_step(self) -> None:
        """A mark for the observer. It is no range around the step: steps end inside the optimizer's own range, and
        ranges that overlap upset the observer's stack."""
        if self._observer is not None:
            with as_ours(), self._torch.profiler.record_function(f"{STEP_MARK}{self._passed}"):
                pass

    def _stop_observer(self) -> None:
        observer, self._observer = self._observer, None
        if observer is not None:
            self._stopped_observer = observer
            with without_lines(OBSERVER_MESSAGE):
                observer.stop()

    def release(self) -> None:
        """Remove the stopped observer: a step later, or when the program ends.

        A step ends inside the optimizer's own range, and other threads may be inside ops: torch frees the observer
        when it is removed, while such ranges still hold a callback to it.
        """
        observer, self._stopped_observer = self._stopped_observer, None
        if observer is not None:
            with contextlib.suppress(Exception):  # its file is read as far as it goes
                observer.unregister_callback()

    def _note(self, error: Exception, before: str = "") -> None:
        self.report["notes"].append(f"{before}{type(error).__name__}: {' '.join(str(error).split())[:300]}")

    def _skip(self, why: str) -> None:
        self._remove_files()
        self.report["state"] = SKIPPED
        self.report["notes"].append(why)

    def _remove_files(self) -> None:
        for suffix in (STACKS, OBSERVED, file_beside(STACKS, LINES)):
            with contextlib.suppress(OSError):
                self._path(suffix).unlink()

    def _path(self, suffix: str) -> Path:
        return self._folder / file_beside(self._trace, suffix)


def _affordable_steps(plan: Plan, record: ProcessRecord) -> int:
    """How many steps the time limit allows, by the recorded ones."""
    if record.recorded_step_ns is None:
        return plan.look_steps
    return min(plan.look_steps, int(plan.look_s * 1e9 // max(record.recorded_step_ns.median_ns, 1)))
