"""A trace whose kernels a report of Nsight Compute explains."""

from __future__ import annotations

from pathlib import Path

from kineto_files import Event, annotation, call, kernel, op, write


def copies(folder: Path) -> Path:
    """Three steps of 10 ms: two launches of 4 ms each of `copy`, and one of 1 ms of `other`, back to back."""
    events: list[Event] = []
    number = 0
    for step in range(3):
        at = 10_000.0 * step
        events.append(annotation(f"ProfilerStep#{step}", at, 10_000))
        for name, start, length in (("copy", 100.0, 4000.0), ("copy", 4100.0, 4000.0), ("other", 8100.0, 1000.0)):
            number += 1
            begin = at + 20.0 * (number % 3)
            events += [
                op("aten::x", begin, 15, external=number),
                call("cudaLaunchKernel", begin + 2, 5, number, external=number),
                kernel(name, at + start, length, number, grid=[8192, 1, 1], block=[256, 1, 1]),
            ]
        events.append(call("cudaDeviceSynchronize", at + 100, 9050, 1000 + step))
    return write(folder, events)
