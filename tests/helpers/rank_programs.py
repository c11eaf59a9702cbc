"""Jobs of a few ranks from a list of what each rank does in a step, with times that can be worked out on paper.

A launch takes the CPU 1 µs, a kernel starts LATENCY_US after it, and a collective ends on all members at the last arrival
plus its transfer. All GPU operations of a rank that are no collectives run in order.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kineto_files import Event, annotation, call, kernel
from rank_files import LATENCY_US, write_rank

PAIR = ("send", "recv")
Operation = tuple[Any, ...]
Steps = Callable[[int, int], Sequence[Operation]]
"""What a rank does in a step."""


def cpu(time_us: float) -> Operation:
    """The CPU is busy."""
    return "cpu", time_us


def compute(time_us: float) -> Operation:
    """A kernel."""
    return "compute", time_us


def meet(
    kind: str, group: Sequence[int], transfer_us: float = 100.0, ends_us: Mapping[int, float] | None = None
) -> Operation:
    """A collective behind the compute so far, which later compute waits for; the group of a send or recv is its source
    and target. `ends_us` is how much earlier (-) or later single ranks leave it."""
    return "meet", kind, tuple(group), transfer_us, ends_us or {}


def sync() -> Operation:
    """The CPU waits for the GPU."""
    return ("sync",)


class _Meeting:
    def __init__(self, group: Sequence[int], transfer_us: float) -> None:
        self.group, self.transfer_us = group, transfer_us
        self.arrivals: dict[int, float] = {}

    @property
    def end(self) -> float | None:
        is_whole = len(self.arrivals) == len(self.group)
        return max(self.arrivals.values()) + self.transfer_us if is_whole else None


def play(folder: Path, ranks: int, steps: int, program: Steps, *, unrecorded: Sequence[int] = ()) -> list[Path]:
    """Run the job and write the files of its ranks."""
    meetings: dict[tuple[Any, ...], _Meeting] = {}
    events: list[list[Event]] = [[] for _ in range(ranks)]
    running = [_run(rank, steps, program, meetings, events[rank]) for rank in range(ranks)]
    for _ in range(1_000_000):
        running = [one for one in running if next(one, None) is not None]
        if not running:
            break
    return [
        write_rank(folder / f"rank{rank}_trace.json", events[rank], rank, ranks)
        for rank in range(ranks)
        if rank not in unrecorded
    ]


def _run(
    rank: int, steps: int, program: Steps, meetings: dict[tuple[Any, ...], _Meeting], events: list[Event]
) -> Iterator[bool]:
    now = gpu = 0.0
    number = 0
    grid = {"grid": [64, 1, 1], "block": [128, 1, 1]}
    for step in range(steps):
        begin, seen = now, dict[tuple[Any, ...], int]()
        for operation in program(rank, step):
            number += 1
            kind, *rest = operation
            if kind == "cpu":
                now += rest[0]
            elif kind == "compute":
                start = max(now + LATENCY_US, gpu)
                gpu = start + rest[0]
                events += [call("cudaLaunchKernel", now, 1.0, number), kernel("work", start, rest[0], number, **grid)]
            elif kind == "sync":
                end = max(now, gpu) + 1.0
                events.append(call("cudaDeviceSynchronize", now, end - now, number))
                now = end
            else:
                name, group, transfer, ends = rest
                key = (step, "pair" if name in PAIR else name, group)
                seen[key] = seen.get(key, 0) + 1
                meeting = meetings.setdefault((*key, seen[key]), _Meeting(group, transfer))
                start = max(now + LATENCY_US, gpu)
                meeting.arrivals[rank] = start
                launched = now
                while meeting.end is None:
                    yield True
                gpu = meeting.end + ends.get(rank, 0.0)
                events += _collective(name, group, launched, start, gpu, number)
            now += 1.0
        events.append(annotation(f"ProfilerStep#{step + 3}", begin, max(now, gpu) - begin))


def _collective(name: str, group: Sequence[int], launch: float, start: float, end: float, number: int) -> list[Event]:
    meta: dict[str, Any] = {"Collective name": name, "In msg nelems": 1 << 20, "Out msg nelems": 1 << 20}
    meta |= {"dtype": "Float", "Group size": len(group), "Process Group Ranks": json.dumps(sorted(group))}
    if name in PAIR:
        meta |= {"Dst Rank": group[1]} if name == "send" else {"Src Rank": group[0]}
    title = {"send": "SendRecv", "recv": "SendRecv", "broadcast": "Broadcast"}.get(name, "AllReduce_Sum_f32")
    text = f"ncclDevKernel_{title}_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    return [
        call("cudaLaunchKernelExC", launch, 1.0, number),
        kernel(text, start, end - start, number, stream=20, **meta),
    ]
