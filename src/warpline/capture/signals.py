"""Signals while a program is recorded: write its trace first, then let the signal act."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator

ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
"""Signals that end a program without cleanup: from a scheduler, or from a closed terminal."""


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
def signals_held() -> Iterator[None]:
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
