"""This process, often the recorded one: facts about it, and signals that must wait until its trace is written."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from typing import Any

TEARDOWN = "TEARDOWN_CUPTI"
"""If 1, Kineto detaches CUPTI when a recording ends; otherwise every later launch stays slower."""
DETACHES_WITH_GRAPHS = (12, 6)
"""The CUDA version from which detaching is safe with CUDA graphs; torch uses the same limit."""
ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
"""Signals that end a program without cleanup: from a scheduler, or from a closed terminal."""
NO_TASK = -1
"""Torch's number for no backward()."""


def usable_cores() -> int:
    """Cores that this process may use: in a container or under Slurm fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def keep_attached_with_graphs(torch: Any) -> None:
    """Do not detach in a program with CUDA graphs on an older CUDA."""
    version = str(getattr(torch.version, "cuda", None) or "0").split(".")
    if tuple(int(part) for part in version[:2] if part.isdecimal()) < DETACHES_WITH_GRAPHS:
        os.environ[TEARDOWN] = "0"


def tracing_check(torch: Any) -> Callable[[], bool]:
    """A function that says whether torch is compiling or tracing: our calls would become part of the graph."""
    is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", bool)
    is_tracing = getattr(torch.jit, "is_tracing", bool)
    return lambda: bool(is_compiling() or is_tracing())


def called_by_torch_check(torch: Any) -> Callable[[], bool]:
    """A function that says whether this thread is in backward(), where it is torch that calls, or in a transform of
    torch.func, where tensors are wrapped and must not be kept."""
    task = getattr(torch._C, "_current_graph_task_id", lambda: NO_TASK)
    transform = getattr(getattr(torch._C, "_functorch", None), "peek_interpreter_stack", lambda: None)
    return lambda: bool(task() != NO_TASK or transform() is not None)


def is_data_worker() -> bool:
    """Whether this process is a DataLoader worker."""
    data = sys.modules.get("torch.utils.data")
    return data is not None and data.get_worker_info() is not None


def resident_bytes() -> int:
    """Memory of this process; 0 if /proc does not show it."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - read many times a second
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


@contextlib.contextmanager
def without_lines(part: str) -> Iterator[None]:
    """Leave lines with this text out of what native code writes to stderr meanwhile."""
    try:
        copy = os.dup(2)
    except OSError:  # the program has closed its stderr
        yield
        return
    with tempfile.TemporaryFile() as kept:
        os.dup2(kept.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(copy, 2)
            os.close(copy)
            kept.seek(0)
            lines = [line for line in kept.read().splitlines(keepends=True) if part.encode() not in line]
            if lines:
                os.write(2, b"".join(lines))


class LastWords:
    """While active, write the trace before a signal ends the program.

    The program's own handlers stay, and so does SIGHUP under nohup.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._held: list[int] = []

    def hold(self) -> None:
        """Install the handlers."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in ENDING_SIGNALS:
            if signal.getsignal(number) == signal.SIG_DFL:
                signal.signal(number, self._on_signal)
                self._held.append(number)

    def release(self) -> None:
        """Restore the handlers, unless the program has set its own since."""
        for number in self._held:
            # Compared by equality: a bound method is a new object each time.
            if signal.getsignal(number) == self._on_signal:
                with contextlib.suppress(ValueError):  # not in the main thread
                    signal.signal(number, signal.SIG_DFL)
        self._held.clear()

    def _on_signal(self, number: int, frame: object) -> None:
        signal.signal(number, signal.SIG_IGN)  # `timeout` and others send it twice
        self._say(signal.Signals(number).name)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


@contextlib.contextmanager
def hold_signals() -> Iterator[None]:
    """Delay Ctrl-C and similar signals until the trace is written."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, *ENDING_SIGNALS)}
    known = {number: handler for number, handler in handlers.items() if handler is not None}
    for number in known:
        signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, handler in known.items():
            signal.signal(number, handler)
        for sent in dict.fromkeys(came):
            os.kill(os.getpid(), sent)
