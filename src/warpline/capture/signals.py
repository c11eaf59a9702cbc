"""Signals while a program is recorded: its trace comes first, and then what they were meant to do."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator

SILENT = (signal.SIGTERM, signal.SIGHUP)
"""End a program without a word: a scheduler's, and that of a terminal that is closed."""


class LastWords:
    """While they are held, signals that end a program without a word have the word said first.

    Handlers of the program's own are left alone, and so is SIGHUP under nohup.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._held: list[int] = []

    def hold(self) -> None:
        """From here on."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in SILENT:
            if signal.getsignal(number) == signal.SIG_DFL:
                signal.signal(number, self._on_signal)
                self._held.append(number)

    def release(self) -> None:
        """As it was, unless the program has set a handler since."""
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
    """Ctrl-C and the like wait until the trace is written."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, *SILENT)}
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
