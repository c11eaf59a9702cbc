"""A calibration of the host: what ops, launches and their recording cost there, measured by loops of tiny ops.

`warpline run` stores a short one with each capture, in its manifest; `warpline device measure` stores one with the
ceilings of the GPU. What cannot be read is no calibration: the defaults remain.
"""

from __future__ import annotations

import math
from typing import Any

from msgspec import Struct

from warpline.analyses.device import trace_device
from warpline.capture.recorded import COSTS, COSTS_SCHEMA, recorded_entry
from warpline.errors import WarplineError
from warpline.hardware.ceilings import measured_for
from warpline.replay.costs.cost import Cost
from warpline.trace.trace import Trace

SAME_CHIP = 1.35
"""A stored calibration with the same GPU may be from another host: the range is wider by this factor."""
MIN_SPREAD = 1.1
"""Costs that were measured within a second vary by more than that over a program."""


class Calibration(Struct, frozen=True):
    """Measured costs by name."""

    costs: dict[str, Cost]

    def cost(self, name: str) -> Cost | None:
        """A cost by its name in `HostCosts`, or `recording_` and its name in `RecordingCosts`; None if not measured."""
        return self.costs.get(name)


def find_calibration(trace: Trace) -> Calibration | None:
    """The calibration stored with this capture, else one of a host with the same GPU."""
    return _of_run(trace) or _of_device(trace)


def read_calibration(document: Any, source: str, widening: float = 1.0) -> Calibration | None:
    """A calibration from its document; None if it is damaged or of another kind."""
    try:
        if document["schema"] != COSTS_SCHEMA:
            return None
        entries = document["costs_ns"].items()
        costs = {name: _cost(entry, source).widened(widening) for name, entry in entries if name in COSTS}
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    return Calibration(costs) if costs else None


def _cost(entry: dict[str, Any], source: str) -> Cost:
    low, middle, high = (float(entry[key]) for key in ("low", "expected", "high"))
    if not all(map(math.isfinite, (low, middle, high))) or middle <= 0:
        raise ValueError("a measured cost is a positive number")
    return Cost(min(low, middle / MIN_SPREAD), middle, max(high, middle * MIN_SPREAD), source)


def _of_run(trace: Trace) -> Calibration | None:
    stored = recorded_entry(trace.file).get("host_costs")
    return read_calibration(stored, "calibration of this host, stored with the capture")


def _of_device(trace: Trace) -> Calibration | None:
    try:
        _, chip = trace_device(trace)
        ceilings = measured_for(chip) if chip else None
    except WarplineError:
        return None
    if ceilings is None or ceilings.host is None:
        return None
    source = f"calibration of a host with this GPU ({ceilings.date})"
    return read_calibration(ceilings.host, source, SAME_CHIP)
