"""A memory snapshot of torch: its allocations, in the same form as those of a trace, its failures, and unused memory.

Unused memory is cached by the allocator, lost to rounding, or in pieces too small.
"""

from __future__ import annotations

import re

import numpy as np
import polars as pl
from msgspec import Struct

from warpline.analyses.memory.allocations import Allocations
from warpline.library_names import LIBRARY_FRAME
from warpline.sources.snapshot.read import ACTIONS, NO_STACK, AllocationHistory, MemoryBlock, Segment, Snapshot, Stack
from warpline.trace.arrays import Int64s

_ALLOC, _REQUESTED, _COMPLETED = (ACTIONS.index(name) for name in ("alloc", "free_requested", "free_completed"))
_GROWS = [ACTIONS.index(name) for name in ("segment_alloc", "segment_map")]
_SHRINKS = [ACTIONS.index(name) for name in ("segment_free", "segment_unmap")]
_OOM = ACTIONS.index("oom")
_LIBRARY = re.compile(LIBRARY_FRAME)
_OP = re.compile(r"at::_ops::(\w+?)::(?:call|redispatch)")
"""The frame of C++ in which the dispatcher calls an op; recorded with `stacks="all"`."""
IN_USE = "active_allocated"


class OutOfMemory(Struct, frozen=True):
    """An allocation that failed."""

    device: str
    wanted_bytes: int
    free_bytes: int | None
    """What CUDA still had free."""
    unused_bytes: int
    """What the allocator held and did not use."""
    line: str | None


class Pieces(Struct, frozen=True):
    """The segments of a device at the time of a snapshot."""

    segments: int
    reserved_bytes: int
    in_use_bytes: int
    """In blocks that tensors use."""
    rounding_bytes: int
    """Part of these blocks that nobody asked for."""
    awaiting_bytes: int
    """Freed, but another stream may still use it."""
    free_bytes: int
    returnable_bytes: int
    """Free in segments without any block in use: `empty_cache()` gives it back."""
    largest_free_bytes: int
    """The largest allocation that fits without cudaMalloc."""

    @property
    def split_share(self) -> float | None:
        """Share of the free memory that lies outside of its largest piece; None without free memory."""
        return 1 - self.largest_free_bytes / self.free_bytes if self.free_bytes else None


def allocations_of_snapshot(snapshot: Snapshot) -> list[Allocations]:
    """One entry per device that has segments or a history."""
    places = [_place(stack) for stack in snapshot.stacks]
    devices = sorted({*snapshot.segments, *snapshot.histories})
    return [_of_device(snapshot, device, places) for device in devices]


def failures_of(snapshot: Snapshot) -> list[OutOfMemory]:
    """Every out-of-memory in the history."""
    found = []
    for device, history in snapshot.histories.items():
        allocated, reserved = _levels(snapshot, device, history)
        for row in np.flatnonzero(history.action == _OOM).tolist():
            free = int(history.free_bytes[row])
            found.append(
                OutOfMemory(
                    f"cuda:{device}",
                    max(int(history.size_bytes[row]), 0),
                    free if free >= 0 else None,
                    max(int(reserved[row] - allocated[row]), 0),
                    _place(snapshot.stacks[history.stack[row]])[1],
                )
            )
    return found


def pieces(segments: list[Segment]) -> Pieces:
    """Sums over all blocks."""
    reserved = in_use = rounding = awaiting = free = returnable = largest = 0
    for segment in segments:
        reserved += segment.size_bytes
        unused = 0
        for block in segment.blocks:
            if block.state == "inactive":
                unused += block.size_bytes
                largest = max(largest, block.size_bytes)
            elif block.state == "active_allocated":
                in_use += block.size_bytes
                rounding += max(block.size_bytes - block.requested_bytes, 0)
            else:
                awaiting += block.size_bytes
        free += unused
        if segment.blocks and all(block.state == "inactive" for block in segment.blocks):
            returnable += unused
    return Pieces(len(segments), reserved, in_use, rounding, awaiting, free, returnable, largest)


def _of_device(snapshot: Snapshot, device: int, places: list[tuple[str | None, str | None]]) -> Allocations:
    history = snapshot.histories.get(device, _no_history())
    allocated, reserved = _levels(snapshot, device, history)
    rows = _events(history)
    older = _older_blocks(snapshot, device, history)
    if len(rows):
        older = [block for block in older if block.stack != NO_STACK]  # of the others nothing is known but their bytes
    began = int(allocated[0] - _change(history)[0]) if len(allocated) else sum(block.requested_bytes for block in older)
    held = int(reserved[0] - _reserved_change(history)[0]) if len(reserved) else _reserved_end(snapshot, device)
    first = np.full(len(older), 0, np.int64)
    time_ns = history.time_ns if history.time_ns is not None else np.arange(len(history.action), dtype=np.int64)
    stacks = np.concatenate([np.array([block.stack for block in older], np.int64), history.stack[rows]])
    where = [places[stack] for stack in stacks.tolist()]
    return Allocations(
        f"cuda:{device}",
        "tensors",
        np.concatenate([first, time_ns[rows]]),
        np.concatenate([np.array([block.requested_bytes for block in older], np.int64), _change(history)[rows]]),
        np.concatenate([np.array([block.address for block in older], np.int64), history.address[rows]]),
        np.concatenate([first + began, allocated[rows]]),
        np.concatenate([first + held, reserved[rows]]),
        began,
        True,
        pl.DataFrame(
            {
                "op": pl.Series([op for op, _ in where], dtype=pl.String),
                "module": pl.Series([None] * len(where), dtype=pl.String),
                "line": pl.Series([line for _, line in where], dtype=pl.String),
            }
        ),
    )


def _no_history() -> AllocationHistory:
    nothing = np.empty(0, np.int64)
    return AllocationHistory(nothing, nothing, nothing, None, nothing, nothing)


def _events(history: AllocationHistory) -> Int64s:
    """Rows that allocate or free: of a free that is requested and then completed, the first."""
    return np.flatnonzero(_change(history) != 0)


def _change(history: AllocationHistory) -> Int64s:
    """By how much each entry changes what is allocated."""
    size = np.maximum(history.size_bytes, 0)
    freed = history.action == _REQUESTED
    if not freed.any():
        freed = history.action == _COMPLETED  # the request was not recorded (skip_actions)
    return np.where(history.action == _ALLOC, size, np.where(freed, -size, 0))


def _reserved_change(history: AllocationHistory) -> Int64s:
    size = np.maximum(history.size_bytes, 0)
    return np.where(np.isin(history.action, _GROWS), size, np.where(np.isin(history.action, _SHRINKS), -size, 0))


def _levels(snapshot: Snapshot, device: int, history: AllocationHistory) -> tuple[Int64s, Int64s]:
    """Allocated and reserved bytes after each entry: the history is a ring, so that only its end is known."""
    in_use = sum(block.requested_bytes for block in _blocks(snapshot, device) if block.state == IN_USE)
    changes, reserved = np.cumsum(_change(history)), np.cumsum(_reserved_change(history))
    if not len(changes):
        return changes, reserved
    allocated = changes + (in_use - int(changes[-1]))
    held = reserved + (_reserved_end(snapshot, device) - int(reserved[-1]))
    return allocated - min(int(allocated.min()), 0), held - min(int(held.min()), 0)


def _reserved_end(snapshot: Snapshot, device: int) -> int:
    return sum(segment.size_bytes for segment in snapshot.segments.get(device, []))


def _blocks(snapshot: Snapshot, device: int) -> list[MemoryBlock]:
    return [block for segment in snapshot.segments.get(device, []) for block in segment.blocks]


def _older_blocks(snapshot: Snapshot, device: int, history: AllocationHistory) -> list[MemoryBlock]:
    """Blocks in use that the history says nothing about: they were allocated before it begins."""
    recorded = set(history.address[_events(history)].tolist())
    return [block for block in _blocks(snapshot, device) if block.state == IN_USE and block.address not in recorded]


def _place(stack: Stack) -> tuple[str | None, str | None]:
    """The outermost op, and the innermost frame of the user's code, as `file(line): function`."""
    ops = [found[1] for frame in stack if (found := _OP.search(frame.function))]
    lines = (f"{frame.file}({frame.line}): {frame.function}" for frame in stack if frame.file.endswith(".py"))
    line = next((line for line in lines if not _LIBRARY.search(line)), None)
    return (f"aten::{ops[-1]}" if ops else None), line
