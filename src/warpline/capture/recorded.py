"""What `warpline run` stores with a recording, for those who read it: little is loaded for that."""

from __future__ import annotations

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
