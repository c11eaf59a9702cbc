"""The CPU time of a loader's workers: the arithmetic, real processes, and a real DataLoader under `run`."""

from __future__ import annotations

import importlib.util
import json
import multiprocessing
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from paths import ROOT

from warpline.capture.loader_clock import LoaderClock, work_between
from warpline.capture.run_folder import LoaderWork

has_schedstat = pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="/proc has no schedstat here")


def test_the_loader_that_allows_the_longest_step_counts() -> None:
    before = {1: {11: 100, 12: 100}, 2: {21: 0}}
    after = {1: {11: 700, 12: 500}, 2: {21: 800}}
    assert work_between(before, after, 10) == LoaderWork(1, 80), "80 ns by one worker, and 50 by two that take 100"
    assert LoaderWork(2, 100).step_ns == 50


@pytest.mark.parametrize(
    ("before", "after", "steps"),
    [
        ({}, {1: {11: 700}}, 10),
        ({1: {11: 700}}, {1: {12: 700}}, 10),
        ({1: {11: 700}}, {1: {11: 700}}, 10),
        ({1: {11: 700}}, {1: {11: 900}}, 0),
    ],
    ids=["new loader", "new workers", "idle workers", "no steps"],
)
def test_workers_that_were_not_there_all_the_time_or_did_nothing_say_nothing(
    before: Any, after: Any, steps: int
) -> None:
    assert work_between(before, after, steps) is None


class Iterator:
    """That of a DataLoader, which is known by its workers."""

    def __init__(self, workers: list[Any]) -> None:
        self._workers = workers


def burn() -> None:
    while True:
        pass


@has_schedstat
def test_a_process_that_computes_takes_cpu_time_and_one_that_sleeps_takes_none() -> None:
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=burn), context.Process(target=time.sleep, args=(60,))]
    clock, iterator = LoaderClock(), Iterator(workers)
    clock.add(iterator)
    assert clock.read() == {id(iterator): {}}, "no worker has started"
    for worker in workers:
        worker.start()
    try:
        before = clock.read()[id(iterator)]
        deadline = time.monotonic() + 60
        while clock.read()[id(iterator)].get(workers[0].pid, 0) < before.get(workers[0].pid, 0) + 50_000_000:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        asleep = clock.read()[id(iterator)].get(workers[1].pid, 0)
        assert asleep - before.get(workers[1].pid, 0) < 40_000_000
    finally:
        for worker in workers:
            worker.kill()
            worker.join()
    assert clock.read() == {id(iterator): {}}, "they have ended"


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
if __name__ == "__main__":
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, batch in enumerate(DataLoader(Slow(), batch_size=4, num_workers=2)):
        model(batch).mean().backward()
        optimizer.step()
        if step == 60: break
"""


@pytest.mark.long
@has_schedstat
@pytest.mark.usefixtures("interruptible")
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_the_workers_of_a_recorded_program_are_timed(tmp_path: Path) -> None:
    """A batch takes 8 ms of CPU time, and what handing it over costs."""
    (tmp_path / "program.py").write_text(PROGRAM)
    limits = ("--skip", "16", "--warmup", "1", "--steps", "2", "--after", "600", "--seconds", "600")
    words = [sys.executable, "-m", "warpline.capture", "--output", "run", *limits, "program.py"]
    subprocess.run(words, cwd=tmp_path, env={"PYTHONPATH": str(ROOT / "src")}, timeout=600, check=True)
    (entry,) = json.loads((tmp_path / "run" / "manifest.json").read_text())["traces"]
    assert entry["loader_work"]["workers"] == 2
    assert 7_000_000 < entry["loader_work"]["cpu_ns"] < 30_000_000
