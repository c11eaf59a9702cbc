"""Finds the launches of a timeline that a report's kernels are: by name, grid, block and order.

The two tools spell names differently, and ncu's CSV also leaves namespaces out; the bare function and the launch
geometry agree. Where several kernels share those, the words of their template arguments decide, and among launches of
one kernel with different shapes (a persistent GEMM has one grid for all of them) the duration.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from functools import lru_cache
from typing import Literal

import numpy as np
from msgspec import Struct

from warpline.dive.launch_groups import LaunchGroup, launch_groups
from warpline.kernels.normalise import normalise
from warpline.sources.ncu.model import KernelReport, NcuReport
from warpline.trace.trace import Trace

How = Literal["name, grid and block", "name and block", "name"]


class Match(Struct, frozen=True):
    """The launches of the timeline that are the same kernel with the same geometry as one of the report."""

    name: str
    """As the timeline spells it."""
    rows: tuple[int, ...]
    """Rows of `gpu`, by start."""
    row: int
    """The one among them that is this launch, as far as the order tells."""
    shapes: str
    """Shapes of the op that launched them; empty where the timeline records none."""
    time_ns: int
    """Of all these rows together."""
    how: How
    """What agreed."""


def match_launches(report: NcuReport, trace: Trace) -> list[Match | None]:
    """For each kernel of the report, its launches in the timeline; None where there is none."""
    by_function: dict[str, list[LaunchGroup]] = defaultdict(list)
    for kernel in launch_groups(trace, np.flatnonzero(trace.gpu.kind.equal("kernel"))):
        by_function[normalise(kernel.name).base].append(kernel)
    seen: dict[tuple[int, ...], int] = defaultdict(int)
    matches: list[Match | None] = []
    for reported in report.kernels:
        found = _best(reported, by_function.get(_function(reported), []))
        if found is None:
            matches.append(None)
            continue
        kernel, how = found
        place = seen[kernel.rows]
        seen[kernel.rows] += 1
        row = kernel.rows[min(place, len(kernel.rows) - 1)]
        matches.append(Match(kernel.name, kernel.rows, row, kernel.shapes, kernel.time_ns, how))
    return matches


def _function(kernel: KernelReport) -> str:
    return normalise(kernel.name).base or kernel.function


def _best(reported: KernelReport, candidates: list[LaunchGroup]) -> tuple[LaunchGroup, How] | None:
    """The candidate with the same geometry and the most alike name; a different block is a different kernel."""
    usable = [one for one in candidates if reported.block is None or one.block in (None, reported.block)]
    same_grid = [one for one in usable if reported.grid is not None and one.grid == reported.grid]
    chosen = same_grid or usable
    if not chosen:
        return None
    best = max(chosen, key=lambda one: (_alike(reported.name, one.name), -_apart(reported, one)))
    if same_grid:
        return best, "name, grid and block"
    return best, "name and block" if reported.block is not None and best.block is not None else "name"


def _apart(reported: KernelReport, kernel: LaunchGroup) -> float:
    """How far the two durations are from each other, as a ratio; 0 where the report has none."""
    mean_ns = kernel.time_ns / len(kernel.rows)
    return abs(math.log(mean_ns / reported.duration_ns)) if reported.duration_ns and mean_ns else 0.0


def _alike(one: str, other: str) -> float:
    """The share of words that two spellings have in common."""
    if normalise(one).text == normalise(other).text:
        return 1.0
    first, second = _words(one), _words(other)
    return len(first & second) / max(len(first | second), 1)


@lru_cache(maxsize=10_000)
def _words(name: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", normalise(name).text)) - {"at", "native", "std", "int", "long", "unsigned"}
