"""Signals while a program is recorded: its trace comes first, and then what they were meant to do."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator


class Sigterm:
    """SIGTERM ends a program without a word; while it is held, the word is said first.

    A handler of the program's own is left alone.
    """

    def __init__(self, say: Callable[[], None]) -> None:
        self._say = say
        self._held = False

    def hold(self) -> None:
        """From here on."""
        in_main = threading.current_thread() is threading.main_thread()
        if in_main and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._on_signal)
            self._held = True

    def release(self) -> None:
        """As it was, unless the program has set a handler since."""
        # Compared by equality: a bound method is a new object each time.
        if self._held and signal.getsignal(signal.SIGTERM) == self._on_signal:
            with contextlib.suppress(ValueError):  # not in the main thread
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._held = False

    def _on_signal(self, number: int, frame: object) -> None:
        self._say()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)


@contextlib.contextmanager
def interrupts_held() -> Iterator[None]:
    """Ctrl-C while the trace is written waits until it is."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is None:
        yield
        return
    came: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            os.kill(os.getpid(), signal.SIGINT)
