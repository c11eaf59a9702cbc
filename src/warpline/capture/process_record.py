"""What one process has to say about its recording: a small file, written as it goes along.

It is there while the recording runs, so that a process that is killed still leaves word of what was lost.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import platform
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from warpline.capture.laps import StepTime

PARTS = "parts"
RECORDING, RECORDED, NOTHING = "recording", "recorded", "nothing"


@dataclass
class ProcessRecord:
    """One process of the program; the fields are those of a `traces` entry in the manifest."""

    state: str = NOTHING
    file: str | None = None
    """The trace, in the folder of the run."""
    pid: int = 0
    rank: int | None = None
    world_size: int | None = None
    python: str = ""
    torch: str = ""
    cuda: str | None = None
    device: str | None = None
    steps_found_by: str | None = None
    steps_seen: dict[str, int] = field(default_factory=dict)
    """How often each source spoke, until the recording was done."""
    steps_recorded: int = 0
    first_step: int | None = None
    """Steps that passed before the first recorded one."""
    bare_step_ns: StepTime | None = None
    """A step before anything was recorded."""
    recorded_step_ns: StepTime | None = None
    """A step while it was recorded."""
    later_step_ns: StepTime | None = None
    """A step after the recording."""
    host_costs: dict[str, Any] | None = None
    """What ops, launches and their recording cost this host (`capture.calibration`), measured after the recording."""
    recorded_s: float | None = None
    ended_by: str | None = None
    """`steps`, `seconds`, `megabytes`, `exit`, `SIGTERM`, `other profiler` or `error`."""
    own_traces: list[str] = field(default_factory=list)
    """Traces that the program's own profiler wrote."""
    notes: list[str] = field(default_factory=list)
    number: int = field(default_factory=itertools.count().__next__)
    """A process may record several times, by warpline.profile."""

    def write(self, folder: Path) -> None:
        """Writes it whole or not at all."""
        parts = folder / PARTS
        parts.mkdir(parents=True, exist_ok=True)
        draft = parts / f".{self.pid}.{os.getpid()}"
        draft.write_text(json.dumps(asdict(self)), encoding="utf-8")
        draft.replace(parts / f"{self.pid}-{self.number}.json")


def describe(record: ProcessRecord, torch: Any) -> None:
    """Fills in what can be said of this process and its torch."""
    record.pid = os.getpid()
    record.python = platform.python_version()
    record.torch = str(torch.__version__)
    record.cuda = str(torch.version.cuda) if getattr(torch.version, "cuda", None) else None
    record.rank, record.world_size = _rank(torch)
    if torch.cuda.is_initialized():
        record.device = str(torch.cuda.get_device_name())


def _rank(torch: Any) -> tuple[int | None, int | None]:
    with contextlib.suppress(Exception):  # a torch built without it, or a group that is already gone
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            return int(torch.distributed.get_rank()), int(torch.distributed.get_world_size())
    rank, size = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    return (int(rank) if rank.isdecimal() else None), (int(size) if size.isdecimal() else None)


def claim_name(folder: Path, record: ProcessRecord, suffix: str) -> Path:
    """A name for this process's trace that no other process has taken."""
    first = f"rank{record.rank}" if record.rank is not None else "trace"
    for name in (first, f"{first}-{record.pid}"):
        path = folder / f"{name}{suffix}"
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
            return path
    return folder / f"{first}-{record.pid}-{os.urandom(2).hex()}{suffix}"


def read_parts(folder: Path) -> list[dict[str, Any]]:
    """What all processes wrote: those with steps first, since one that starts others only waits, and low ranks."""
    parts = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((folder / PARTS).glob("*.json"))]
    return sorted(
        parts,
        key=lambda part: (
            not part["steps_recorded"],
            part["rank"] is None,
            part["rank"] or 0,
            part["pid"],
            part["number"],
        ),
    )
