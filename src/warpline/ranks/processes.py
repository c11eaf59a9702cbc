"""The ranks of one nsys recording: each process, or each device of one process, that takes part in collectives."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from warpline.analyses.breakdown import PRIORITY, activities_of
from warpline.ranks.summary import COMM
from warpline.trace.arrays import Bools
from warpline.trace.cut import cut_to_rows
from warpline.trace.schema import Steps
from warpline.trace.steps.find import find_steps
from warpline.trace.trace import Trace


def ranks_of_trace(trace: Trace) -> dict[int, Trace]:
    """The trace of each rank, counted by device and process; empty if it does not hold several ranks of one job."""
    if trace.source != "nsys":
        return {}
    gpu = trace.gpu
    communicates = activities_of(gpu) == PRIORITY.index(COMM)
    found = sorted(set(zip(gpu.device[communicates].tolist(), gpu.process[communicates].tolist(), strict=True)))
    if len(found) < 2:
        return {}
    return {rank: _part(trace, device, process) for rank, (device, process) in enumerate(found)}


def _part(trace: Trace, device: int, process: int) -> Trace:
    """What one process did on one device."""
    own = np.append(trace.threads.process == process, False)
    rows: dict[str, Bools] = {"gpu": (trace.gpu.device == device) & (trace.gpu.process == process)}
    for name in ("api", "ops", "ranges", "python", "osrt"):
        rows[name] = own[trace.tables[name].column("thread")]
    rows["syncs"] = np.append(rows["api"], False)[trace.syncs.api_id]
    rows["events"] = np.append(rows["api"], False)[trace.events.api_id]
    part = cut_to_rows(trace, rows, trace.all_steps[:0])
    steps = find_steps(part)
    return part if steps is None else replace(part, all_steps=Steps(steps.table()))
