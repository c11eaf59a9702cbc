"""The step that `warpline run` timed before it recorded a trace, as its manifest has it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpline.capture.recorded import MAX_STORED_LAPS, MIN_TIMED_STEPS, recorded_entry

LONGEST_NS = 1e15
"""Eleven days: no step takes longer."""


@dataclass(frozen=True)
class TimedStep:
    """The step without the profiler."""

    median_ns: float
    min_ns: float
    max_ns: float
    laps_ns: tuple[int, ...]
    """The times of the latest steps, in order; of an older manifest the shortest, the median and the longest."""
    cpu_ns: float | None
    """A step by the CPU's clock; None if an older manifest does not say."""
    recorded_ns: float | None
    """A step while it was recorded, by the same stopwatch; None if it was not timed."""


def timed_step(trace: Path) -> TimedStep | None:
    """The step that was timed before this file was recorded; None if it was not, or the steps had not settled."""
    entry = recorded_entry(trace)
    try:
        timed: dict[str, Any] = entry["bare_step_ns"]
        if timed["steps"] < MIN_TIMED_STEPS or not timed.get("settled", True):
            return None
        least, middle, most = (float(timed[key]) for key in ("min_ns", "median_ns", "max_ns"))
        if not 0 < least <= middle <= most <= LONGEST_NS:
            return None
        all_laps = [round(_positive(lap)) for lap in timed.get("laps_ns") or ()][-MAX_STORED_LAPS:]
        laps = [lap for lap in all_laps if least <= lap <= most] or [round(time) for time in (least, middle, most)]
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


def _positive(value: Any) -> float:
    number = float(value)
    if not 0 < number <= LONGEST_NS:
        raise ValueError("a time is a positive number")
    return number
