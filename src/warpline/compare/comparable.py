"""Whether two recordings can be compared at all: the same kind of recording of the same work on the same machine."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from warpline.analyses.device import device_name
from warpline.trace.table import filled
from warpline.trace.trace import Trace
from warpline.units import several

PROFILER_SETTINGS = {"with_stack": "Python stacks", "record_shapes": "shapes", "profile_memory": "memory"}
"""Settings of torch.profiler that cost CPU time in every op."""
CPU_NAME = "CPU"
DRIVER = "cuda_driver_version"
MAX_DIGITS = 9
"""A number of ranks with more digits is none."""


class Setting(Struct, frozen=True):
    """What must be the same in both runs."""

    source: str
    devices: tuple[str, ...]
    """Names of the devices that did work, in order; `CPU` of a program without GPU work."""
    driver: str | None
    ranks: int
    """Processes of the job; 1 where the file speaks of no other."""
    recorded: frozenset[str]
    """What else was recorded, which costs time."""
    rank: str | None = None
    """Which process of the job it was, where the file says so."""


def setting_of(trace: Trace) -> Setting:
    """What must be the same."""
    used = np.unique(filled(trace.gpu.device, 0)).tolist()
    facts = trace.facts
    ranks = facts.get("world_size", "")
    recorded = {what for key, what in PROFILER_SETTINGS.items() if facts.get(key) not in {None, "0", "false"}}
    if len(trace.python):
        recorded.add(PROFILER_SETTINGS["with_stack"])
    return Setting(
        trace.source,
        tuple(device_name(trace, device) or "unknown" for device in used) or (CPU_NAME,),
        facts.get(DRIVER),
        int(ranks) if ranks.isdecimal() and len(ranks) < MAX_DIGITS else 1,
        frozenset(recorded),
        facts.get("rank"),
    )


def obstacles(a: Setting, b: Setting, one: str = "A", other: str = "B") -> list[str]:
    """Why the two cannot be compared; empty if they can."""
    found = []
    if a.source != b.source:
        tools = f"{one} was recorded with {_tool(a.source)} and {other} with {_tool(b.source)}"
        found.append(f"{tools}, which cost different times")
    if len(a.devices) != len(b.devices):
        found.append(f"{one} ran on {len(a.devices)} and {other} on {len(b.devices)} devices")
    elif a.devices != b.devices and "unknown" not in (*a.devices, *b.devices):
        found.append(f"{one} ran on {_listed(a.devices)} and {other} on {_listed(b.devices)}")
    if a.ranks != b.ranks:
        found.append(f"{one} ran on {several(a.ranks, 'rank')} and {other} on {several(b.ranks, 'rank')}")
    elif a.ranks > 1 and a.rank and b.rank and a.rank != b.rank:
        found.append(
            f"{one} is rank {a.rank} and {other} rank {b.rank} of {a.ranks}: ranks of a job wait for each other, and "
            "warpline diagnose FOLDER says who is late"
        )
    if a.driver and b.driver and a.source == b.source and a.driver != b.driver:
        found.append(f"the CUDA driver is {a.driver} in {one} and {b.driver} in {other}")
    if a.source == b.source and a.recorded != b.recorded:
        sides = ((one, a.recorded - b.recorded), (other, b.recorded - a.recorded))
        only = [f"{_listed(sorted(more))} only in {side}" for side, more in sides if more]
        found.append(f"recorded: {'; '.join(only)}. Recording costs CPU time")
    return found


def _tool(source: str) -> str:
    return {"kineto": "torch.profiler", "nsys": "Nsight Systems"}.get(source, source)


def _listed(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(dict.fromkeys(names))
