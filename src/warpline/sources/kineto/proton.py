"""Chrome traces of Triton's Proton (`proton.start(data="trace")`): kernels by stream, and the program's scopes.

Up to Triton 3.7 an event is a kernel, has no process, and its thread is the stream; each stream is a line with a JSON
object of its own. Later ones name their lanes: `GPU
Stream 7`, `CPU Thread 0` with the scopes, and `Graph: Stream 7` with those around the kernels of a CUDA graph. Neither
records copies, API calls or the device.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from warpline.errors import UnreadableFile
from warpline.sources.health import HealthEntry
from warpline.sources.kineto.events import Int64s, RawEvents
from warpline.sources.kineto.lanes import GPU_RANGE, merged
from warpline.sources.kineto.threads import KinetoThreads

PROTON = "proton"
DEVICE = 0
STREAM_LANE = re.compile(r"^GPU Stream (\d+)$")
SCOPE_LANE = re.compile(r"^(?:CPU Thread|Graph: Stream) (\d+)$")
GRAPH_LANE = "Graph: "
WARP = re.compile(r'^"warp \d+ \(line \d+\)"$')
METRICS = re.compile(r": <[^<>]*>$")
"""What Proton appends to the name of a scope with metrics: `forward: <flops, 1.000000>`."""
SCOPES = ("scope", "metric")
LINE = b'{"displayTimeUnit":"us","traceEvents":['
"""The start of a stream's object."""
SEAM = b"]}\n" + LINE
"""Between two of them; no JSON text holds a line feed."""
LIMITS = HealthEntry(
    "kernels-only",
    "warning",
    f"Proton records kernels only: copies and memsets count as idle time, and all kernels as those of device {DEVICE}.",
)


def joined_streams(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The bytes of a Chrome trace; the objects of an older Proton file become one, with every event in its place."""
    all_pieces = iter(pieces)
    held = next(all_pieces, b"")
    if not held.startswith(LINE):
        yield held
        yield from all_pieces
        return
    between = b",".ljust(len(SEAM))
    for piece in all_pieces:
        held = (held + piece).replace(SEAM, between)
        cut = max(len(held) - len(SEAM), 0)
        yield held[:cut]
        held = held[cut:]
    yield held.replace(SEAM, between)


def adopt_proton(raw: RawEvents, path: Path) -> bool:
    """Give Proton's events their device, stream and categories, in place; whether the file is Proton's."""
    if any(map(WARP.match, raw.labels)):
        raise UnreadableFile(
            "other-format",
            f"{path} is a trace of the inside of kernels by Triton's Proton (cycles of warps), and has no GPU timeline",
            'record with proton.start(data="trace") and without backend="instrumentation"',
        )
    kernels = _rows(raw, "kernel")
    threads = KinetoThreads(raw)
    lanes = threads.thread_names()
    streams = {key: int(lane[1]) for key, name in lanes.items() if (lane := STREAM_LANE.match(name))}
    scopes = np.concatenate([_rows(raw, category) for category in SCOPES])
    if not streams and len(kernels) and (raw.process[kernels] < 0).all() and "deviceProperties" not in raw.header:
        streams = {int(key): _number(raw, row) for key, row in zip(threads.key(kernels), kernels, strict=True)}
    elif not streams and not any(map(SCOPE_LANE.match, lanes.values())):
        return False
    known = np.isin(threads.key(kernels), list(streams))
    kernels = kernels[known]
    values = np.array([streams[int(key)] for key in threads.key(kernels)], np.int64)
    raw.fields["device"] = merged(raw.fields.get("device"), kernels, np.full(len(kernels), DEVICE))
    raw.fields["stream"] = merged(raw.fields.get("stream"), kernels, values)
    _adopt_scopes(raw, threads, np.sort(scopes))
    return True


def _rows(raw: RawEvents, category: str) -> Int64s:
    """The spans of a category."""
    if category not in raw.categories:
        return np.empty(0, np.int64)
    return np.flatnonzero((raw.category == raw.categories.index(category)) & (raw.phase == ord("X")))


def _number(raw: RawEvents, row: int) -> int:
    """The thread of an event as a number."""
    code = int(raw.thread[row])
    label = raw.labels[code].strip('"') if code >= 0 else ""
    return int(label) if label.isdecimal() and len(label) < 10 else 0


def _adopt_scopes(raw: RawEvents, threads: KinetoThreads, scopes: Int64s) -> None:
    """Make scopes the annotations of a CPU thread, or of a stream."""
    lanes = threads.thread_names()
    for key in np.unique(threads.key(scopes)):
        lane = SCOPE_LANE.match(lanes.get(int(key), ""))
        if lane is None:
            continue
        rows = scopes[threads.key(scopes) == key]
        on_gpu = lane[0].startswith(GRAPH_LANE)
        category = GPU_RANGE if on_gpu else "user_annotation"
        if category not in raw.categories:
            raw.categories.append(category)
        raw.category[rows] = raw.categories.index(category)
        if on_gpu:
            raw.labels.append(lane[1])
            raw.thread[rows] = len(raw.labels) - 1
    for code in np.unique(raw.name[scopes]):
        if code >= 0:
            raw.names[int(code)] = METRICS.sub("", raw.names[int(code)])
