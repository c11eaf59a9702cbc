"""What `warpline run` stores with a recording, for those who read it: little is loaded for that."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpline.untrusted_json import read_json

SCHEMA = "warpline.run/1"
MANIFEST = "manifest.json"
COSTS_SCHEMA = "warpline.host_costs/1"
COSTS = ("op", "launch", "frame", "recording_op", "recording_call", "recording_frame")
"""Names of the costs in a calibration: of `HostCosts` and, after `recording_`, of `RecordingCosts`."""
MIN_TIMED_STEPS = 3
MAX_STORED_LAPS = 64
"""The manifest lists the times of at most so many steps, the latest."""
LONGEST_NS = 1e15
"""Eleven days: no step takes longer."""


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a run; empty without one that can be read."""
    try:
        return dict(read_json(folder / MANIFEST))
    except (OSError, ValueError, TypeError):
        return {}


def recorded_entry(trace: Path) -> dict[str, Any]:
    """What the manifest of its run says of a trace; empty if it says nothing."""
    try:
        return dict(next(entry for entry in read_manifest(trace.parent)["traces"] if entry["file"] == trace.name))
    except (ValueError, KeyError, TypeError, StopIteration):
        return {}


def recorded_files(folder: Path) -> list[Path]:
    """The files that the manifest of a run names and that lie beside it; empty without a manifest."""
    try:
        return [folder / name for name in read_manifest(folder)["files"] if Path(name).name == name]
    except (KeyError, TypeError, ValueError):
        return []


@dataclass(frozen=True)
class LoaderWork:
    """What the worker processes of a DataLoader did for the steps before the recording."""

    workers: int
    cpu_ns: float
    """CPU time of all of them per step."""

    @property
    def step_ns(self) -> float:
        """The shortest step for which so many workers are enough: all of them work all the time."""
        return self.cpu_ns / self.workers


def loader_work(trace: Path) -> LoaderWork | None:
    """What the workers did for a step; None if there were none, or that was not measured."""
    try:
        work = recorded_entry(trace)["loader_work"]
        return LoaderWork(int(_positive(int(work["workers"]))), _positive(work["cpu_ns"]))
    except (ValueError, KeyError, TypeError, OverflowError, ZeroDivisionError):
        return None


@dataclass(frozen=True)
class TimedStep:
    """The step without the profiler."""

    median_ns: float
    min_ns: float
    max_ns: float
    laps_ns: tuple[int, ...]
    """The times of the latest steps, in order; where the median is not among them, or an older manifest has none, the
    shortest, the median and the longest."""
    cpu_ns: float | None
    """A step by the CPU's clock; None if an older manifest does not say."""
    recorded_ns: float | None
    """A step while it was recorded, by the same stopwatch; None if it was not timed."""


def timed_step(trace: Path, *, settled: bool = True) -> TimedStep | None:
    """The step that was timed before this file was recorded; None if it was not, or the steps had not settled and that
    is asked for."""
    entry = recorded_entry(trace)
    try:
        timed: dict[str, Any] = entry["bare_step_ns"]
        if timed["steps"] < MIN_TIMED_STEPS or (settled and not timed.get("settled", True)):
            return None
        least, middle, most = (float(timed[key]) for key in ("min_ns", "median_ns", "max_ns"))
        if not 0 < least <= middle <= most <= LONGEST_NS:
            return None
        all_laps = [round(_positive(lap)) for lap in timed.get("laps_ns") or ()][-MAX_STORED_LAPS:]
        laps = [lap for lap in all_laps if least <= lap <= most]
        if not laps or not min(laps) <= middle <= max(laps):  # the machine was slower or faster at the end
            laps = [round(time) for time in (least, middle, most)]
        cpu_ns, recorded = timed.get("cpu_ns"), entry.get("recorded_step_ns")
        return TimedStep(
            middle,
            least,
            most,
            tuple(laps),
            None if cpu_ns is None else _positive(cpu_ns),
            _positive(recorded["median_ns"]) if recorded else None,
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return None


@dataclass(frozen=True)
class Construction:
    """Where the program constructs an optimizer."""

    name: str
    """The optimizer's class."""
    file: str
    line: int
    function: str


def optimizers(trace: Path) -> list[Construction]:
    """Where the program of this recording constructs its optimizers; empty if that was not noted."""
    try:
        entries = recorded_entry(trace)["optimizers"]
        return [
            Construction(str(one["class"]), str(one["file"]), int(one["line"]), str(one["function"])) for one in entries
        ]
    except (ValueError, KeyError, TypeError):
        return []


def _positive(value: Any) -> float:
    number = float(value)
    if not 0 < number <= LONGEST_NS:
        raise ValueError("a time is a positive number")
    return number
