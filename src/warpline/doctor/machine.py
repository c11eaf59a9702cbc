"""The machine's interface for the checks: a few bounded queries, which tests can replace."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

MAX_FILE_BYTES = 1 << 20
TIMEOUT_SECONDS = 10.0


class ProgramOutput(Struct, frozen=True):
    """The output of a program."""

    status: int
    output: str
    errors: str = ""


class Space(Struct, frozen=True):
    """The space on a disk."""

    free_bytes: int
    total_bytes: int


class Machine(Protocol):
    """All queries of the checks; None if there is no answer."""

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment variables."""

    def read(self, path: str) -> str | None:
        """A small text file."""

    def exists(self, path: str) -> bool:
        """Whether the file or folder exists."""

    def names(self, folder: str) -> tuple[str, ...]:
        """The names in a folder; empty if it cannot be read."""

    def writable(self, folder: str) -> bool:
        """Whether files can be created there."""

    def which(self, program: str) -> str | None:
        """The path of a program, with links resolved."""

    def ask(self, command: Sequence[str], seconds: float = TIMEOUT_SECONDS) -> ProgramOutput | None:
        """Run a program; None if it cannot be run or does not finish in time."""

    def space(self, folder: str) -> Space | None:
        """The disk space at a folder."""

    def limit(self, name: str) -> int | None:
        """A resource limit (``memlock``, ``stack``); -1 if unlimited."""

    def processes(self) -> tuple[str, ...]:
        """The names of the running programs."""


class ThisMachine(Struct, frozen=True):
    """The machine that this program runs on."""

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment variables."""
        return os.environ

    def read(self, path: str) -> str | None:
        """A small text file."""
        try:
            with Path(path).open("rb") as file:
                return file.read(MAX_FILE_BYTES).decode("utf-8", "replace")
        except OSError:
            return None

    def exists(self, path: str) -> bool:
        """Whether the file or folder exists."""
        return os.path.exists(path)  # noqa: PTH110 - never raises

    def names(self, folder: str) -> tuple[str, ...]:
        """The names in a folder; empty if it cannot be read."""
        try:
            return tuple(sorted(os.listdir(folder)))  # noqa: PTH208 - names, not paths
        except OSError:
            return ()

    def writable(self, folder: str) -> bool:
        """Whether files can be created there."""
        return os.access(folder, os.W_OK | os.X_OK)

    def which(self, program: str) -> str | None:
        """The path of a program, with links resolved."""
        found = shutil.which(program)
        return os.path.realpath(found) if found else None

    def ask(self, command: Sequence[str], seconds: float = TIMEOUT_SECONDS) -> ProgramOutput | None:
        """Run a program; None if it cannot be run or does not finish in time."""
        try:
            process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except (OSError, ValueError):
            return None
        try:
            streams = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            # Do not wait for it: nvidia-smi cannot be killed if the GPU has fallen off the bus.
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            return None
        return ProgramOutput(
            process.returncode, *(part[:MAX_FILE_BYTES].decode("utf-8", "replace") for part in streams)
        )

    def space(self, folder: str) -> Space | None:
        """The disk space at a folder."""
        try:
            usage = shutil.disk_usage(folder)
        except OSError:
            return None
        return Space(usage.free, usage.total)

    def limit(self, name: str) -> int | None:
        """A resource limit; -1 if unlimited."""
        try:
            import resource  # noqa: PLC0415 - not on every system
        except ImportError:
            return None
        kind = {"memlock": resource.RLIMIT_MEMLOCK, "stack": resource.RLIMIT_STACK}.get(name)
        if kind is None:
            return None
        soft, _ = resource.getrlimit(kind)
        return -1 if soft == resource.RLIM_INFINITY else soft

    def processes(self) -> tuple[str, ...]:
        """The names of the running programs."""
        own = str(os.getpid())
        found = (self.read(f"/proc/{name}/comm") for name in self.names("/proc") if name.isdecimal() and name != own)
        return tuple(sorted({name.strip() for name in found if name and name.strip()}))
