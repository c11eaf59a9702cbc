"""End processes that may not want to: Ctrl-C first, then SIGTERM, then SIGKILL."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable

GRACE_S = 10.0
"""Time that a process has after each signal before the next, stronger one."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
POLL_S = 0.05


class EndProcesses:
    """Processes that have been asked to end."""

    def __init__(self, pids: Iterable[int], say: Callable[[str], None]) -> None:
        self._pids, self._say = dict.fromkeys(pids), say
        self._sent = 0
        self._send()

    def insist(self) -> None:
        """Send the next signal to those that still run, once the grace time has passed."""
        if self._sent < len(SIGNALS) and time.monotonic() - self._since > GRACE_S:
            self._send()

    def wait(self) -> None:
        """Return when none is left."""
        while any(map(_runs, self._pids)):
            if self._sent == len(SIGNALS) and time.monotonic() - self._since > GRACE_S:
                return  # a process that SIGKILL does not end hangs in the kernel
            self.insist()
            time.sleep(POLL_S)

    def _send(self) -> None:
        number = SIGNALS[self._sent]
        left = [pid for pid in self._pids if _runs(pid)]
        if self._sent and left:
            self._say(f"the program did not end within {GRACE_S:g} s; sending {number.name}")
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        self._sent += 1
        self._since = time.monotonic()


def _runs(pid: int) -> bool:
    """Whether the process exists and is no zombie, which only waits for its parent."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's: the number was given away
        return False
    with contextlib.suppress(OSError, IndexError), open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
        return file.read().rpartition(b")")[2].split()[0] not in {b"Z", b"X"}
    return True
