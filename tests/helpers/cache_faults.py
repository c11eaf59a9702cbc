"""Kills a process at each call that changes the cache folder, and reads the cache again: run as a program.

Each attempt is a forked child that replaces an entry of the cache by another one and dies by SIGKILL before or after its
n-th system call. The next child must find the old entry, the new one or none; a third stores again, which must leave
exactly one entry and nothing temporary. The program prints the number of kills; an argument of 7 tries one call of 7.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from warpline.sources.cache_folder import traces_folder
from warpline.trace import cache
from warpline.trace.schema import TABLES, conform, empty
from warpline.trace.trace import Trace

CALLS = ("open", "mkdir", "replace", "rename", "unlink", "rmdir", "write", "utime", "close")
KEY = "0" * 32
OLD, NEW = 1, 2


def trace_of(number: int) -> Trace:
    """A trace that knows its number."""
    tables: dict[str, Any] = {name: empty(name) for name in TABLES}
    tables["meta"] = conform("meta", pl.DataFrame({"key": ["number"], "value": [str(number)]}))
    return Trace(Path("trace.json"), "kineto", tables)


def store_trace(number: int) -> None:
    cache.store(KEY, trace_of(number))


def trace_number() -> int | None:
    found = cache.load(KEY, Path("trace.json"))
    return None if found is None else int(found.facts["number"])


def die_at(number: int) -> None:
    """Make the process kill itself before (even numbers) or after (odd ones) its call number `number // 2`."""
    seen = 0

    def dying(call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            nonlocal seen
            mine, seen = seen, seen + 1
            if mine == number // 2 and number % 2 == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            result = call(*arguments, **options)
            if mine == number // 2:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return wrapped

    for name in CALLS:
        setattr(os, name, dying(getattr(os, name)))
    fcntl.flock = dying(fcntl.flock)  # type: ignore[assignment]
    write_ipc = pl.DataFrame.write_ipc

    def half_written(self: pl.DataFrame, file: Any, **options: Any) -> Any:
        file.write(b"ARROW1\0\0")
        file.flush()
        dying(file.seek)(0)
        return write_ipc(self, file, **options)

    pl.DataFrame.write_ipc = half_written  # type: ignore[method-assign,assignment]


def in_child(work: Callable[[], bool]) -> int:
    """The status of a child that does this: 0 if it returns True."""
    child = os.fork()
    if not child:
        os._exit(0 if work() else 1)
    return os.waitpid(child, 0)[1]


def check(store: Callable[[int], None], number: Callable[[], int | None], folder: Path, every: int) -> int:
    """Kill at every call, or at one of so many; the number of kills."""
    for kills, at in enumerate(range(0, 100_000, every)):

        def prepared() -> bool:
            store(OLD)
            return number() == OLD

        def attempt(at: int = at) -> bool:
            die_at(at)
            store(NEW)
            return True

        def again() -> bool:
            store(NEW)
            return number() == NEW and len(list(folder.iterdir())) == 1

        assert in_child(prepared) == 0
        status = in_child(attempt)
        assert in_child(lambda: number() in {OLD, NEW, None}) == 0, at
        assert in_child(again) == 0, at
        if status == 0:
            return kills
        assert status == signal.SIGKILL, (at, status)
    raise AssertionError("the store never ends")


if __name__ == "__main__":
    one_of = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    print(check(store_trace, trace_number, traces_folder(), one_of))
