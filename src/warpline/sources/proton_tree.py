"""Hatchet files of Triton's Proton (`proton.start()`): sums per call path, without times of start.

A file is a list: the tree of scopes and kernels, and the devices. A node has a frame, metrics and children. Those of a
kernel are `time (ns)`, `count` and its device (`Time (ns)` and `Count` in 2024); a scope has what the program gave it,
such as `flops16` and `bytes`.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from warpline.errors import UnreadableFile
from warpline.sources.unpack import Unpacked
from warpline.sources.valid_text import valid_text

TIME, COUNT = "time (ns)", "count"
FLOPS = re.compile(r"^flops(8|16|32|64)?$")
BYTES = "bytes"
MOST_DEPTH = 400
MOST = 2**53
"""Of nanoseconds and kernels: more is damage."""


class CallPath(Struct, frozen=True):
    """A node of the tree with all that lies below it."""

    depth: int
    """0 for what the program calls first."""
    name: str
    own_ns: int
    """GPU time of the node itself: that of a kernel."""
    own_count: int
    """How often that kernel ran."""
    time_ns: int
    count: int
    """Kernels that ran."""
    flops: float | None
    """Floating-point operations that the program stated; None without."""
    bytes: float | None
    """The same for bytes moved."""


def read_proton_tree(path: Path) -> list[CallPath]:
    """The call paths that have GPU time, a parent before its children, the longest first."""
    unpacked = Unpacked(path)
    try:
        content = msgspec.json.decode(b"".join(unpacked))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        why = unpacked.damage or f"{error}"
        raise UnreadableFile(
            "damaged-file", f"{path} is a damaged Proton profile (Hatchet): {why}", "record or copy it again"
        ) from error
    roots = content if isinstance(content, list) else []
    found = _longest_first([child for root in roots for child in _children(root)], 0)
    if not found:
        raise UnreadableFile(
            "empty-trace",
            f"{path} is a Proton profile (Hatchet) without GPU time: no node has {TIME!r}",
            "record again with a backend that times kernels (proton.start(backend=None))",
        )
    return [path for paths in found for path in paths]


def _longest_first(nodes: list[Any], depth: int) -> list[list[CallPath]]:
    """The call paths of each node with GPU time."""
    found = [paths for node in nodes if (paths := _paths(node, depth))]
    return sorted(found, key=lambda paths: -paths[0].time_ns)


def _paths(node: Any, depth: int) -> list[CallPath]:
    """A node and what lies below it; nothing if that has no GPU time."""
    frame, metrics = (node.get(key) if isinstance(node, dict) else None for key in ("frame", "metrics"))
    if not isinstance(frame, dict) or not isinstance(metrics, dict) or depth > MOST_DEPTH:
        return []
    metrics = {key.lower(): value for key, value in metrics.items()}
    below = _longest_first(_children(node), depth + 1)
    children = [paths[0] for paths in below]
    own_ns, own_count = (int(min(_number(metrics.get(key)) or 0, MOST)) for key in (TIME, COUNT))
    if not own_ns and not children:
        return []
    flops = [_number(value) for key, value in metrics.items() if FLOPS.match(key)]
    whole = CallPath(
        depth,
        valid_text(str(frame.get("name", ""))),
        own_ns,
        own_count,
        own_ns + sum(child.time_ns for child in children),
        own_count + sum(child.count for child in children),
        _total([*flops, *(child.flops for child in children)]),
        _total([_number(metrics.get(BYTES)), *(child.bytes for child in children)]),
    )
    return [whole, *(path for paths in below for path in paths)]


def _children(node: Any) -> list[Any]:
    children = node.get("children") if isinstance(node, dict) else None
    return children if isinstance(children, list) else []


def _number(value: Any) -> float | None:
    """A metric's value, where it is a possible one."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        return None
    return value


def _total(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) if known else None
