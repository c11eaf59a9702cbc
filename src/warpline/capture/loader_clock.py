"""How much CPU time the worker processes of a program's DataLoaders take while its steps are timed."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from weakref import WeakSet

from warpline.capture.run_folder import LoaderWork

CpuTimes = dict[int, dict[int, int]]
"""CPU time of each worker by its process, for each iterator of a DataLoader, in ns."""


class LoaderClock:
    """Reads the workers' CPU time; the program does not wait for it."""

    def __init__(self) -> None:
        self._iterators: WeakSet[Any] = WeakSet()

    def add(self, iterator: Any) -> None:
        """The program has made this iterator of a DataLoader, whose workers have started."""
        self._iterators.add(iterator)

    def read(self) -> CpuTimes:
        """What the workers have taken until now."""
        return {
            id(iterator): {worker.pid: time for worker in iterator._workers if (time := _cpu_ns(worker.pid))}
            for iterator in list(self._iterators)
            if getattr(iterator, "_workers", None)
        }


def work_between(before: CpuTimes, after: CpuTimes, steps: int) -> LoaderWork | None:
    """What the loader that allows the longest step did in so many steps; None if no worker did anything."""
    found = []
    for iterator, times in after.items():
        earlier = before.get(iterator, {})
        spent = [time - earlier[process] for process, time in times.items() if process in earlier]
        if sum(spent) and steps:
            found.append(LoaderWork(len(spent), round(sum(spent) / steps)))
    return max(found, key=lambda one: one.step_ns, default=None)


def _cpu_ns(process: int) -> int:
    """CPU time of a worker, which loads with one thread; 0 where the system does not tell."""
    try:
        return int(Path(f"/proc/{process}/schedstat").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return 0
