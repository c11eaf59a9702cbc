"""Stacks as a file for https://www.speedscope.app: one profile for the GPU and one for each thread.

The format is `https://www.speedscope.app/file-format-schema.json`. Equal stacks are one sample with their summed time,
so that a long recording makes a small file; their order is that of the flame graph, not of time.
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
    samples, weights = [], []
    for node, stack in _depth_first(stacks):
        if stacks.self_ns[node]:
            samples.append([frames[stacks.frame[caller]] for caller in stack])
            weights.append(int(stacks.self_ns[node]))
    return {
        "type": "sampled",
        "name": stacks.name,
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": samples,
        "weights": weights,
    }


def _depth_first(stacks: Stacks) -> list[tuple[int, list[int]]]:
    """Each node with its stack from the outermost caller to itself, the longest first among those of one caller."""
    totals = stacks.node_totals()
    children: dict[int, list[int]] = {}
    for node in np.argsort(totals, kind="stable").tolist():
        children.setdefault(int(stacks.parent[node]), []).append(node)
    found: list[tuple[int, list[int]]] = []
    waiting: list[tuple[int, list[int]]] = [(node, [node]) for node in children.get(NONE, [])]
    while waiting:
        node, stack = waiting.pop()
        found.append((node, stack))
        waiting += [(child, [*stack, child]) for child in children.get(node, [])]
    return found


def _frame(name: str) -> dict[str, Any]:
    site = Site.of_frame(name)
    return {"name": site.function, "file": site.file, "line": site.line} if site else {"name": name}
