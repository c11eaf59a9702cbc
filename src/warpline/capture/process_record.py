"""The report of one process about its recording: a small file, updated as it proceeds.

It exists while the recording runs, so that a killed process still reports what was lost.
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

from warpline.capture.bare_step_timer import StepTime
from warpline.capture.run_folder import LoaderWork

PARTS = "parts"
RECORDING, RECORDED, NOTHING = "recording", "recorded", "nothing"


@dataclass
class ProcessRecord:
    """One process of the program; the fields are those of a `traces` entry in the manifest."""

    state: str = NOTHING
    file: str | None = None
    """The trace, relative to the folder of the run."""
    pid: int = 0
    rank: int | None = None
    world_size: int | None = None
    python: str = ""
    torch: str = ""
    cuda: str | None = None
    device: str | None = None
    steps_found_by: str | None = None
    step_is: str | None = None
    """What a step is, for people."""
    steps_seen: dict[str, int] = field(default_factory=dict)
    """How often each source of steps fired, until the recording ended."""
    steps_recorded: int = 0
    first_step: int | None = None
    """The number of steps before the first recorded one."""
    bare_step_ns: StepTime | None = None
    """The step time before the recording."""
    loader_work: LoaderWork | None = None
    """What the workers of a DataLoader did for each of those steps."""
    recorded_step_ns: StepTime | None = None
    """The step time during the recording."""
    later_step_ns: StepTime | None = None
    """The step time after the recording."""
    host_costs: dict[str, Any] | None = None
    """What ops, launches and their recording cost this host (`capture.calibration`), measured after the recording."""
    look: dict[str, Any] | None = None
    """The second pass (`capture.second_pass`): state, steps, files and notes."""
    optimizers: list[dict[str, Any]] = field(default_factory=list)
    """The line that constructs each optimizer: class, file, line and function."""
    recorded_s: float | None = None
    ended_by: str | None = None
    """`steps`, `seconds`, `megabytes`, `exit`, `SIGTERM`, `other profiler` or `error`."""
    own_traces: list[str] = field(default_factory=list)
    """Traces that the program's own profiler wrote."""
    notes: list[str] = field(default_factory=list)
    number: int = field(default_factory=itertools.count().__next__)
    """A process may record several times, with warpline.profile."""

    def write(self, folder: Path) -> None:
        """Write the report atomically."""
        parts = folder / PARTS
        parts.mkdir(parents=True, exist_ok=True)
        draft = parts / f".{self.pid}.{os.getpid()}"
        draft.write_text(json.dumps(asdict(self)), encoding="utf-8")
        draft.replace(parts / f"{self.pid}-{self.number}.json")


def describe(record: ProcessRecord, torch: Any) -> None:
    """Fill in the facts about this process and its torch."""
    record.pid = os.getpid()
    record.python = platform.python_version()
    record.torch = str(torch.__version__)
    record.cuda = str(torch.version.cuda) if getattr(torch.version, "cuda", None) else None
    record.rank, record.world_size = _rank(torch)
    if torch.cuda.is_initialized():
        record.device = str(torch.cuda.get_device_name())


def _rank(torch: Any) -> tuple[int | None, int | None]:
    with contextlib.suppress(Exception):  # a torch built without it, or a group that no longer exists
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            return int(torch.distributed.get_rank()), int(torch.distributed.get_world_size())
    rank, size = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    return (int(rank) if rank.isdecimal() else None), (int(size) if size.isdecimal() else None)


def claim_name(folder: Path, record: ProcessRecord, suffix: str) -> Path:
    """A unique name for this process's trace."""
    first = f"rank{record.rank}" if record.rank is not None else "trace"
    for name in (first, f"{first}-{record.pid}"):
        path = folder / f"{name}{suffix}"
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            return path
    return folder / f"{first}-{record.pid}-{os.urandom(2).hex()}{suffix}"


def file_beside(trace: str, suffix: str) -> str:
    """The name of a file that belongs to a trace: `rank0.json` and `rank0.json.gz` to `rank0.stacks.json`."""
    name = trace[:-3] if trace.endswith(".gz") else trace
    return (name[:-5] if name.endswith(".json") else name) + suffix


def read_parts(folder: Path) -> list[dict[str, Any]]:
    """The reports of all processes: those with steps first, because a launcher only waits, then by rank."""
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
