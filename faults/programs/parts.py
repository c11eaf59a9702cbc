"""Pieces that several cases are made of: a captured graph, a compiled function, a loader that prefetches."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from faults.programs.case import Step

SETTLE_S = 0.5
"""How long a loader's new workers are given to start and to fill their queues."""


def graphed(torch: Any, work: Step) -> Step:
    """The work as one CUDA graph, warmed up on a side stream first, as torch asks for."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    replay: Step = graph.replay
    return replay


def compiled(torch: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function compiled with static shapes, from a clean slate."""
    torch._dynamo.reset()
    result: Callable[..., Any] = torch.compile(function, dynamic=False)
    return result


class Samples:
    """A dataset that makes each item with a function; plain, so that worker processes can be handed it."""

    def __init__(self, make: Callable[[int], Any], length: int = 1_000_000) -> None:
        self._make = make
        self._length = length

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Any:
        return self._make(index)


def batches(torch: Any, make: Callable[[int], Any], *, workers: int) -> Iterator[Any]:
    """Endless batches, each one item of a DataLoader; with workers, four batches ahead for each of them."""
    settings = {"prefetch_factor": 4, "multiprocessing_context": "fork"} if workers else {}
    loader = torch.utils.data.DataLoader(Samples(make), batch_size=None, num_workers=workers, **settings)
    result: Iterator[Any] = iter(loader)
    if workers:
        time.sleep(SETTLE_S)
    return result


def fetched_ahead(make: Callable[[int], Any], *, threads: int) -> Iterator[Any]:
    """Endless batches made by threads, two ahead for each of them; for work that waits rather than computes."""
    pool = ThreadPoolExecutor(threads)
    waiting = deque(pool.submit(make, index) for index in range(2 * threads))
    for index in itertools.count(2 * threads):
        waiting.append(pool.submit(make, index))
        yield waiting.popleft().result()


def weights(torch: Any, count: int, rows: int, columns: int, dtype: Any = None) -> list[Any]:
    """Random matrices on the GPU, scaled so that a matmul keeps its inputs' size."""
    scale = rows**-0.5
    return [(torch.randn(rows, columns, device="cuda") * scale).to(dtype or torch.float32) for _ in range(count)]
