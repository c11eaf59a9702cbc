"""Run a program with our input and output, forward signals to it, return its exit code, and end what it leaves."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from warpline.errors import WarplineError

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
POLL_S = 0.1
SIGNAL_BASE = 128
GRACE_S = 10.0
"""Time that a process has after each signal before the next, stronger one."""
ENDING_ORDER = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


@dataclass(frozen=True)
class Ending:
    """How the program ended."""

    exit_code: int
    """Its own exit code, or 128 plus the signal number, as in a shell."""
    signal: str | None
    seconds: float
    interrupted: bool
    """Whether we were asked to stop while it ran."""


def launch(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    output_to_stderr: bool = False,
    look: Callable[[subprocess.Popen[bytes]], None] = lambda child: None,
) -> Ending:
    """Run the command to its end; `look` is called with the process a few times per second."""
    sys.stdout.flush()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    started = time.monotonic()
    try:
        child = subprocess.Popen(
            list(command),
            env=dict(environment),
            stdout=sys.stderr.fileno() if output_to_stderr else None,
            # There are no threads yet, and the child would inherit the mask.
            preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before),  # noqa: PLW1509
        )
    except OSError as error:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        raise WarplineError("cannot-run", f"{command[0]} could not be started: {error.strerror or error}") from error
    interrupted = False
    try:
        while child.poll() is None:
            interrupted |= _wait_and_forward(child)
            look(child)
    finally:
        _forget_pending()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    code = child.returncode
    name = _name(-code) if code < 0 else None
    return Ending(SIGNAL_BASE - code if code < 0 else code, name, time.monotonic() - started, interrupted)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # real-time signals have no name
        return f"signal {number}"


def _wait_and_forward(child: subprocess.Popen[bytes]) -> bool:
    """Sleep briefly, or until a signal arrives, and forward it to the child; return whether one arrived."""
    if not hasattr(signal, "sigtimedwait"):  # macOS
        time.sleep(POLL_S)
        return _forward_pending(child)
    came = signal.sigtimedwait((*FORWARDED, signal.SIGCHLD), POLL_S)
    if came is None or came.si_signo not in FORWARDED:  # the child's end, or a wait that was interrupted
        return False
    # A terminal sends Ctrl-C to all of its foreground processes: the child already has it.
    from_terminal = came.si_code > 0
    if not from_terminal and child.poll() is None:
        child.send_signal(came.si_signo)
    return came.si_signo in {signal.SIGINT, signal.SIGTERM}


def _forward_pending(child: subprocess.Popen[bytes]) -> bool:
    pending = signal.sigpending() & set(FORWARDED)
    for number in pending:
        signal.sigwait({number})
        if number != signal.SIGINT:
            child.send_signal(number)
    return bool(pending & {signal.SIGINT, signal.SIGTERM})


def _forget_pending() -> None:
    """Ignore signals for the program that arrive after it has ended."""
    while signal.sigpending() & set(FORWARDED):
        signal.sigwait(FORWARDED)


def forwarding_environment(environment: Mapping[str, str], injected: str) -> dict[str, str]:
    """The environment with a folder prepended to PYTHONPATH."""
    before = environment.get("PYTHONPATH", "")
    return {**environment, "PYTHONPATH": os.pathsep.join([injected, before] if before else [injected])}


class EndProcesses:
    """Processes that have been asked to end and may not want to: Ctrl-C first, then SIGTERM, then SIGKILL."""

    def __init__(self, pids: Iterable[int], say: Callable[[str], None]) -> None:
        self._pids, self._say = dict.fromkeys(pids), say
        self._sent = 0
        self._send()

    def insist(self) -> None:
        """Send the next signal to those that still run, once the grace time has passed."""
        if self._sent < len(ENDING_ORDER) and time.monotonic() - self._since > GRACE_S:
            self._send()

    def wait(self) -> None:
        """Return when none is left."""
        while any(map(_runs, self._pids)):
            if self._sent == len(ENDING_ORDER) and time.monotonic() - self._since > GRACE_S:
                return  # a process that SIGKILL does not end hangs in the kernel
            self.insist()
            time.sleep(POLL_S)

    def _send(self) -> None:
        number = ENDING_ORDER[self._sent]
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
