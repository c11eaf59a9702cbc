"""Folders of ranks, worked out on paper. Each step of each rank launches two kernels and an all-reduce behind
them, and waits for the GPU."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kineto_files import Event, annotation, call, kernel

LATENCY_US = 5.0
TRANSFER_US = 100.0
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def job(
    folder: Path,
    kernels_us: Sequence[float] = (400.0, 400.0, 400.0, 400.0),
    *,
    steps: int = 4,
    late: Mapping[int, float] | None = None,
    first_step: Mapping[int, int] | None = None,
    offsets_us: Mapping[int, float] | None = None,
    arguments: bool = True,
    pause_us: Mapping[int, float] | None = None,
    stalls_us: Mapping[tuple[int, int], float] | None = None,
    collective: str = "allreduce",
    elements: Mapping[int, int] | None = None,
    name: str = "rank{rank}_trace.json",
) -> list[Path]:
    """Write a job whose ranks compute for so long in each step; an all-reduce ends TRANSFER_US after the last arrival,
    and the next step starts behind it. `late` kernels take longer, `pause_us` is time before the first launch,
    `stalls_us` likewise, of a rank in one step. The messages of `collective` have `elements`, by rank."""
    ranks = range(len(kernels_us))
    events: dict[int, list[Event]] = {rank: [] for rank in ranks}
    begin = 0.0
    for step in range(steps):
        arrivals = {}
        for rank in ranks:
            launch = begin + 20.0 + (pause_us or {}).get(rank, 0.0) + (stalls_us or {}).get((rank, step), 0.0)
            length = kernels_us[rank] + (late or {}).get(rank, 0.0)
            arrivals[rank] = launch + LATENCY_US + length
        end = max(arrivals.values()) + TRANSFER_US
        for rank in ranks:
            launch = arrivals[rank] - LATENCY_US - kernels_us[rank] - (late or {}).get(rank, 0.0)
            events[rank] += _step(rank, step, begin, launch, arrivals[rank], end, len(ranks), arguments)
        begin = end + 10.0
    written = []
    for rank in ranks:
        skipped = (first_step or {}).get(rank, 0)
        kept = [event for event in events[rank] if event["args"]["step"] >= skipped]
        for event in kept:
            event["ts"] += (offsets_us or {}).get(rank, 0.0)
            if "Collective name" in event["args"]:
                count = (elements or {}).get(rank, 1 << 20)
                event["args"] |= {"Collective name": collective, "In msg nelems": count, "Out msg nelems": count}
        written.append(write_rank(folder / name.format(rank=rank), kept, rank, len(ranks)))
    return written


def _step(
    rank: int, step: int, begin: float, launch: float, arrival: float, end: float, size: int, arguments: bool
) -> list[Event]:
    number = 10 * step
    meta: dict[str, Any] = {}
    if arguments:
        listed = str(list(range(size)))
        meta = {"Collective name": "allreduce", "In msg nelems": 1 << 20, "Out msg nelems": 1 << 20, "dtype": "Float"}
        meta |= {"Group size": size, "Process Group Name": str(rank), "Process Group Ranks": listed}
    start = launch + LATENCY_US
    half = (arrival - start) / 2
    grid = {"grid": [64, 1, 1], "block": [128, 1, 1]}
    events = [
        annotation(f"ProfilerStep#{step + 3}", begin, end + 10.0 - begin),
        call("cudaLaunchKernel", launch, 4.0, number + 1),
        kernel("first_kernel", start, half, number + 1, **grid),
        call("cudaLaunchKernel", launch + 8.0, 4.0, number + 2),
        kernel("second_kernel", start + half, half, number + 2, **grid),
        call("cudaLaunchKernelExC", launch + 16.0, 4.0, number + 3),
        kernel(NCCL, arrival, end - arrival, number + 3, stream=20, **meta),
        call("cudaDeviceSynchronize", launch + 24.0, end + 2.0 - (launch + 24.0), number + 4),
    ]
    for event in events:
        event["args"]["step"] = step
    return events


def write_rank(path: Path, events: list[Event], rank: int | None, world: int | None) -> Path:
    """Write one rank's file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    header = {} if rank is None else {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": world}}
    path.write_text(json.dumps({"schemaVersion": 1, **header, "traceEvents": events}))
    return path


def set_clock(file: Path, clock: float, jump_us: float = 0.0) -> None:
    """Write the same file by a clock that runs faster by this factor, and is set in the middle."""
    document = json.loads(file.read_text())
    events = document["traceEvents"]
    middle = max(event["ts"] for event in events) / 2
    for event in events:
        start, end = event["ts"], event["ts"] + event["dur"]
        event["ts"] = start * clock + (jump_us if start > middle else 0.0)
        event["dur"] = end * clock + (jump_us if end > middle else 0.0) - event["ts"]
    file.write_text(json.dumps(document))
