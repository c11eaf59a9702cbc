"""Who is late where all ranks recorded the CPU alone: gloo's collectives, joined as the logs of NCCL Inspector are."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl

from warpline.ranks.files import RankFile, groups_of_file, job_of_folder, jobs_of_folder
from warpline.ranks.inspector_logs import ON_GLOO, InspectedJob, join_ranks
from warpline.sources.nccl_inspector import COLUMNS, InspectorLog
from warpline.trace.arrays import Int64s
from warpline.trace.open import open_trace
from warpline.trace.trace import Trace

GLOO = "gloo:"
"""How the name of a collective's range on gloo's own thread begins."""


def join_on_cpu(folder: Path, name: str | None = None, cache: bool = True) -> InspectedJob | None:
    """The collectives of a folder's ranks; None if the files do not show which of one rank are which of another."""
    if not folder.is_dir() or not jobs_of_folder(folder):
        return None
    job, _ = job_of_folder(folder, name)
    files = [file for file in job.files if file.rank is not None]
    if any(groups_of_file(file.path) > 1 for file in files):
        return None
    traces = [open_trace(file.path, cache=cache) for file in files]
    if any(len(trace.gpu) for trace in traces):
        return None
    counts = [Counter(map(str, trace.ranges.name[_collectives(trace)].texts)) for trace in traces]
    if not counts[0] or any(count != counts[0] for count in counts):
        return None
    logs = [_as_log(trace, file, len(files)) for trace, file in zip(traces, files, strict=True)]
    return join_ranks(job.name, logs)


def _collectives(trace: Trace) -> Int64s:
    """Rows of the table of ranges, by start: the order in which they were called."""
    rows = np.flatnonzero(trace.ranges.name.like(f"^{GLOO}"))
    return rows[np.argsort(trace.ranges.start_ns[rows], kind="stable")]


def _as_log(trace: Trace, file: RankFile, recorded: int) -> InspectorLog:
    ranges = trace.ranges[_collectives(trace)]
    seen: Counter[str] = Counter()
    rows = []
    for name, time_ns in zip(ranges.name.texts, (ranges.end_ns - ranges.start_ns).tolist(), strict=True):
        kind = str(name).removeprefix(GLOO)
        rows.append(
            (
                "gloo",
                "",
                file.world_size or recorded,
                1,
                file.rank,
                "",
                file.rank,
                kind,
                seen[kind],
                0,
                time_ns,
                ON_GLOO,
            )
        )
        seen[kind] += 1
    return InspectorLog(pl.DataFrame(rows, schema=COLUMNS, orient="row"), 0, 0)
