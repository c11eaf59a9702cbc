"""Stacks as a file for https://www.speedscope.app: one profile for the GPU and one for each thread.

The format is `https://www.speedscope.app/file-format-schema.json`. Equal stacks are open once, for their summed time,
so that a long recording makes a small file; their order is that of the flame graph, not of time. Frames that open and
close take as much room as there are stacks; a list of frames for each stack would grow with their depth as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from warpline import __version__
from warpline.analyses.stacks import Stacks
from warpline.analyses.user_frames import Site
from warpline.trace.arrays import NONE

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def speedscope(profiles: Sequence[Stacks], name: str) -> dict[str, Any]:
    """The file as a JSON object; the first profile is shown first."""
    numbers: dict[str, int] = {}
    written = [_profile(stacks, numbers) for stacks in profiles]
    return {
        "$schema": SCHEMA,
        "name": name,
        "exporter": f"warpline {__version__}",
        "activeProfileIndex": 0,
        "shared": {"frames": [_frame(frame) for frame in numbers]},
        "profiles": written,
    }


def _profile(stacks: Stacks, numbers: dict[str, int]) -> dict[str, Any]:
    frames = [numbers.setdefault(frame, len(numbers)) for frame in stacks.frames]
    totals = stacks.node_totals()
    callees: dict[int, list[int]] = {}
    for node in np.argsort(totals, kind="stable").tolist():
        if totals[node]:
            callees.setdefault(int(stacks.parent[node]), []).append(node)
    events: list[dict[str, Any]] = []
    at, waiting = 0, [("O", node) for node in callees.get(NONE, [])]
    while waiting:
        kind, node = waiting.pop()
        events.append({"type": kind, "frame": frames[stacks.frame[node]], "at": at})
        if kind == "O":
            at += int(stacks.self_ns[node])
            waiting += [("C", node), *(("O", callee) for callee in callees.get(node, []))]
    return {
        "type": "evented",
        "name": stacks.name,
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": at,
        "events": events,
    }


def _frame(name: str) -> dict[str, Any]:
    site = Site.of_frame(name)
    return {"name": site.function, "file": site.file, "line": site.line} if site else {"name": name}
