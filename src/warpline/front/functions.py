"""Functions of the Python API: open a profile, or diagnose it in one line."""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from warpline.analyses.memory import MemoryUse, memory_of_snapshot
from warpline.errors import UsageError
from warpline.findings.diagnosis import Diagnosis
from warpline.front.trace import Trace
from warpline.hardware import RooflinePoint
from warpline.hardware import roofline as roofline_of_numbers
from warpline.replay.whatif import Prediction
from warpline.sources.detect import detect
from warpline.sources.kinds import MEMORY_SNAPSHOT
from warpline.sources.snapshot import read_snapshot
from warpline.trace.open import open_trace as open_linked


def open_trace(
    path: str | Path, *, steps: str | None = None, step_range: str | None = None, cache: bool = True
) -> Trace:
    """Open a profile: torch.profiler JSON or an nsys SQLite export (plain or gzipped), an .nsys-rep, or their folder.

    `steps` selects steps ("3:6"), `step_range` names the NVTX range or record_function that is a step, and
    `cache=False` parses the file again instead of using the cache.

    >>> trace = warpline.open("trace.json.gz")
    >>> trace.table("gpu")
    """
    return Trace(**asdict(open_linked(path, steps=steps, step_range=step_range, cache=cache)))


def diagnose(path: str | Path, *, why: bool | None = None) -> Diagnosis:
    """Explain why the GPU is slow, and what each fix would gain: `warpline.open(path).diagnose()`.

    >>> warpline.diagnose("trace.json.gz").verdict
    """
    return open_trace(path).diagnose(why)


def whatif(path: str | Path, *fixes: str) -> Prediction:
    """Predict the step time with these fixes applied together: `warpline.open(path).whatif(...)`.

    >>> warpline.whatif("trace.json.gz", "tf32").gain.expected
    """
    return open_trace(path).whatif(*fixes)


def memory_use(path: str | Path, *, steps: str | None = None, step_range: str | None = None) -> MemoryUse:
    """Where the memory goes, from a trace or from torch's memory snapshot, which is read without executing it.

    >>> warpline.memory_use("snapshot.pickle").devices[0].peak.allocated_bytes
    """

    file = Path(path)
    if detect(file) is not MEMORY_SNAPSHOT:
        return open_trace(file, steps=steps, step_range=step_range).memory_use()
    if steps or step_range:
        raise UsageError("no-steps", "a memory snapshot has no steps to choose from", "leave out steps")

    return memory_of_snapshot(read_snapshot(file))


@wraps(roofline_of_numbers)
def roofline(*numbers: Any, **options: Any) -> RooflinePoint:
    """Same as `warpline.hardware.roofline`, with a helpful error if it is given a trace."""
    if any(isinstance(value, Trace) for value in (*numbers, *options.values())):
        hint = "the roofline of a trace is trace.roofline()"
        raise UsageError("not-numbers", "warpline.roofline takes numbers, not a trace", hint)
    return roofline_of_numbers(*numbers, **options)
