"""One process's recording, from its first step to the written file.

All hooks end here. An error is noted and ends the recording, never the program.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from warpline.capture.bare_step_timer import StepTimer, reliable_bare_step
from warpline.capture.calibration import measure_host
from warpline.capture.loops import CallPlace
from warpline.capture.plan import NCU, TORCH, Plan
from warpline.capture.process_record import NOTHING, RECORDED, RECORDING, ProcessRecord, claim_name, describe
from warpline.capture.recorders import Recorder, export_whole, recorder_for
from warpline.capture.second_pass import SecondPass, wants_second_pass
from warpline.capture.steps import LOOP, NAMES, StepFinder, StepUnit
from warpline.capture.this_process import (
    LastWords,
    hold_signals,
    is_data_worker,
    keep_attached_with_graphs,
    resident_bytes,
    tracing_check,
)

WAITING, RECORDS, WINDOW, SECOND_PASS, DONE = "waiting", "records", "window", "second pass", "done"
WINDOW_S = 2.0
"""Maximum length of a time window: torch takes many times as long to put its events together."""
WINDOW_ENDS = ("seconds", "megabytes")
"""What ends a time window after which steps may still be recorded."""
MAX_OPTIMIZERS = 16
MAX_MISSED_STEPS = 3
"""After so many steps' time without one, they have ended."""
STEPS_AFTER_RECORDING = 8
"""Steps timed after the recording, to show its lasting effect."""

_of_parent: list[tuple[Recorder | None, SecondPass | None]] = []
"""What a forked process has of its parent's recording."""


class Session:
    """The recording of this process: `boundary` at the end of every step, `close` at exit."""

    def __init__(self, torch: Any, plan: Plan, on_idle: Callable[[], None] = lambda: None, speaks: bool = True) -> None:
        self.plan = plan
        self.speaks = speaks
        """Whether to write a report even if nothing was recorded."""
        self.record = ProcessRecord(pid=os.getpid())
        self.phase = WAITING
        self.over = False
        """Whether nothing is recorded any more; `phase` is also DONE between a recording and the second pass."""
        self.finder = StepFinder()
        self.recording_since = 0.0
        self.window_taken = False
        """Whether a time window was recorded because there were no steps."""
        self._torch = torch
        self._is_traced = tracing_check(torch)
        self._on_idle = on_idle
        self.on_narrow: Callable[[StepUnit | None], None] = lambda unit: None
        """Called with the step once it is known, so that only its end is listened to; with None to listen to all."""
        self._listens_narrowly = False
        self._laps = StepTimer(torch)
        self._recorder: Recorder | None = None
        self._second_pass: SecondPass | None = None
        self._thread: threading.Thread | None = None
        self.step_ended = 0.0
        self._busy = False
        self._position = 0
        self._before_bytes = 0
        self._grown_bytes = 0
        self._last_words = LastWords(self.close)

    def boundary(self, source: int, who: int = 0, accumulates: bool = False) -> None:
        """Handle a call that may end a step."""
        if self._busy or self._is_traced():
            return
        with self._careful():
            if not self._is_our_thread() or self.capturing() or is_data_worker():
                return
            unit = self.finder.unit
            position = self.finder.hear(source, who, accumulates)
            if not position:
                self._restart_if_lost()
            elif self.phase != WINDOW:
                self._thread = threading.current_thread()
                if self.finder.unit != unit or position <= self._position:
                    self._laps.restart()
                self._position, self.step_ended = position, time.monotonic()
                self._advance(position)
            self._listen_as_narrowly_as_possible()

    def graph_captured(self) -> None:
        """Handle the start of a CUDA graph capture: earlier steps were warm-up."""
        keep_attached_with_graphs(self._torch)
        if self.phase == WAITING:
            self._forget_the_step()
        elif self.phase == RECORDS:
            self.note("a CUDA graph was captured during the recording: record later with a larger --skip")

    def open_window(self) -> None:
        """Record a time window, because no step was found in time."""
        if self._busy or self.phase != WAITING or self.window_taken or self.capturing():
            return
        with self._careful():
            self.window_taken = True
            self._thread = threading.current_thread()
            self._start(by_steps=False)

    def has_lost_the_step(self) -> bool:
        """Whether the step that is known has not ended for longer than several of them take."""
        silent_s = time.monotonic() - self.step_ended
        return self.finder.narrow and silent_s > self.plan.after_s + MAX_MISSED_STEPS * self._laps.longest_s()

    def look_for_another_step(self) -> None:
        """Listen to everything again, because the known step does not come any more."""
        if self.phase == WAITING and not self._busy and self.has_lost_the_step():
            with self._careful():
                self._forget_the_step()
                self._keep()

    def close(self, reason: str) -> None:
        """End the recording in any state, write it, and ignore all later calls."""
        with hold_signals(), self._careful():
            if self.phase in {RECORDS, WINDOW}:
                self._finish(reason, whole=False)
            elif self.phase == SECOND_PASS:
                self._end_second_pass(whole=False)
            elif self.phase == DONE and self.record.state == RECORDED and len(self._laps) > 1:
                self._note_later_steps()
            elif self.phase == WAITING and self.record.state == NOTHING:
                self._write_nothing(reason)
            if self._second_pass is not None:
                self._second_pass.release()
        self.phase, self.over = DONE, True

    def cut(self, bound: str) -> None:
        """End the recording at a limit, within a step; if another thread is recorded, its next step ends it."""
        if not self._busy and self.phase in {RECORDS, WINDOW} and self._recorder and self._recorder.can_stop_here():
            with self._careful():
                self._finish(bound, whole=False)
        elif not self._busy and self.phase == SECOND_PASS and self._second_pass and self._second_pass.can_stop_here():
            with self._careful():
                self._end_second_pass(whole=False)

    def abandon(self) -> None:
        """Leave the recording to the parent process; torch's observer would say on stderr that it is freed."""
        self.phase, self.over = DONE, True
        _of_parent.append((self._recorder, self._second_pass))
        self._recorder, self._second_pass = None, None
        self._last_words.release()

    def stand_down(self, note: str, says_so: bool = True) -> None:
        """Stop, because the program profiles itself."""
        with self._careful():
            if self.phase in {RECORDS, WINDOW}:
                self._finish("other profiler", whole=False)
            elif self.phase == SECOND_PASS:
                self._end_second_pass(whole=False)
            self.note(note)
            if self.record.state == NOTHING and says_so:
                self._write_nothing("other profiler")
        self._rest()

    def note(self, text: str) -> None:
        """Add a note to the manifest."""
        if text not in self.record.notes:
            self.record.notes.append(text)

    def note_optimizer(self, name: str, place: CallPlace) -> None:
        """Note where the program constructs an optimizer."""
        self.finder.expects_update = True
        entry = {"class": name, **place._asdict()}
        if entry not in self.record.optimizers and len(self.record.optimizers) < MAX_OPTIMIZERS:
            self.record.optimizers.append(entry)

    def note_loader(self, iterator: Any) -> None:
        """Watch the workers that an iterator of a DataLoader has started."""
        self._laps.loaders.add(iterator)

    def own_trace(self, path: str) -> None:
        """Note a trace that the program's own profiler wrote."""
        self.record.own_traces.append(str(Path(path).absolute()))
        with self._careful():
            self._keep()

    def over_bounds(self, grace: float = 1.0) -> str | None:
        """The limit that the recording has exceeded, if any; limits are multiplied by `grace`."""
        if self.phase == SECOND_PASS and self._second_pass is not None:
            return "look" if self._second_pass.over_limit(grace) else None
        if self.phase not in {RECORDS, WINDOW} or not self.recording_since:
            return None
        by_time = self.phase == WINDOW and not self.plan.whole
        seconds = min(self.plan.seconds, WINDOW_S) if by_time else self.plan.seconds
        if time.monotonic() - self.recording_since > grace * seconds:
            return "seconds"
        return "megabytes" if self._grown_bytes > grace * self.plan.megabytes * 1_000_000 else None

    def weigh(self) -> None:
        """Check how much the process has grown while it records; called from the watching thread because it is slow."""
        if self.recording_since:
            self._grown_bytes = resident_bytes() - self._before_bytes

    def capturing(self) -> bool:
        """Whether a CUDA graph is being captured; then nothing may wait for the GPU."""
        cuda = self._torch.cuda
        return bool(cuda.is_initialized() and cuda.is_current_stream_capturing())

    def _is_our_thread(self) -> bool:
        """Whether this thread's steps count: those of one thread, or of another once that one has ended."""
        thread = self._thread
        return thread is None or thread is threading.current_thread() or not thread.is_alive()

    def _restart_if_lost(self) -> None:
        """Discard steps that stopped before the first was recorded, such as a trial run before training."""
        if self.finder.lost and self.phase in {WAITING, RECORDS} and not self.recording_since:
            if self.phase == RECORDS:
                self._start_over()
            self._forget_the_step()

    def _forget_the_step(self) -> None:
        self.finder.restart()
        self._position = 0
        self._laps.restart()
        self.record.step_is = None
        self._listen_as_narrowly_as_possible()

    def _start_over(self) -> None:
        recorder, self._recorder, self.phase = self._recorder, None, WAITING
        self._last_words.release()
        if recorder is not None:
            recorder.stop(whole=True)
        self.note("the profiler was active before the bare steps were timed")
        self.record.bare_step_ns, self.record.loader_work, self.recording_since = None, None, 0.0
        self.record.state = RECORDED if self.record.file else NOTHING
        self._laps.restart()

    def _listen_as_narrowly_as_possible(self) -> None:
        if self.finder.narrow != self._listens_narrowly:
            self._listens_narrowly = self.finder.narrow
            self.on_narrow(self.finder.unit if self.finder.narrow else None)

    def _knows_the_step(self) -> bool:
        """Whether bare steps can be timed: what a step is is known, and nothing else is listened to."""
        if self.plan.settle_s and not self.finder.narrow:
            if not self.finder.is_settled():
                return False
            self.finder.narrow = True
            self._laps.restart()
            self._laps.lap()
            self.record.step_is = self.finder.unit.describe() if self.finder.unit else None
            self._keep()
        return True

    def _advance(self, position: int) -> None:
        if self.phase == WAITING:
            self._laps.lap()
            if self._knows_the_step() and self.plan.has_settled(
                len(self._laps) if self.plan.settle_s else position, self._laps.elapsed_s(), self._laps.are_uneven
            ):
                self.finder.lock()
                if self.plan.tool != NCU:  # which slows every launch, recorded or not
                    self.record.loader_work = self._laps.loaders.work()
                    self.record.bare_step_ns = self._laps.summary()
                self.record.first_step = position + self.plan.warmup
                self._start(by_steps=True)
        elif self.phase == RECORDS:
            self._recorded_step(position)
        elif self.phase == SECOND_PASS:
            self._step_of_second_pass()
        elif self.phase == DONE and self.record.state == RECORDED and self.record.later_step_ns is None:
            if self._second_pass is not None:
                self._second_pass.release()
            self._laps.lap()
            if len(self._laps) > STEPS_AFTER_RECORDING:
                self._note_later_steps()
                self._rest()

    def _recorded_step(self, position: int) -> None:
        passed = position - (self.record.first_step or 0)
        if passed >= 0:
            self._laps.lap()
        if passed == 0:
            self.recording_since, self._before_bytes = time.monotonic(), resident_bytes()
        bound = "steps" if passed >= self.plan.steps else (self.over_bounds() if passed > 0 else None)
        self.record.steps_recorded = max(passed, 0)
        if bound:
            self._finish(bound, whole=True)
        elif self._recorder is not None:
            self._recorder.step()
            self._laps.resume()

    def _start(self, by_steps: bool) -> None:
        self._laps.restart()
        describe(self.record, self._torch)
        if by_steps and self.finder.unit is not None:
            self.record.steps_found_by, self.record.step_is = self.finder.unit.name, self.finder.unit.describe()
        with hold_signals():
            self._recorder = recorder_for(self._torch, self.plan)
            self._recorder.start(by_steps)
            self.phase = RECORDS if by_steps else WINDOW
            if not by_steps or not self.plan.warmup:
                self.recording_since, self._before_bytes = time.monotonic(), resident_bytes()
            self.record.state, self.record.ended_by = RECORDING, None
            self.record.write(Path(self.plan.folder))
        self._last_words.hold()
        if by_steps and not self.plan.warmup:
            self._laps.lap()

    def _finish(self, reason: str, whole: bool) -> None:
        recorder, by_steps = self._recorder, self.phase == RECORDS
        self.phase, self._recorder = DONE, None
        if recorder is None:
            return
        if not recorder.can_stop_here():
            raise RuntimeError("the recorded thread has ended, which stopped torch's profiler")
        if whole:
            recorder.end_step()
        with hold_signals():
            self.record.ended_by = reason
            self.record.write(Path(self.plan.folder))  # putting the events together may take long
            self.record.recorded_step_ns = self._laps.summary(cold=0) if self.record.steps_recorded else None
            recorder.stop(whole)
            began = bool(self.recording_since)
            if began:
                self.record.recorded_s = round(time.monotonic() - self.recording_since, 3)
                self._export(recorder)
            else:
                self.note("the program ended during the profiler's warm-up")
            self.record.bare_step_ns, doubt = reliable_bare_step(self.record.bare_step_ns, self.record.recorded_step_ns)
            if doubt:
                self.note(doubt)
            self.record.state = RECORDED if began or self.record.file else NOTHING
            if began and by_steps and whole and wants_second_pass(self.plan):
                self._second_pass = SecondPass(self._torch, self.plan, self.record)
                self.record.look = self._second_pass.report
            self._keep()
        self._last_words.release()
        if began and by_steps and whole:
            self._calibrate()
        if self._second_pass is not None and self._second_pass.waiting:
            self.phase = SECOND_PASS
        self._laps.restart()
        if not by_steps and reason in WINDOW_ENDS and self.plan.tool == TORCH and not self.plan.whole:
            self.phase, self._thread, self.recording_since = WAITING, None, 0.0  # steps may still appear
            self._forget_the_step()  # the profiler has distorted what was heard of it
            self.note("the profiler was active before the bare steps were timed")
        elif not by_steps or not whole:
            self._rest()

    def _calibrate(self) -> None:
        """Measures what ops and their recording cost here, once the recorded steps are safe on disk."""
        if self.plan.tool != TORCH or threading.current_thread() is not threading.main_thread():
            return
        with hold_signals():
            self.record.host_costs = measure_host(self._torch, shapes=self.plan.shapes, stacks=self.plan.stacks)
            self._keep()

    def _step_of_second_pass(self) -> None:
        second_pass = self._second_pass
        if second_pass is not None and second_pass.waiting:
            if second_pass.may_start():
                with hold_signals():
                    self.phase = SECOND_PASS if second_pass.start() else DONE
                    self._keep()
        elif second_pass is None or second_pass.step():
            self._end_second_pass(whole=True)

    def _end_second_pass(self, whole: bool) -> None:
        if self._second_pass is not None:
            with hold_signals():
                self._second_pass.end(whole)
                self._keep()
        self.phase = DONE
        self._laps.restart()

    def _export(self, recorder: Recorder) -> None:
        if not recorder.suffix:
            return
        folder = Path(self.plan.folder)
        path = folder / self.record.file if self.record.file else claim_name(folder, self.record, recorder.suffix)
        self.record.file = None
        export_whole(recorder, path)
        self.record.file = path.name

    def _keep(self) -> None:
        self.record.steps_seen = {NAMES[at]: count for at, count in enumerate(self.finder.seen) if count}
        if self.finder.unit is not None and self.finder.unit.by_loop:
            self.record.steps_seen[LOOP] = self._position
        self.record.write(Path(self.plan.folder))

    def _note_later_steps(self) -> None:
        self.record.later_step_ns = self._laps.summary(cold=0)
        self._keep()

    def _write_nothing(self, reason: str) -> None:
        if not self.speaks and not any(self.finder.seen):
            return
        self.record.ended_by = reason
        describe(self.record, self._torch)
        self._keep()

    def _rest(self) -> None:
        self.phase, self.over = DONE, True
        self._on_idle()

    @contextlib.contextmanager
    def _careful(self) -> Iterator[None]:
        self._busy = True
        try:
            yield
        except Exception as error:
            self._recorder = None
            self._last_words.release()
            self.note(f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
            self.record.state, self.record.ended_by = NOTHING, "error"
            with contextlib.suppress(OSError):
                self._keep()
            self._rest()
        finally:
            self._busy = False
