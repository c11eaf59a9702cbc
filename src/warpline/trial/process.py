"""One process of the program: started, paused while others are measured, let through windows, and ended."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from warpline.capture.trial.agent import ASKED, ENDED, LEADER, LOOKED, PERMITTED
from warpline.capture.trial.gate import ALLOWED, READY, WINDOWS
from warpline.capture.trial.use import ProgramUse
from warpline.quote import quote

ERROR_CHARS = 160
COMPILING = ("torch/_inductor/", "_dynamo/convert_frame", "torch/_dynamo/")
"""Parts of a frame's file while torch.compile is at work."""
INSTALLED = ("-packages/", "/lib/python", "/bin/", "<frozen")
"""Parts of a frame's file that is not the program's own."""


class TimedWindow(msgspec.Struct, frozen=True):
    """A window of steps, as the program wrote it."""

    last_step: int
    step_s: float
    compiled: bool
    """Whether something was compiled in it: then it does not count."""
    gpu_bytes: int
    host_bytes: int
    proof: dict[str, int]
    compile: dict[str, Any]
    loss: float | None = None


class ProcessReport(msgspec.Struct, frozen=True):
    """What the program wrote before its first window, or at its end."""

    results: dict[str, list[list[float]]]
    steps: int
    gpu_bytes: int
    gpu_reserved_bytes: int
    gpu_free_bytes: int
    host_bytes: int
    proof: dict[str, int]
    compile: dict[str, Any]
    ready_after_s: float | None = None


class HeardEvent(msgspec.Struct, frozen=True):
    """Calls that may end a step."""

    kind: str
    who: int
    name: str
    times_s: tuple[float, ...]


class LookReport(ProcessReport, frozen=True, kw_only=True):
    """What the first run wrote."""

    ended: bool
    """Whether the program came to its end."""
    use: ProgramUse
    events: tuple[HeardEvent, ...]


class VariantProcess:
    """A running program with some changes."""

    def __init__(
        self, name: str, folder: Path, command: Sequence[str], environment: Mapping[str, str], working_folder: Path
    ) -> None:
        self.name, self.folder = name, folder
        self.windows: list[TimedWindow] = []
        self.report: ProcessReport | None = None
        self.error = ""
        self.paused = False
        self.limit_s = 0.0
        """It hangs if it is not ready after so many seconds."""
        self._allowed = 0
        self._read = 0
        self._groups: set[int] = set()
        """Its process groups, once it is ready: with its ranks."""
        self._log = (folder / "log.txt").open("wb")
        self.started = time.monotonic()
        self._child = subprocess.Popen(
            list(command),
            env=dict(environment),
            cwd=working_folder,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )

    @property
    def is_over(self) -> bool:
        """Whether it failed or ended."""
        return bool(self.error) or self._child.poll() is not None

    def has_failed(self) -> bool:
        """Whether the program ended with an error."""
        return self._child.wait() != 0

    def is_ready(self) -> bool:
        """Whether it waits before its first window."""
        file = self.folder / READY
        if self.report is None and file.exists():
            self.report = msgspec.json.decode(file.read_bytes(), type=ProcessReport)
            for pid in self._left():
                with contextlib.suppress(ProcessLookupError):
                    self._groups.add(os.getpgid(pid))
        return self.report is not None

    def looked(self) -> LookReport | None:
        """What the first run saw, once it has."""
        file = self.folder / LOOKED
        return msgspec.json.decode(file.read_bytes(), type=LookReport) if file.exists() else None

    def has_called(self) -> bool:
        """Whether any call was heard that may end a step."""
        return (self.folder / LEADER).exists()

    def asks_to_write(self) -> str:
        """The first file outside the working folder, which it waits to write; empty if it does not wait."""
        file = self.folder / ASKED
        return os.fsdecode(file.read_bytes()) if file.exists() and not (self.folder / PERMITTED).exists() else ""

    def permit_writing(self) -> None:
        """Let it write whatever it writes."""
        (self.folder / PERMITTED).touch()

    def pause(self) -> None:
        """Stop it with its workers, so that nothing of it disturbs the others and no queue fills meanwhile."""
        self._signal(signal.SIGSTOP)
        self.paused = True

    def run_window(self) -> None:
        """Let it run one window; `has_window` tells when it is over."""
        self._allowed += 1
        part = self.folder / f"{ALLOWED}.part"
        part.write_text(str(self._allowed))
        part.replace(self.folder / ALLOWED)
        if self.paused:
            self._signal(signal.SIGCONT)
            self.paused = False

    def has_window(self) -> bool:
        """Whether the window it was allowed to run is over."""
        file = self.folder / WINDOWS
        if not file.exists():
            return False
        lines = file.read_bytes().split(b"\n")[:-1]
        for line in lines[self._read :]:
            self.windows.append(msgspec.json.decode(line, type=TimedWindow))
        self._read = len(lines)
        return len(self.windows) >= self._allowed

    def fail(self, reason: str) -> None:
        """Note why it is of no use any more, and end it."""
        self.error = self.error or reason
        self.end()

    def fail_by_itself(self) -> None:
        """Note why the program ended before it should."""
        code = self._child.wait()
        if not code and self.windows:
            return  # a short program: its windows count
        ended = self.folder / ENDED
        if ended.exists() and self.report is None:
            self.report = msgspec.json.decode(ended.read_bytes(), type=ProcessReport)
        if code:
            self.fail(f"crashed: {self._last_error(code)}")
        elif self.report is not None and self.report.steps:
            self.fail(f"the program ended after {self.report.steps} steps")
        else:
            self.fail("the program ended without a step")

    def fail_late(self, seconds: float) -> None:
        """Note that it hangs, and where."""
        self.fail(f"hung: not ready after {seconds:.0f} s{self.place()}")

    def place(self) -> str:
        """Where in its own files it was when it should have been ready, in brackets; empty if that is not known."""
        files = [line.strip() for line in self._lines() if line.strip().startswith("File ")]
        compiles = any(part in line for line in files for part in COMPILING)
        own = [line for line in files if not any(part in line for part in INSTALLED)]
        where = "it was compiling" if compiles else quote((own or files)[0], ERROR_CHARS) if files else ""
        return f" ({where})" if where else ""

    def problem(self) -> str:
        """Why our own part failed inside the program; empty if it did not."""
        file = self.folder / "problems.txt"
        return quote(file.read_text(errors="replace"), ERROR_CHARS) if file.exists() else ""

    def end(self) -> None:
        """End it, with its workers and ranks."""
        self._signal(signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(10)
        for pid in self._left():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        self._log.close()

    def _left(self) -> list[int]:
        """Its processes in sessions of their own, as the ranks of torchrun are: they have its plan, which names its
        folder. Known only where there is /proc."""
        named = json.dumps(str(self.folder)).encode()
        left = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if named in (process / "environ").read_bytes():
                    left.append(int(process.name))
        return left

    def _signal(self, number: signal.Signals) -> None:
        for group in {self._child.pid, *self._groups}:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, number)

    def _lines(self) -> list[str]:
        with contextlib.suppress(OSError):
            return (self.folder / "log.txt").read_text(errors="replace").splitlines()
        return []

    def _last_error(self, code: int) -> str:
        lines = [line.strip() for line in self._lines() if line.strip()]
        if any("OutOfMemoryError" in line or "CUDA out of memory" in line for line in lines):
            return "out of memory"
        if code == -signal.SIGKILL:
            return "killed, perhaps for want of memory"
        errors = (line for line in reversed(lines) if "Error" in line.split(" ")[0])
        return quote(next(errors, lines[-1] if lines else f"exit code {code}"), ERROR_CHARS)
