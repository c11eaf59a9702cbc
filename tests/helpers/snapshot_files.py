"""Memory snapshots made by hand, with the structure that torch.cuda.memory._snapshot documents."""

from __future__ import annotations

import pickle
from copy import deepcopy
from pathlib import Path
from typing import Any

MIB = 1 << 20
TRAIN = [
    {"filename": "/usr/lib/python3/site-packages/torch/nn/functional.py", "line": 2300, "name": "linear"},
    {"filename": "/home/me/train.py", "line": 12, "name": "forward"},
    {"filename": "/home/me/train.py", "line": 40, "name": "main"},
]
CPP = [
    {"filename": "??", "line": 0, "name": "c10::cuda::CUDACachingAllocator::Native::malloc(unsigned long)"},
    {"filename": "??", "line": 0, "name": "at::_ops::empty_memory_format::call(c10::ArrayRef<long>)"},
    {"filename": "??", "line": 0, "name": "at::_ops::relu::redispatch(c10::DispatchKeySet, at::Tensor const&)"},
    {"filename": "/home/me/train.py", "line": 13, "name": "forward"},
]


def entry(action: str, address: int, size: int, time_us: int, frames: Any = ()) -> dict[str, Any]:
    """One entry of a history."""
    return {
        "action": action,
        "addr": address,
        "size": size,
        "stream": 0,
        "time_us": time_us,
        "compile_context": "N/A",
        "user_metadata": "",
        "frames": list(frames),
    }


def block(address: int, size: int, requested: int, state: str, frames: Any = ()) -> dict[str, Any]:
    """One block of a segment."""
    return {"address": address, "size": size, "requested_size": requested, "state": state, "frames": list(frames)}


def training() -> dict[str, Any]:
    """Two segments. A block of 1 MiB is older than the history, which allocates 3 MiB, then 2, and frees the 3 MiB.

    Requested bytes over time: 1, 4, 6 (the peak), 3 MiB. Reserved: 4 MiB before the second segment, then 24.
    """
    history = [
        entry("alloc", 0x1100000, 3 * MIB, 1_000_000, TRAIN),
        entry("segment_alloc", 0x8000000, 20 * MIB, 1_000_100, CPP),
        entry("alloc", 0x8000000, 2 * MIB, 1_000_200, CPP),
        entry("free_requested", 0x1100000, 3 * MIB, 1_000_300),
        entry("free_completed", 0x1100000, 3 * MIB, 1_000_310),
        {"action": "oom", "size": 20 * MIB, "stream": 0, "time_us": 1_000_400, "device_free": MIB, "frames": TRAIN},
        entry("snapshot", 0, 0, 1_000_500),
    ]
    first = {
        "device": 0,
        "address": 0x1000000,
        "total_size": 4 * MIB,
        "allocated_size": MIB,
        "active_size": MIB,
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": [
            block(0x1000000, MIB, MIB, "active_allocated", TRAIN),
            block(0x1100000, 3 * MIB, 0, "inactive"),
        ],
    }
    second = {
        **first,
        "address": 0x8000000,
        "total_size": 20 * MIB,
        "blocks": [
            block(0x8000000, 2 * MIB + 512, 2 * MIB, "active_allocated", CPP),
            block(0x8200200, 18 * MIB - 512, 0, "inactive"),
        ],
    }
    made = {
        "segments": [first, second],
        "device_traces": [history, []],
        "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "expandable_segments": False},
        "external_annotations": [],
    }
    return deepcopy(made)  # whoever damages it must not damage the next one


def leaking(steps: int = 8, leak: int = 4096) -> dict[str, Any]:
    """Each step allocates and frees 1 MiB, and keeps `leak` bytes; steps are ranges, as torch records them."""
    history, marks = [], []
    for step in range(steps):
        at = 1000 * step
        marks.append({"device": 0, "time_us": at, "name": f"ProfilerStep#{step}", "stage": "START"})
        history += [
            entry("alloc", 0x2000000, MIB, at + 10, TRAIN),
            entry("alloc", 0x4000000 + step * leak, leak, at + 20, CPP),
            entry("free_requested", 0x2000000, MIB, at + 30),
            entry("free_completed", 0x2000000, MIB, at + 30),
        ]
        marks.append({"device": 0, "time_us": at + 900, "name": f"ProfilerStep#{step}", "stage": "END"})
    kept = [block(0x4000000 + step * leak, leak, leak, "active_allocated", CPP) for step in range(steps)]
    segment = {"device": 0, "address": 0x2000000, "total_size": 64 * MIB, "blocks": kept}
    return deepcopy({"segments": [segment], "device_traces": [history], "external_annotations": marks})


def write(folder: Path, snapshot: Any, name: str = "snapshot.pickle", protocol: int = 4) -> Path:
    """The snapshot as torch writes it."""
    path = folder / name
    path.write_bytes(pickle.dumps(snapshot, protocol))
    return path
