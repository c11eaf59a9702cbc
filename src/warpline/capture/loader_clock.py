"""How much CPU time the worker processes of a program's DataLoaders take for a step, while its steps are timed."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from warpline.capture.run_folder import LoaderWork


@dataclass(frozen=True)
class LoaderState:
    """What the workers of one iterator of a DataLoader have done until a moment."""

    loaded: int
    """Batches that they have loaded, whether or not the program has taken them yet."""
    cpu_ns: dict[int, int]
    """CPU time of each worker, by its process."""


class LoaderClock:
    """Reads at the end of each step how many batches it took, and at two of them the workers' CPU time.

    Workers may load ahead of the program, and for another loop than that of the steps. So a step needs the CPU time of
    a batch for each batch that it takes. A worker starts with imports, so nothing counts before all have loaded one.
    """

    def __init__(self) -> None:
        self._loaders: WeakKeyDictionary[Any, _LoaderLaps] = WeakKeyDictionary()

    def add(self, iterator: Any) -> None:
        """The program has made this iterator of a DataLoader, whose workers have started."""
        self._loaders[iterator] = _LoaderLaps()

    def restart(self) -> None:
        """Discard all laps."""
        for laps in list(self._loaders.values()):
            laps.first, laps.ends = None, []

    def lap(self) -> None:
        """A step has ended, and the next one starts."""
        for iterator, laps in list(self._loaders.items()):
            try:
                laps.add(iterator)
            except (AttributeError, NotImplementedError):  # another version's iterator, or a queue without a size
                self._loaders.pop(iterator, None)

    def work(self) -> LoaderWork | None:
        """What the workers of the loader that allows the longest step do for a step; None if none does anything."""
        every = [
            work_between(laps.first, state_of(iterator, laps.taken), laps.of_steps())
            for iterator, laps in list(self._loaders.items())
            if laps.first is not None
        ]
        return max(filter(None, every), key=lambda one: one.step_ns, default=None)


@dataclass
class _LoaderLaps:
    """The batches of one iterator, step by step."""

    taken: int = 0
    """How many batches the program has taken."""
    ends: list[int] = field(default_factory=list)
    """How many these were at the end of each step."""
    first: LoaderState | None = None
    """The state at the first of these ends at which every worker had loaded a batch."""
    _yielded: int = 0

    def add(self, iterator: Any) -> None:
        yielded: int = iterator._num_yielded
        self.taken += yielded - self._yielded if yielded >= self._yielded else yielded  # from 0 in each epoch
        self._yielded = yielded
        self.ends.append(self.taken)
        if self.first is None and self._all_have_loaded(iterator):
            self.first = state_of(iterator, self.taken)

    def _all_have_loaded(self, iterator: Any) -> bool:
        """Whether every worker has loaded a batch: they load in turn, and each may be some batches ahead."""
        others = len(iterator._workers) - 1
        return self.taken > others or _waiting(iterator) > iterator._prefetch_factor * others

    def of_steps(self) -> list[int]:
        """The batches of each step."""
        return [end - start for start, end in zip(self.ends, self.ends[1:])]  # noqa: B905 - Python 3.9


def state_of(iterator: Any, taken: int) -> LoaderState:
    """What the workers of an iterator have done until now; the program has taken so many batches."""
    times = {worker.pid: time for worker in iterator._workers if (time := _cpu_ns(worker.pid))}
    return LoaderState(taken + _waiting(iterator), times)


def work_between(before: LoaderState, after: LoaderState, batches: list[int]) -> LoaderWork | None:
    """What one loader's workers do for a step that takes as many batches as most; None if they did nothing for it."""
    spent = [time - before.cpu_ns[worker] for worker, time in after.cpu_ns.items() if worker in before.cpu_ns]
    loaded, usual = after.loaded - before.loaded, statistics.median(batches or [0])
    if not sum(spent) or loaded <= 0 or not usual:
        return None
    return LoaderWork(len(spent), round(sum(spent) / loaded * usual))


def _waiting(iterator: Any) -> int:
    """Batches that are loaded and not taken: in the workers' queue, in that of the thread that pins them, and here."""
    queues = {id(queue): queue for queue in (iterator._worker_result_queue, iterator._data_queue)}
    received = sum(len(task) > 1 for task in iterator._task_info.values())
    return received + sum(queue.qsize() for queue in queues.values())


def _cpu_ns(process: int) -> int:
    """CPU time of a worker, which loads with one thread; 0 where the system does not tell."""
    try:
        return int(Path(f"/proc/{process}/schedstat").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return 0
