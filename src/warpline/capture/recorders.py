"""The recorders of the recorded steps: torch.profiler, or the range that nsys and ncu wait for."""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import threading
import time
import warnings
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from warpline.capture.plan import TORCH, Plan
from warpline.capture.process_record import file_beside
from warpline.capture.this_process import without_lines

LINES = ".lines.json"
"""Suffix of the file with the lines of calls, beside a trace with Python frames."""
LINES_S = 5.0
"""Maximum time to collect them."""
CHECK_EVERY = 4096
"""Events between two looks at the clock."""

_OURS = str(Path("warpline", "capture"))
"""In paths of our own files, of which torch cuts off what is in sys.path."""
_ours = False
"""Whether the profiler that is being created or called now is ours, not the program's."""


_left_open: weakref.WeakSet[Any] = weakref.WeakSet()
"""Ranges that opened under a recorder that has stopped, and may still be open."""


def ranges_left_open() -> bool:
    """Whether a range may still be open that opened under an earlier recorder.

    torch writes the end of such a range into freed memory if another profiler runs by then, which may end the program
    much later (torch 2.13). A `record_function` that is gone has been closed.
    """
    return bool(_left_open)


def _ranges(torch: Any) -> list[Any]:
    kind = torch.autograd.profiler.record_function
    return [one for one in gc.get_objects() if type(one) is kind]


def ours() -> bool:
    """Whether the current call is to our own profiler."""
    return _ours


@contextlib.contextmanager
def as_ours() -> Iterator[None]:
    """Within it, a profiler that is made or driven is ours."""
    global _ours  # noqa: PLW0603 - one profiler a process, as torch has it
    before, _ours = _ours, True
    try:
        with warnings.catch_warnings():  # torch's advice is for the author of a profiler call
            warnings.simplefilter("ignore")
            yield
    finally:
        _ours = before


class Recorder(Protocol):
    """Started at the end of a step, notified of every later one, and stopped."""

    suffix: str

    def can_stop_here(self) -> bool:
        """Whether this thread can stop the recording."""

    def start(self, by_steps: bool) -> None:
        """Start the warm-up, or record immediately if there are no steps."""

    def step(self) -> None:
        """Notify the recorder of the end of a step."""

    def end_step(self) -> None:
        """End the last step: what comes until the recording stops is not part of it."""

    def stop(self, whole: bool) -> None:
        """Stop the recording, at the end of a step or, if not `whole`, within one."""

    def export(self, path: Path) -> None:
        """Write the recording."""


def recorder_for(torch: Any, plan: Plan) -> Recorder:
    """The recorder for the plan."""
    return TorchRecorder(torch, plan) if plan.tool == TORCH else RangeRecorder(torch, plan)


def export_whole(recorder: Recorder, path: Path) -> None:
    """Write the file completely, or remove it and raise an error."""
    try:
        recorder.export(path)
        if not path.stat().st_size:  # torch reports nothing if it cannot write
            raise OSError("the trace could not be written: is the disk full, or is the file size limited?")
    except (OSError, RuntimeError):
        for left in (path, path.with_name(f"{path.name}.tmp")):
            with contextlib.suppress(OSError):
                os.truncate(left, 0)  # torch may have it open; truncating frees space for the report
                left.unlink()
        raise


OTHER_THREAD = "must run in same thread as registerClient"
"""Kineto's error where another thread records than the one that imported torch. It records all the same."""


class TorchRecorder:
    """torch.profiler, with its steps driven from outside."""

    suffix = ".json"

    def __init__(self, torch: Any, plan: Plan, on_gpu: bool = True) -> None:
        self._torch, self._plan, self._on_gpu = torch, plan, on_gpu
        self._profiler: Any = None
        self._passed = 0
        self._whole = True
        self._thread: threading.Thread | None = None
        self._opened_before: weakref.WeakSet[Any] = weakref.WeakSet()
        self.notes: list[str] = []
        """What went wrong without harm to the trace."""

    def can_stop_here(self) -> bool:
        """torch ties a profiler to the thread that starts it; stopping it from another thread ends the process."""
        return self._thread is None or self._thread is threading.current_thread()

    def start(self, by_steps: bool) -> None:
        torch, plan = self._torch, self._plan
        kinds = torch.profiler.ProfilerActivity
        # Checking whether CUDA is available starts the driver, which a forking program may not survive.
        with_cuda = self._on_gpu and (torch.cuda.is_initialized() or (not by_steps and torch.cuda.is_available()))
        wanted: dict[str, Any] = {
            "activities": [kinds.CPU, kinds.CUDA] if with_cuda else [kinds.CPU],
            "record_shapes": plan.shapes,
            "with_stack": plan.stacks,
            "profile_memory": plan.memory,
        }
        self._opened_before.update(_ranges(torch))
        all_threads = None
        if threading.current_thread() is not threading.main_thread():  # the thread may end before the recording does
            all_threads = _all_threads()
        with as_ours():
            if all_threads is not None:
                wanted["experimental_config"] = all_threads
            else:
                self._thread = threading.current_thread()
            if by_steps:
                wanted["schedule"] = self._action
            self._profiler = torch.profiler.profile(**wanted)
            with without_lines(OTHER_THREAD) if all_threads is not None else contextlib.nullcontext():
                self._profiler.start()

    def _action(self, step: int) -> Any:
        actions = self._torch.profiler.ProfilerAction
        return actions.WARMUP if step < self._plan.warmup else actions.RECORD

    def step(self) -> None:
        self._passed += 1
        if self._passed <= self._plan.warmup:
            wait_for_gpu(self._torch)  # otherwise kernels of the warm-up would run inside the first recorded step
        with as_ours():
            self._profiler.step()

    def end_step(self) -> None:
        step = getattr(self._profiler, "step_rec_fn", None)
        if step is not None:
            with as_ours():
                step.__exit__(None, None, None)
            self._profiler.step_rec_fn = None

    def stop(self, whole: bool) -> None:
        self._whole = whole
        self.end_step()
        with as_ours():
            wait_for_gpu(self._torch)
            self._profiler.stop()
        _left_open.update(one for one in _ranges(self._torch) if one not in self._opened_before)

    def export(self, path: Path) -> None:
        with as_ours():
            self._profiler.export_chrome_trace(str(path))
        if self._plan.stacks:
            self._write_lines(path.with_name(file_beside(path.name, LINES)))
        self._profiler = None
        if not self._whole:
            _rename_step(path, self._passed)

    def _write_lines(self, path: Path) -> None:
        """The lines of calls, which torch leaves out of the trace."""
        try:
            found = call_lines(self._profiler, LINES_S)
            path.write_text(json.dumps({"start_ns": found.start_ns, "line": found.line}), encoding="ascii")
        except Exception as error:  # an experimental function of torch
            self.notes.append(f"no lines of calls: {type(error).__name__}: {' '.join(str(error).split())[:200]}")
            return
        if not found.complete:
            self.notes.append(f"lines of calls are incomplete: they were collected for {LINES_S:g} s only")


def _all_threads() -> Any:
    """The setting that profiles all threads of the process; None if torch does not have it."""
    try:
        return importlib.import_module("torch._C._profiler")._ExperimentalConfig(profile_all_threads=True)
    except (ImportError, AttributeError, TypeError):
        return None


class RangeRecorder:
    """cudaProfilerStart and cudaProfilerStop around the recorded steps, and an NVTX range around each of them."""

    suffix = ""

    def __init__(self, torch: Any, plan: Plan) -> None:
        self._torch, self._plan = torch, plan
        self._passed = 0
        self._recording = False
        self._in_range = False

    def can_stop_here(self) -> bool:
        return True

    def start(self, by_steps: bool) -> None:
        if not by_steps:
            self._begin()
        elif not self._plan.warmup:
            self._begin()
            self._push()

    def step(self) -> None:
        self._passed += 1
        self.end_step()
        if self._passed <= self._plan.warmup:
            wait_for_gpu(self._torch)
        if self._passed == self._plan.warmup:
            self._begin()
        if self._passed >= self._plan.warmup:
            self._push()

    def end_step(self) -> None:
        if self._in_range:
            with as_ours():
                self._torch.cuda.nvtx.range_pop()
            self._in_range = False

    def stop(self, whole: bool) -> None:
        if whole:  # an interrupted step stays open: without an end it does not count as a step
            self.end_step()
        wait_for_gpu(self._torch)
        if self._recording:
            self._torch.cuda.profiler.stop()
            self._recording = False

    def export(self, path: Path) -> None:
        """nsys and ncu write their own files."""

    def _begin(self) -> None:
        # One recording covers all processes: the first process on each machine starts and stops it for all of them.
        if os.environ.get("LOCAL_RANK", "0") == "0":
            self._torch.cuda.profiler.start()
            self._recording = True

    def _push(self) -> None:
        with as_ours():
            self._torch.cuda.nvtx.range_push(f"ProfilerStep#{self._passed}")
        self._in_range = True


def _rename_step(path: Path, number: int) -> None:
    """Drop an interrupted step, which would distort the median and the spread."""
    text = path.read_bytes()
    path.write_bytes(text.replace(b'"ProfilerStep#%d"' % number, b'"unfinished step"'))


def wait_for_gpu(torch: Any) -> None:
    """Wait for the submitted GPU work, if a GPU is in use."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


@dataclass
class CallLines:
    """The line of every Python call, parents before the calls that they make.

    The trace names the first line of the function that is called; torch also knows the line that calls it, and tells it
    only inside the program.
    """

    start_ns: list[int] = field(default_factory=list)
    """When the call began, in nanoseconds since 1970, as in the trace."""
    line: list[int] = field(default_factory=list)
    """The calling line, in the file of the calling frame."""
    complete: bool = True


def call_lines(profiler: Any, seconds: float) -> CallLines:
    """The calling lines of a stopped profiler's Python frames; ends early after so many seconds."""
    found, until = CallLines(), time.monotonic() + seconds
    open_events = [(event, 0) for event in reversed(profiler.profiler.kineto_results.experimental_event_tree())]
    seen = 0
    while open_events:
        event, line = open_events.pop()
        caller = getattr(event.extra_fields, "caller", None)
        if caller is not None:
            # A call that a wrapper of ours passes on keeps the line on which the program makes it.
            line = line if _OURS in caller.file_name else caller.line_number
            found.start_ns.append(event.start_time_ns)
            found.line.append(line)
        open_events.extend((child, line) for child in reversed(event.children))
        seen += 1
        if not seen % CHECK_EVERY and time.monotonic() > until:
            found.complete = False
            break
    return found
