"""A memory snapshot as arrays: the history of each device's allocator, its segments and blocks, and the stacks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from warpline.errors import UnreadableFile
from warpline.sources.snapshot.plain_pickle import DamagedPickle, Plain, UnsafePickle, load_plain
from warpline.sources.unpack import ROWS_BOMB_BYTES, Unpacked, most_bytes

Int64s = npt.NDArray[np.int64]

MAX_BYTES = 2 << 30
"""A snapshot is read whole, and takes several times its size in memory."""
MAX_FRAMES = 200
"""Frames of a stack that are kept, the innermost first."""
MAX_TEXT = 1_000
"""Characters of a file's or function's name that are kept."""
MAX_DEVICES = 128
"""torch is built for up to 120; see C10_COMPILE_TIME_MAX_GPUS."""
LARGEST = (1 << 62) - 1
NO_STACK = 0

ACTIONS = (
    "alloc",
    "free_requested",
    "free_completed",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
    "oom",
    "snapshot",
)
"""What torch's allocator records; see `torch.cuda.memory._snapshot`."""


class Frame(Struct, frozen=True):
    """One frame of a stack, of Python or C++."""

    file: str
    line: int
    function: str


Stack = tuple[Frame, ...]


class MemoryBlock(Struct):
    """A piece of a segment at the time of the snapshot."""

    address: int
    size_bytes: int
    requested_bytes: int
    """What was asked for, before rounding; the size itself where the file does not tell."""
    state: str
    """active_allocated, active_awaiting_free, active_pending_free or inactive."""
    stack: int
    """Position in `Snapshot.stacks`."""


class Segment(Struct):
    """Memory from one cudaMalloc."""

    address: int
    size_bytes: int
    blocks: list[MemoryBlock] = field(default_factory=list)


class AllocationHistory(Struct):
    """What the allocator of one device did, in order."""

    action: Int64s
    """Position in ACTIONS."""
    address: Int64s
    size_bytes: Int64s
    time_ns: Int64s | None
    """From the first entry; None where the file has no times (before torch 2.1)."""
    stack: Int64s
    free_bytes: Int64s
    """For `oom`: what CUDA still had free; -1 elsewhere."""


class Snapshot(Struct):
    """A whole snapshot."""

    segments: dict[int, list[Segment]]
    """By device."""
    histories: dict[int, AllocationHistory]
    """By device."""
    stacks: list[Stack]
    """Each stack once; the first is empty."""
    marks: list[tuple[int, int, str]] = field(default_factory=list)
    """Begin, end (ns, as in the histories) and name of record_function ranges, where they were recorded."""
    skipped: int = 0
    """Entries and blocks that are no dicts, or lack a size."""


def read_snapshot(path: Path) -> Snapshot:
    """Read a snapshot without executing it; `UnreadableFile` for any other or hostile file."""
    try:
        return _SnapshotReader().read(load_plain(_content(path)))
    except UnsafePickle as error:
        raise UnreadableFile(
            "unsafe-pickle",
            f"{path} would run code if Python loaded it ({error}), which no memory snapshot does; nothing was run",
            "write it with torch.cuda.memory._dump_snapshot(), and do not load this file elsewhere",
        ) from error
    except DamagedPickle as error:
        raise UnreadableFile(
            "not-a-snapshot",
            f"{path} is not a memory snapshot of torch: {error}",
            "write it with torch.cuda.memory._dump_snapshot()",
        ) from error


def _content(path: Path) -> bytes:
    limit = min(MAX_BYTES, most_bytes())
    unpacked = Unpacked(path, limit_bytes=limit, bomb_bytes=ROWS_BOMB_BYTES)
    try:
        content = b"".join(unpacked)
    except OSError as error:
        raise UnreadableFile("unreadable-file", f"{path} cannot be read: {error.strerror}") from error
    if unpacked.damage:
        raise UnreadableFile("damaged-file", f"{path} is damaged: {unpacked.damage}", "copy it again")
    return content


class _SnapshotReader:
    """Walks over the plain values; what is not as torch writes it is skipped and counted."""

    def __init__(self) -> None:
        self.stacks: list[Stack] = [()]
        self.stack_of: dict[int, int] = {}
        self.frame_of: dict[int, Frame] = {}
        self.short_of: dict[int, str] = {}
        self.read_before: set[int] = set()
        """Identities of entries, segments and blocks. The document keeps them alive."""
        self.skipped = 0

    def read(self, document: Plain) -> Snapshot:
        if isinstance(document, list):
            document = {"segments": document}  # torch.cuda.memory_snapshot() gives segments alone
        if not isinstance(document, dict) or not ({"segments", "device_traces"} & document.keys()):
            raise DamagedPickle("it has neither segments nor device_traces")
        segments: dict[int, list[Segment]] = {}
        for entry in self._dicts(document.get("segments")):
            device = _whole(entry, "device") or 0
            if device < MAX_DEVICES:
                segments.setdefault(device, []).append(self._segment(entry))
            else:
                self.skipped += 1
        traces = document.get("device_traces")
        traces = traces if isinstance(traces, list) else []
        self.skipped += len(traces[MAX_DEVICES:])
        histories: dict[int, AllocationHistory] = {}
        first_us: int | None = None
        for device, trace in enumerate(traces[:MAX_DEVICES]):
            entries = [entry for entry in self._dicts(trace) if entry.get("action") in ACTIONS]
            if entries:
                times = [time for entry in entries if (time := _whole(entry, "time_us")) is not None]
                first_us = min([*times, *([first_us] if first_us is not None else [])], default=None)
                histories[device] = self._history(entries)
        for history in histories.values():
            if history.time_ns is not None:
                history.time_ns -= (first_us or 0) * 1_000
        marks = self._marks(document.get("external_annotations"), first_us or 0)
        return Snapshot(segments, histories, self.stacks, marks, self.skipped)

    def _dicts(self, items: Plain) -> Iterator[dict[str, Any]]:
        """The dicts of a list. torch writes each once; what a file names again and again would take endless time."""
        if not isinstance(items, list | tuple) or id(items) in self.read_before:
            return
        self.read_before.add(id(items))
        for item in items:
            if isinstance(item, dict) and id(item) not in self.read_before:
                self.read_before.add(id(item))
                yield item
            else:
                self.skipped += 1

    def _segment(self, entry: dict[str, Any]) -> Segment:
        address = _whole(entry, "address") or 0
        made = Segment(address, _whole(entry, "total_size") or 0)
        place = address
        for block in self._dicts(entry.get("blocks")):
            size = _whole(block, "size")
            if size is None:
                self.skipped += 1
                continue
            old = block.get("history")  # before torch 2.1
            inner = old[0] if isinstance(old, list) and old and isinstance(old[0], dict) else {}
            requested = _whole(block, "requested_size")
            requested = requested if requested is not None else _whole(inner, "real_size")
            at = _whole(block, "address")
            made.blocks.append(
                MemoryBlock(
                    place if at is None else at,
                    size,
                    size if requested is None else requested,
                    _text(block, "state"),
                    self._stack(block.get("frames", inner.get("frames"))),
                )
            )
            place = min((place if at is None else at) + size, LARGEST)
        return made

    def _history(self, entries: list[dict[str, Any]]) -> AllocationHistory:
        def column(name: str) -> Int64s:
            found = (_whole(entry, name) for entry in entries)
            return np.array([-1 if value is None else value for value in found], np.int64)

        times = column("time_us")
        if (times[1:] < times[:-1]).any():  # only in a damaged file; what reads a history counts on its order
            entries = [entries[place] for place in np.argsort(times, kind="stable").tolist()]
            times = np.sort(times)
        return AllocationHistory(
            np.array([ACTIONS.index(entry["action"]) for entry in entries], np.int64),
            column("addr"),
            column("size"),
            times * 1_000 if len(times) and (times >= 0).all() and times.max() < LARGEST // 1_000 else None,
            np.array([self._stack(entry.get("frames")) for entry in entries], np.int64),
            column("device_free"),
        )

    def _stack(self, frames: Plain) -> int:
        if not isinstance(frames, list | tuple) or not frames:
            return NO_STACK
        known = self.stack_of.get(id(frames))
        if known is not None:
            return known
        self.stack_of[id(frames)] = len(self.stacks)
        self.stacks.append(tuple(self._frame(frame) for frame in frames[:MAX_FRAMES] if isinstance(frame, dict)))
        return len(self.stacks) - 1

    def _frame(self, entry: dict[str, Any]) -> Frame:
        known = self.frame_of.get(id(entry))
        if known is None:
            known = Frame(self._short(entry, "filename"), _whole(entry, "line") or 0, self._short(entry, "name"))
            self.frame_of[id(entry)] = known
        return known

    def _short(self, entry: dict[str, Any], name: str) -> str:
        """The start of a text: one long text can be shared by all frames of a file."""
        text = _text(entry, name)
        return text if len(text) <= MAX_TEXT else self.short_of.setdefault(id(text), text[:MAX_TEXT])

    def _marks(self, entries: Plain, first_us: int) -> list[tuple[int, int, str]]:
        """Ranges, from the begins and ends that torch records with `global_record_annotations`."""
        begun: dict[str, list[int]] = {}
        found = []
        for entry in self._dicts(entries):
            time, name = _whole(entry, "time_us"), entry.get("name")
            if time is None or not isinstance(name, str) or not 0 <= time - first_us < LARGEST // 1_000:
                continue
            at = (time - first_us) * 1_000
            if entry.get("stage") == "START":
                begun.setdefault(name, []).append(at)
            elif entry.get("stage") == "END" and begun.get(name):
                found.append((begun[name].pop(), at, name))
        return sorted(found)


def _whole(entry: dict[str, Any], name: str) -> int | None:
    """A number of the entry, if it is whole and in range."""
    value = entry.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST else None


def _text(entry: dict[str, Any], name: str) -> str:
    """A text of the entry, if it is one."""
    value = entry.get(name)
    return value if isinstance(value, str) else ""
