"""Calls in which the CPU waits for the device, hardly for data."""

from __future__ import annotations

import re

import numpy as np

from warpline.replay.graph.model import CALL, RELEASE, SYNC
from warpline.replay.scene import Scene
from warpline.trace import api_names
from warpline.trace.columns import NONE, Bools, Int64s, integers
from warpline.trace.names import matches
from warpline.trace.nesting import nearest_marked

HARNESS = r"(^|/)torch/(profiler|autograd/profiler|cuda/profiler)|(^|/)warpline/(capture|bench)/"
"""Python frames of torch.profiler, and of warpline's own recorder and stopwatch."""
SMALL_RESULT_BYTES = 64 << 10
"""A copy to the host up to this size is something that somebody looked at (`item`, `tolist`, a mask's count): it takes
about as long as a copy of one number (32 KiB 2.0 µs, 8 bytes 1.5 µs on an H200), so the wait is for the work before."""
LARGEST_RESULT_BYTES = 1 << 20
SOON_DONE = 0.1
"""A larger one, up to the first size, is no transfer either where the copy takes less than this share of its call."""


def awaited_calls(scene: Scene) -> Int64s:
    """Calls within steps that wait for the device without moving data: explicit ones, and copies of results that are
    small, or soon done once the work before them is."""
    graph = scene.graph
    release = np.flatnonzero((graph.kind == RELEASE) & scene.in_steps)
    names = scene.call_name
    pattern = re.compile("|".join((api_names.STREAM_WAIT, api_names.EVENT_WAIT, api_names.DEVICE_WAIT)))
    explicit = {name for name in set(names[release].tolist()) if pattern.search(name)}
    rows = set(graph.row[release[np.isin(names[release], list(explicit))]].tolist())
    calls = _calls_of_results(scene)
    rows |= set(graph.row[calls].tolist())
    rows -= set(_of_the_harness(scene, list(rows)))
    return np.flatnonzero((graph.kind != RELEASE) & ~scene.is_work & np.isin(graph.row, list(rows)))


def _of_the_harness(scene: Scene, rows: list[int]) -> list[int]:
    """Of these calls, those made by the profiler or by a stopwatch around the program: below one of their frames."""
    python = scene.trace.python
    if not len(python) or not rows:
        return []
    own = matches(python["name"], HARNESS).to_numpy()
    above = np.append(nearest_marked(integers(python["parent"]), own), NONE)
    chosen = np.array(rows, np.int64)
    threads, starts = (integers(scene.trace.api[name])[chosen] for name in ("thread", "start_ns"))
    found: list[int] = chosen[above[scene.trace.frames.innermost(threads, starts)] != NONE].tolist()
    return found


def awaited(scene: Scene) -> Bools:
    """The calls that `remove_sync` drops; of a small copy and the wait for it in one op, the wait.

    Without ops, an asynchronous copy belongs to the wait that follows it.
    """
    dropped = np.zeros(len(scene.graph), bool)
    dropped[awaited_calls(scene)] = True
    dropped &= scene.graph.kind == CALL
    waits = dropped & ~scene.calls_like(api_names.COPY)
    outer = scene.root_op_of_call
    ops = np.unique(outer[waits])
    copies: Bools = dropped & ~waits & ~np.isin(outer, ops[ops != NONE])
    if waits.any():
        copies &= (outer != NONE) | scene.calls_like(api_names.BLOCKING_COPY)
    return waits | copies


def _calls_of_results(scene: Scene) -> Int64s:
    """Calls that copy a result to the host and wait, hardly for the copy itself."""
    graph = scene.graph
    results = (scene.kind == "memcpy") & (scene.work_text("copy_kind") == "DtoH") & scene.in_steps
    copies = graph.edge_from[(graph.edge_kind == SYNC) & results[graph.edge_from]]
    calls = scene.call_of_work[copies]
    copies, calls = copies[calls != NONE], calls[calls != NONE]
    held = (integers(scene.trace.api["end_ns"]) - integers(scene.trace.api["start_ns"]))[graph.row[calls]]
    soon_done = (graph.measured_end - graph.measured_start)[copies] < SOON_DONE * held
    size = scene.bytes[copies]
    result: Int64s = calls[(size <= SMALL_RESULT_BYTES) | ((size <= LARGEST_RESULT_BYTES) & soon_done)]
    return result
