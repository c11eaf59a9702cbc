"""Watch a session's limits from a thread, and act on them in the program's main thread.

torch.profiler records the thread that starts it, so this thread cannot start or stop the recording. Python runs a
pending call in the main thread, between two bytecodes, without a signal that the program might use itself.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from warpline.capture.session import RECORDS, WAITING, Session
from warpline.capture.this_process import is_data_worker

TICK_S = 0.1
LIMIT_GRACE_FACTOR = 1.5
"""A step may exceed the limits by this factor, so that the recording can end with it."""
LAUNCHERS = ("torch.distributed.elastic.agent.server.api", "deepspeed.launcher.launch")
"""Modules that only a process that starts the ranks has loaded."""

_kept: list[Any] = []
"""Functions that Python may still call when no other reference exists."""


class LimitWatch:
    """A thread that opens the time window if no step is found, and ends a recording that exceeds its limits."""

    def __init__(self, torch: Any, session: Session) -> None:
        self._torch, self._session = torch, session
        self._quiet_since = time.monotonic()
        self._on_gpu = False
        self._open_soon = in_main_thread(self._open)
        self._end_soon = in_main_thread(self._end_recording)
        self._look_soon = in_main_thread(session.look_for_another_step)
        threading.Thread(target=self._run, name="warpline-watch", daemon=True).start()

    def _run(self) -> None:
        while not self._session.over:
            time.sleep(TICK_S)
            self._session.weigh()
            self._look()

    def _look(self) -> None:
        session = self._session
        if session.phase == WAITING:
            if self._torch.cuda.is_initialized() and not self._on_gpu:
                self._on_gpu, self._quiet_since = True, time.monotonic()
            heard = session.finder.first_heard
            late = time.monotonic() - max(self._quiet_since, heard) > session.plan.after_s
            if late and not session.finder.narrow and not session.window_taken and self._may_open():
                self._open_soon()
            elif session.has_lost_the_step():
                self._look_soon()
        elif session.over_bounds(self._grace()):
            self._end_soon()

    def _grace(self) -> float:
        return LIMIT_GRACE_FACTOR if self._session.phase == RECORDS else 1.0

    def _open(self) -> None:
        if not _importing():  # starting the profiler imports parts of torch, which may be half imported
            self._session.open_window()

    def _end_recording(self) -> None:
        bound = self._session.over_bounds(self._grace())
        if bound and not self._session.capturing():
            self._session.cut(bound)

    def _may_open(self) -> bool:
        """Whether this process does the work: not a launcher, a data loader, or a process that only imports torch."""
        if any(name in sys.modules for name in LAUNCHERS) or is_data_worker():
            return False
        return bool(self._torch.cuda.is_initialized() or (self._session.speaks and not _has_gpu(self._torch)))


def in_main_thread(call: Callable[[], None]) -> Callable[[], None]:
    """A function that runs a call in the main thread, soon."""

    def pending(_: Any) -> int:
        call()
        return 0

    pointer = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(pending)
    _kept.append(pointer)
    return lambda: ctypes.pythonapi.Py_AddPendingCall(pointer, None) and None


def _importing() -> bool:
    """Whether this thread is in the middle of an import."""
    frame: Any = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def _has_gpu(torch: Any) -> bool:
    """Whether a GPU could be used, determined without starting the driver."""
    built_for_one = bool(getattr(torch.version, "cuda", None) or getattr(torch.version, "hip", None))
    devices = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES") == ""
    return built_for_one and not hidden and any(Path(device).exists() for device in devices)


def first_here(folder: Path) -> bool:
    """Whether this is the first of the program's processes to load torch."""
    try:
        os.close(os.open(folder / ".first", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
    except OSError:
        return False
    return True
