"""Work on a second core, where there is enough of it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

FEW_ROWS = 20_000
"""To start a thread takes longer than the work on so few."""

P = ParamSpec("P")
T = TypeVar("T")


def more_cores(count: int, rows: int) -> Executor:
    """Threads for work on so many rows; for little work, the thread that asks."""
    return ThreadPoolExecutor(count) if rows > FEW_ROWS else _AtOnce()


class _AtOnce(Executor):
    """Does what it is given before it returns."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        done: Future[T] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except BaseException as error:
            done.set_exception(error)
        return done
