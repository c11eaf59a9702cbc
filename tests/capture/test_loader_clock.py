"""The CPU time of a loader's workers: the arithmetic, real processes, and a real DataLoader under `run`."""

from __future__ import annotations

import importlib.util
import json
import multiprocessing
import queue
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from paths import ROOT

from warpline.capture import loader_clock
from warpline.capture.loader_clock import LoaderClock, LoaderState, state_of, work_between
from warpline.capture.run_folder import LoaderWork

has_schedstat = pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="/proc has no schedstat here")


def test_a_step_needs_the_cpu_time_of_each_batch_that_it_takes() -> None:
    before, after = LoaderState(4, {11: 100, 12: 100}), LoaderState(14, {11: 700, 12: 500})
    assert work_between(before, after, [1] * 8) == LoaderWork(2, 100), "of 10 batches, 2 more than the steps took"
    assert work_between(before, after, [2, 2, 0]) == LoaderWork(2, 200)
    assert work_between(before, after, [0, 0, 0, 30]) is None, "another loop, between two steps"
    assert LoaderWork(2, 100).step_ns == 50


@pytest.mark.parametrize(
    ("before", "after", "batches"),
    [
        (LoaderState(4, {11: 700}), LoaderState(9, {12: 900}), [1, 1]),
        (LoaderState(4, {11: 700}), LoaderState(9, {11: 700}), [1, 1]),
        (LoaderState(4, {11: 700}), LoaderState(4, {11: 900}), [1, 1]),
        (LoaderState(4, {11: 700}), LoaderState(9, {11: 900}), []),
    ],
    ids=["new workers", "idle workers", "no batch", "no steps"],
)
def test_workers_that_were_not_there_all_the_time_or_did_nothing_say_nothing(
    before: LoaderState, after: LoaderState, batches: list[int]
) -> None:
    assert work_between(before, after, batches) is None


class Iterator:
    """That of a DataLoader, as far as it is read: its workers, and the batches taken and waiting."""

    def __init__(self, workers: list[Any]) -> None:
        self._workers = workers
        self._prefetch_factor = 2
        self._num_yielded = 0
        self._task_info: dict[int, tuple[int, ...]] = {}
        self._worker_result_queue = self._data_queue = queue.Queue[int]()

    def go_on(self, taken: int, waiting: int) -> None:
        self._num_yielded += taken
        while self._data_queue.qsize() != waiting:
            if self._data_queue.qsize() < waiting:
                self._data_queue.put(0)
            else:
                self._data_queue.get()


@pytest.fixture
def cpu_ns(monkeypatch: pytest.MonkeyPatch) -> dict[int, int]:
    times: dict[int, int] = {}
    monkeypatch.setattr(loader_clock, "_cpu_ns", times.__getitem__)
    return times


def test_batches_loaded_ahead_and_imports_do_not_count(cpu_ns: dict[int, int]) -> None:
    """Two workers take 100 for a batch; the second imports for 5000 before, while the program takes the first batch."""
    clock, iterator = LoaderClock(), Iterator([SimpleNamespace(pid=1), SimpleNamespace(pid=2)])
    clock.add(iterator)
    for taken, waiting, first, second in ((1, 0, 100, 5000), (1, 1, 200, 5100), (1, 2, 300, 5200), (1, 3, 400, 5300)):
        iterator.go_on(taken, waiting)
        cpu_ns.update({1: first, 2: second})
        clock.lap()
    assert clock.work() == LoaderWork(2, 100), "a naive clock has 200: two batches were loaded for each that was taken"
    clock.restart()
    assert clock.work() is None


def test_a_full_queue_shows_that_all_workers_have_loaded(cpu_ns: dict[int, int]) -> None:
    """Of four workers, each two batches ahead: three alone cannot have loaded seven before a step takes the fourth."""
    clock, iterator = LoaderClock(), Iterator([SimpleNamespace(pid=worker) for worker in range(1, 5)])
    clock.add(iterator)
    for waiting, times in ((6, 200), (7, 300), (7, 325), (7, 350)):
        iterator.go_on(0 if waiting == 6 else 1, waiting)
        cpu_ns.update(dict.fromkeys(range(1, 5), times))
        clock.lap()
        assert (clock.work() is None) == (times <= 300)
    assert clock.work() == LoaderWork(4, 100)


def test_loaders_that_the_steps_do_not_take_from_do_not_count_and_the_slowest_does(cpu_ns: dict[int, int]) -> None:
    clock, every = LoaderClock(), [Iterator([SimpleNamespace(pid=worker)]) for worker in range(3)]
    for iterator in every:
        clock.add(iterator)
    for step in range(5):
        for iterator, taken in zip(every, (1, 2, 50 * (step == 2)), strict=True):
            iterator.go_on(taken, 1)
            if step == 2:
                iterator._num_yielded = taken  # a new epoch
        cpu_ns.update({0: 10 + 30 * step, 1: 10 + 40 * step, 2: 10 + 9000 * step})
        clock.lap()
    assert clock.work() == LoaderWork(1, 40)


def test_an_iterator_that_cannot_be_read_is_left_out() -> None:
    clock = LoaderClock()
    iterator = Iterator([])
    del iterator._num_yielded
    clock.add(iterator)
    clock.lap()
    assert clock.work() is None


def burn() -> None:
    while True:
        pass


@has_schedstat
def test_a_process_that_computes_takes_cpu_time_and_one_that_sleeps_takes_none() -> None:
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=burn), context.Process(target=time.sleep, args=(60,))]
    iterator = Iterator(workers)
    assert state_of(iterator, 3) == LoaderState(3, {}), "no worker has started"
    for worker in workers:
        worker.start()
    busy, asleep = (worker.pid for worker in workers)
    try:
        before = state_of(iterator, 0).cpu_ns
        deadline = time.monotonic() + 60
        while state_of(iterator, 0).cpu_ns.get(busy, 0) < before.get(busy, 0) + 50_000_000:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert state_of(iterator, 0).cpu_ns.get(asleep, 0) - before.get(asleep, 0) < 40_000_000
    finally:
        for worker in workers:
            worker.kill()
            worker.join()
    assert state_of(iterator, 0).cpu_ns == {}, "they have ended"


PROGRAM = """
import time
import torch
from torch.utils.data import DataLoader, Dataset
class Slow(Dataset):
    def __len__(self): return 4096
    def __getitem__(self, at):
        until = time.thread_time() + 0.002
        while time.thread_time() < until: pass
        return torch.zeros(8)
def evaluate(loader):
    with torch.no_grad():
        for batch in loader: model(batch)
if __name__ == "__main__":
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    evaluation = DataLoader(Slow(), batch_size=16, num_workers=1, persistent_workers=True, sampler=range(160))
    evaluate(evaluation)
    for step, batch in enumerate(DataLoader(Slow(), batch_size=4, num_workers=2, prefetch_factor=8)):
        time.sleep(0.02)
        model(batch).mean().backward()
        optimizer.step()
        if step % 8 == 7: evaluate(evaluation)
        if step == 60: break
"""


@pytest.mark.long
@has_schedstat
@pytest.mark.usefixtures("interruptible")
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_the_workers_of_a_recorded_program_are_timed(tmp_path: Path) -> None:
    """A batch takes 8 ms of CPU time, and what handing it over costs; one of the evaluation between two steps, 32."""
    (tmp_path / "program.py").write_text(PROGRAM)
    limits = ("--skip", "16", "--warmup", "1", "--steps", "2", "--after", "600", "--seconds", "600")
    words = [sys.executable, "-m", "warpline.capture", "--output", "run", *limits, "program.py"]
    subprocess.run(words, cwd=tmp_path, env={"PYTHONPATH": str(ROOT / "src")}, timeout=600, check=True)
    (entry,) = json.loads((tmp_path / "run" / "manifest.json").read_text())["traces"]
    assert entry["loader_work"]["workers"] == 2
    assert 7_000_000 < entry["loader_work"]["cpu_ns"] < 14_000_000
