"""Runs a program in our place: its input, output and exit code are ours, and signals reach it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from warpline.errors import WarplineError

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
POLL_S = 0.1
SIGNAL_BASE = 128


@dataclass(frozen=True)
class Ending:
    """How the program ended."""

    exit_code: int
    """Its own, or 128 and the signal's number, as a shell has it."""
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
    """Runs the command to its end; `look` is called with the process some times a second while it runs."""
    sys.stdout.flush()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    started = time.monotonic()
    try:
        child = subprocess.Popen(
            list(command),
            env=dict(environment),
            stdout=sys.stderr.fileno() if output_to_stderr else None,
            # We have no threads yet, and the mask would be inherited.
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
    except ValueError:  # the real-time signals have none
        return f"signal {number}"


def _wait_and_forward(child: subprocess.Popen[bytes]) -> bool:
    """Sleeps for a moment, or until a signal comes, which the child gets too; says whether one came."""
    if not hasattr(signal, "sigtimedwait"):  # macOS
        time.sleep(POLL_S)
        return _forward_pending(child)
    came = signal.sigtimedwait((*FORWARDED, signal.SIGCHLD), POLL_S)
    if came is None or came.si_signo == signal.SIGCHLD:
        return False
    # A terminal's Ctrl-C goes to all of its foreground processes: the child has had it already.
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
    """Signals that were meant for the program do not end us once it has ended."""
    while signal.sigpending() & set(FORWARDED):
        signal.sigwait(FORWARDED)


def forwarding_environment(environment: Mapping[str, str], injected: str) -> dict[str, str]:
    """The environment with a folder in front of PYTHONPATH."""
    before = environment.get("PYTHONPATH", "")
    return {**environment, "PYTHONPATH": os.pathsep.join([injected, before] if before else [injected])}
